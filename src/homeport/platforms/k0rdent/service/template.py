"""ServiceTemplates: reads the source of each one and reports what it has, or why it can't be used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from homeport.addons.source import WATCHED
from homeport.api.flux.v1 import GitRepository, HelmChart, HelmRepository, OCIRepository
from homeport.api.k0rdent.v1beta1 import ServiceTemplate
from homeport.api.k0rdent.v1beta1.template import SourceSpec, SourceStatus
from homeport.capi.component import Setup
from homeport.capi.object.ownership import owner_reference
from homeport.client.protocol import Key
from homeport.helm.errors import SourceError
from homeport.machinery import condition
from homeport.machinery.chart import Chart
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.sprig.semver import satisfies
from homeport.machinery.manifest import ManifestError, parse_objects
from homeport.platforms.k0rdent.name import MANAGED, SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.reconciler import CheckReconciler
from homeport.platforms.k0rdent.service.content import manifest_holder, manifests_of, place_of_sources
from homeport.platforms.k0rdent.service.kustomize import build
from homeport.platforms.k0rdent.source import CONFIG_MAP, Holder, Sources
from homeport.runtime.cache import key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

CONSTRAINT_ANNOTATION = "k0rdent.mirantis.com/k8s-version-constraint"
_RESYNC_SECONDS = 600.0  # a version that is a range may have a newer match
_RETRY_SECONDS = 30.0


class ServiceTemplateReconciler(CheckReconciler[ServiceTemplate]):
    """`valid` and `validationError` say what others have conditions for."""

    controller_name = "k0rdent-servicetemplate"
    kind = ServiceTemplate
    condition = ""
    workers = 4

    def __init__(self, setup: Setup, sources: Sources) -> None:
        super().__init__(setup.manager)
        self._sources = sources
        for kind in (HelmRepository, HelmChart, OCIRepository, GitRepository):
            self.controller.map(kind, self._of_source)
        for metadata in WATCHED.values():
            self.controller.map(metadata, self._of_holder)

    def _of_source(self, obj: Any) -> Iterable[Key]:
        """A HelmChart of kcm-system may be that of any template."""
        return [key_of(each) for each in self.objects if each.spec.helm is not None or isinstance(obj, GitRepository)]

    def _of_holder(self, obj: Any) -> Iterable[Key]:
        at = key_of(obj)
        return [
            key_of(each)
            for each in self.objects.list(at.namespace)
            if any(
                source.local_source_ref is not None and source.local_source_ref.name == at.name
                for source in sources_of(each)
            )
            or (not each.status.valid and each.spec.helm is not None)  # it may wait for the Secret of a repository
        ]

    def phases(self, scope: Scope[ServiceTemplate]) -> Sequence[Phase[Scope[ServiceTemplate]]]:
        return [self._read_source]

    async def _read_source(self, scope: Scope[ServiceTemplate]) -> Wait | None:
        obj, status = scope.object, scope.object.status
        status.observed_generation = obj.metadata.generation
        after = _RESYNC_SECONDS
        try:
            await self._find(scope)
            status.valid, status.validation_error = True, ""
        except SourceError as error:
            status.valid, status.validation_error = False, str(error)
            after = _RETRY_SECONDS
        self._report_source(scope)
        scope.timer = Wait("Resync", after=after, quiet=True)
        return None

    async def _find(self, scope: Scope[ServiceTemplate]) -> None:
        spec, status = scope.object.spec, scope.object.status
        namespace = self._place(scope.object)
        status.k8s_constraint = spec.k8s_constraint
        if spec.helm is not None:
            origin = await self._sources.find(spec.helm, namespace)
            kind, key = origin.named
            status.source_status = SourceStatus(kind=kind, name=key.name, namespace=key.namespace)
            await self._note_chart(scope, (await self._sources.fetch(origin)).chart)
        elif spec.resources is not None:
            files, holder = await self._files(scope, spec.resources, "spec.resources")
            _parse(manifests_of(holder, files), str(holder))
        elif spec.kustomize is not None:
            files, holder = await self._files(scope, spec.kustomize, "spec.kustomize", whole=True)
            _parse({"kustomization": build(files, holder.path, str(holder))}, str(holder))
        else:
            raise SourceError("spec: set exactly one of helm, kustomize and resources")
        _check_constraint(status.k8s_constraint)

    def _place(self, obj: ServiceTemplate) -> str:
        return place_of_sources(obj, self.objects.get(Key(SYSTEM_NAMESPACE, obj.metadata.name)))

    async def _files(
        self, scope: Scope[ServiceTemplate], source: SourceSpec, field: str, *, whole: bool = False
    ) -> tuple[dict[str, bytes], Holder]:
        holder = await manifest_holder(self._sources, source, self._place(scope.object), field)
        key = holder.key
        scope.object.status.source_status = SourceStatus(kind=holder.kind, name=key.name, namespace=key.namespace)
        return await self._sources.files(holder, whole=whole), holder

    def _report_source(self, scope: Scope[ServiceTemplate]) -> None:
        status, now = scope.object.status, rfc3339(self.clock.now())
        if status.source_status is None:
            return
        before = scope.read.status.source_status
        held = list(before.conditions) if before is not None else []
        reason = "Succeeded" if status.valid else "Failed"
        truth: condition.Status = "True" if status.valid else "False"
        status.source_status.observed_generation = scope.object.metadata.generation
        status.source_status.conditions = condition.put(
            held, "Ready", truth, reason, status.validation_error, now=now, generation=scope.object.metadata.generation
        )

    async def _note_chart(self, scope: Scope[ServiceTemplate], chart: Chart) -> None:
        obj, status = scope.object, scope.object.status
        status.description, status.chart_version = chart.metadata.description, chart.version
        status.config = dict(chart.values)
        status.k8s_constraint = obj.spec.k8s_constraint or chart.metadata.annotations.get(CONSTRAINT_ANNOTATION, "")
        if chart.is_library:
            raise SourceError(f"chart {chart.name} is a library: it can't be installed by itself")
        if chart.schema is None:
            status.schema_config_map_name = ""
            return
        status.schema_config_map_name = f"schema-st-{obj.metadata.name}"
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": status.schema_config_map_name,
                "namespace": obj.metadata.namespace,
                "labels": dict(MANAGED),
                "ownerReferences": [owner_reference(obj)],
            },
            "data": {"schema": _compact(chart.schema)},
        }
        await self.applier.hold(scope.key, body, CONFIG_MAP)


def sources_of(template: ServiceTemplate) -> list[SourceSpec]:
    spec = template.spec
    chart = spec.helm.chart_source if spec.helm is not None else None
    return [each for each in (spec.resources, spec.kustomize, chart) if each is not None]


def _compact(schema: bytes) -> str:
    try:
        return orjson.dumps(orjson.loads(schema)).decode()
    except orjson.JSONDecodeError:
        raise SourceError("values.schema.json of the chart is not valid JSON") from None


def _parse(files: dict[str, bytes], where: str) -> None:
    try:
        parse_objects({key: content for key, content in files.items() if b"{{" not in content} or files)
    except ManifestError as error:
        raise SourceError(f"{where}: {error}") from None


def _check_constraint(text: str) -> None:
    try:
        satisfies(text or "*", "1.30.0")
    except CallError as error:
        raise SourceError(f"spec.k8sConstraint: {text!r} is not a range of versions: {error}") from None
