"""Management: keeps the release, its templates and the classes of enabled providers, and reports their state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import ClusterClass
from homeport.api.k0rdent.v1beta1 import ClusterTemplate, Management, ProviderInterface, ProviderTemplate, Release
from homeport.api.k0rdent.v1beta1.part import ComponentStatus
from homeport.api.meta import Resource, wire
from homeport.capi.component import Setup
from homeport.capi.resolution import plural
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery.gvk import parse_api_version
from homeport.platforms.k0rdent.builtin import known_providers, provider_objects, release_objects, template_name
from homeport.platforms.k0rdent.catalogue import PROVIDER_CHARTS, ProviderChart, chart_name
from homeport.platforms.k0rdent.name import KNOWN_PROVIDERS, MANAGED_LABEL, MANAGEMENT
from homeport.platforms.k0rdent.reconciler import K0rdentReconciler, management_key
from homeport.platforms.k0rdent.template.chart import TemplateCharts
from homeport.platforms.k0rdent.template.provider import ProviderReleases
from homeport.runtime.informer import metadata_only
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

Json = dict[str, Any]

_RESYNC_SECONDS = 600.0
_RETRY_SECONDS = 10.0
INTERNAL = "infrastructure-internal"
_HELD = Query(labels=f"{MANAGED_LABEL}=true")


class ManagementScope(Scope[Management]):
    def report(self, kind: str, status: Any, reason: str, message: str, now: str) -> bool | None:
        if (kind, status) == ("Ready", "True"):
            reason, message = "AllComponentsHealthy", "All components are healthy"
        return super().report(kind, status, reason, message, now)


class ManagementReconciler(K0rdentReconciler[Management, ManagementScope]):
    controller_name = "k0rdent-management"
    kind = Management
    waits_are_events = True
    workers = 1

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        self._running = {each.name for each in setup.components}
        charts = TemplateCharts(self.client, setup.environment.charts)
        self._own = ProviderReleases(self.client, self.clock, charts)
        self._templates = self.informers.get(ProviderTemplate).cache
        self._releases = self.informers.get(Release).cache
        self._caches: dict[str, Any] = {
            kind.__resource__.kind: self.informers.get(kind).cache
            for kind in (ClusterClass, ClusterTemplate, ProviderTemplate, ProviderInterface, Release)
        }
        for watched in (ClusterClass, ClusterTemplate, ProviderTemplate, ProviderInterface, Release):
            self.controller.map(watched, management_key)
        for kind in sorted(self._template_kinds(), key=str):
            self._watch_templates(kind)

    def _template_kinds(self) -> set[Resource]:
        """Of the objects beside the classes, which every cluster of a class needs."""
        charts = [each for each in PROVIDER_CHARTS.values() if each.component in self._running]
        kinds = {_kind_of(body) for each in charts for body in each.objects(self._running)}
        return {each for each in kinds if each.kind not in self._caches}

    def _watch_templates(self, kind: Resource) -> None:
        watched = metadata_only(kind)
        self._caches[kind.kind] = self.informers.get(watched, _HELD).cache
        self.controller.map(watched, management_key, query=_HELD)

    def load(self, obj: Management) -> ManagementScope | None:
        return None if obj.metadata.deletion_timestamp or obj.metadata.name != MANAGEMENT else ManagementScope(obj)

    def phases(self, scope: ManagementScope) -> Sequence[Phase[ManagementScope]]:
        return [self._hold_release, self._add_providers, self._await_release, self._hold_components, self._judge]

    async def _hold_release(self, scope: ManagementScope) -> Wait | None:
        scope.object.status.observed_generation = scope.object.metadata.generation
        for kind, body in release_objects():
            await self._hold(scope, kind, body)
        return None

    async def _add_providers(self, scope: ManagementScope) -> Wait | None:
        """Those that came with a newer version of Homeport. Each one is added once: who removes it has it removed."""
        obj = scope.object
        offered = [
            each.provider for each in PROVIDER_CHARTS.values() if each.provider and each.component in self._running
        ]
        known = known_providers(obj.metadata.annotations)
        fresh = [each for each in offered if each not in known]
        if not fresh:
            return None
        used = {_short(each.name) for each in obj.spec.providers} | {each.name for each in obj.spec.providers}
        meta: Json = {
            "resourceVersion": obj.metadata.resource_version,
            "annotations": {KNOWN_PROVIDERS: ",".join([*known, *fresh])},
        }
        listed = [*map(wire, obj.spec.providers), *({"name": each} for each in fresh if each not in used)]
        body = {"metadata": meta, "spec": {"providers": listed}}
        await self.client.patch(Management, scope.key, MergePatch(body), self._write)
        return Wait("ProvidersAdded", f"providers that are new in this version: {', '.join(fresh)}", quiet=True)

    async def _await_release(self, scope: ManagementScope) -> Wait | None:
        name = scope.object.spec.release
        release = self._releases.get(Key("", name))
        if release is None:
            known = ", ".join(sorted(each.metadata.name for each in self._releases)) or "none yet"
            return Wait("ReleaseIsNotFound", f'spec.release: Release "{name}" does not exist; there are: {known}')
        if not release.status.ready:
            return Wait("ReleaseIsNotReady", f"Release {name} is not ready: its templates are not valid yet")
        return None

    async def _hold_components(self, scope: ManagementScope) -> Wait | None:
        status = scope.object.status
        status.components = {}
        configs = {each.name: each.config for each in scope.object.spec.providers}
        own: list[str] = []
        for name, chart, template in self._wanted(scope.object):
            found = self._templates.get(Key("", template)) if name in configs else None
            if found is not None and not chart_name(found.spec.helm):
                own.append(name)
                status.components[name] = await self._own_component(name, found, configs[name])
            else:
                status.components[name] = await self._component(scope, name, chart, template)
        if left := await self._own.drop_others(own):
            return Wait("NotAllComponentsHealthy", f"a provider is being removed: {left}", after=_RETRY_SECONDS)
        return None

    async def _own_component(self, name: str, template: ProviderTemplate, config: Json) -> ComponentStatus:
        """A provider with the chart of a user."""
        made = ComponentStatus(template=template.metadata.name)
        made.error = await self._own.hold(name, template, config)
        made.success = not made.error
        made.exposed_providers = list(template.status.providers) if made.success else []
        return made

    def _wanted(self, obj: Management) -> Iterable[tuple[str, ProviderChart | None, str]]:
        """Name, chart and template of each component."""
        by_provider = {each.provider: each for each in PROVIDER_CHARTS.values() if each.provider}
        core = obj.spec.core
        for name, chart in (("kcm", PROVIDER_CHARTS["kcm"]), ("capi", PROVIDER_CHARTS["cluster-api"])):
            given = getattr(core, name) if core is not None else None
            yield name, chart, (given.template if given is not None else "") or template_name(chart)
        for each in obj.spec.providers:
            known = by_provider.get(_short(each.name)) or PROVIDER_CHARTS.get(each.name)
            yield each.name, known, each.template or (template_name(known) if known else "")

    async def _component(
        self, scope: ManagementScope, name: str, chart: ProviderChart | None, template: str
    ) -> ComponentStatus:
        made = ComponentStatus(template=template)
        if chart is None:
            known = ", ".join(sorted(each.provider for each in PROVIDER_CHARTS.values() if each.provider))
            made.error = f"provider {name} is unknown; providers of this plane are {known}"
            if template:
                made.error += f'; for a chart of your own, create ProviderTemplate "{template}"'
        elif chart.component not in self._running:
            made.error = f"component {chart.component} does not run in this plane: start it without --without"
        else:
            parts = [name for name, component in chart.parts.items() if component in self._running]
            made.exposed_providers = [*chart.providers, *parts]
            made.error = await self._hold_objects(scope, chart)
            made.success = not made.error
        return made

    async def _hold_objects(self, scope: ManagementScope, chart: ProviderChart) -> str:
        """What is wrong; '' if everything is there."""
        for body in chart.objects(self._running):
            kind = _kind_of(body)
            try:
                await self._hold(scope, kind, body)
            except NotFound:
                return f"{body['kind']} is not served: {kind.qualified} is not defined"
        shown = [await self._hold(scope, kind, body) for kind, body in provider_objects(chart)]
        return "" if all(shown) else "is being installed: its templates are being created"

    async def _hold(self, scope: ManagementScope, kind: Resource, body: Json) -> bool:
        meta = body["metadata"]
        cache = self._caches.get(kind.kind)
        key = Key(meta.get("namespace", ""), meta["name"])
        cached = cache.get(key) if cache is not None else None
        return await self.applier.hold(scope.key, body, kind, cached=cached, watched=cache is not None)

    def _contracts(self, template: str, charts: Mapping[str, ProviderChart]) -> dict[str, str]:
        if template in charts:
            return dict(charts[template].contracts)
        found = self._templates.get(Key("", template))
        return {} if found is None else dict(found.status.capi_contracts)

    async def _judge(self, scope: ManagementScope) -> Wait | None:
        obj = scope.object
        status = obj.status
        good = [each for each in status.components.values() if each.success]
        status.available_providers = sorted({INTERNAL, *(name for each in good for name in each.exposed_providers)})
        charts = {template_name(each): each for each in PROVIDER_CHARTS.values()}
        status.capi_contracts = {
            provider: self._contracts(each.template, charts) for each in good for provider in each.exposed_providers
        }
        bad = {name: each.error for name, each in status.components.items() if not each.success}
        if bad:
            said = "; ".join(f"{name}: {error}" for name, error in sorted(bad.items()))
            return Wait("NotAllComponentsHealthy", said, after=_RETRY_SECONDS, warning=True)
        status.release = obj.spec.release
        scope.timer = Wait("Resync", after=_RESYNC_SECONDS, quiet=True)
        return None


def _kind_of(body: Json) -> Resource:
    at = parse_api_version(body["apiVersion"])
    return Resource(at.group, at.version, body["kind"], plural(body["kind"]))


def _short(name: str) -> str:
    """Providers have the names of their charts in some places: cluster-api-provider-nutanix is nutanix."""
    return name.removeprefix("cluster-api-provider-").removeprefix("k0sproject-")


def install(setup: Setup) -> None:
    setup.manager.add(ManagementReconciler(setup).controller)
