"""Templates: reads the chart of each one and reports what it says, or why it can't be used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from homeport.api.flux.v1 import GitRepository, HelmChart, HelmRepository, OCIRepository
from homeport.api.k0rdent.v1beta1 import ClusterTemplate, ProviderTemplate
from homeport.api.k0rdent.v1beta1.template import HelmSpec
from homeport.api.meta import Resource
from homeport.capi.component import Setup
from homeport.capi.object.ownership import owner_reference
from homeport.client.protocol import Key
from homeport.helm.errors import SourceError
from homeport.infra.preflight.near import near
from homeport.platforms.k0rdent.catalogue import CLUSTER_CHARTS, PROVIDER_CHARTS, chart_name
from homeport.platforms.k0rdent.name import MANAGED, SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.reconciler import KindReconciler
from homeport.platforms.k0rdent.source import SECRET
from homeport.platforms.k0rdent.template.chart import TemplateCharts
from homeport.platforms.k0rdent.template.fact import facts_of
from homeport.runtime.cache import key_of
from homeport.runtime.informer import metadata_only
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
_RESYNC_SECONDS = 600.0
_RETRY_SECONDS = 60.0
_PREFIXES: dict[type[Any], str] = {ClusterTemplate: "schema-ct-", ProviderTemplate: "schema-pt-"}


class TemplateReconciler(KindReconciler[Any]):
    """One for each kind of template. `valid` and `validationError` say what others have conditions for."""

    condition = ""
    workers = 2

    def __init__(self, setup: Setup, kind: type[Any]) -> None:
        super().__init__(setup.manager, kind)
        self._charts = TemplateCharts(setup.manager.client, setup.environment.charts)
        for source in (
            HelmRepository,
            HelmChart,
            OCIRepository,
            GitRepository,
            metadata_only(CONFIG_MAP),
            metadata_only(SECRET),
        ):
            self.controller.map(source, self._of_source)

    def _of_source(self, obj: Any) -> Iterable[Key]:
        """Templates of users in its namespace. Copies that AccessManagement made have their sources in kcm-system."""
        at = obj.metadata.namespace
        return [
            key_of(each)
            for each in self.objects
            if not chart_name(each.spec.helm)
            and (at == SYSTEM_NAMESPACE or each.metadata.namespace == at)
            and _names(each.spec.helm, obj.metadata.name)
        ]

    def phases(self, scope: Scope[Any]) -> Sequence[Phase[Scope[Any]]]:
        return [self._read_chart]

    async def _read_chart(self, scope: Scope[Any]) -> Wait | None:
        obj, status = scope.object, scope.object.status
        status.observed_generation = obj.metadata.generation
        if not chart_name(obj.spec.helm):
            return await self._read_own(scope)
        wrong = self._find(obj)
        status.valid, status.validation_error = not wrong, wrong
        if not wrong and isinstance(obj, ClusterTemplate):
            await self._hold_schema(scope, orjson.dumps(CLUSTER_CHARTS[chart_name(obj.spec.helm)].schema))
        scope.timer = Wait("Resync", after=_RESYNC_SECONDS, quiet=True)
        return None

    async def _read_own(self, scope: Scope[Any]) -> Wait | None:
        """The chart of a user."""
        obj, status = scope.object, scope.object.status
        try:
            chart = (await self._charts.fetch(obj)).chart
        except SourceError as error:
            status.valid, status.validation_error = False, str(error)
            scope.timer = Wait("Resync", after=_RETRY_SECONDS, quiet=True)
            return None
        facts, spec = facts_of(chart), obj.spec
        status.valid, status.validation_error = True, ""
        status.description, status.chart_version = chart.metadata.description, chart.version
        status.config, status.providers = chart.values, list(spec.providers or facts.providers)
        if isinstance(obj, ClusterTemplate):
            status.provider_contracts = dict(spec.provider_contracts or facts.contracts)
            status.k8s_version = spec.k8s_version or facts.kubernetes
        else:
            status.capi_contracts = dict(spec.capi_contracts or facts.contracts)
        status.schema_config_map_name = f"{_PREFIXES[type(obj)]}{obj.metadata.name}" if chart.schema else ""
        if chart.schema:
            await self._hold_schema(scope, chart.schema)
        scope.timer = Wait("Resync", after=_RESYNC_SECONDS, quiet=True)
        return None

    def _find(self, obj: Any) -> str:
        known: Any = CLUSTER_CHARTS if isinstance(obj, ClusterTemplate) else PROVIDER_CHARTS
        name = chart_name(obj.spec.helm)
        chart = known.get(name)
        if chart is None:
            return f'spec.helm.chartSpec.chart: "{name}" is not in HelmRepository kcm-templates{near(name, known)}'
        status, spec = obj.status, obj.spec
        status.description, status.chart_version = chart.description, chart.version
        status.providers = list(spec.providers or chart.providers)
        if isinstance(obj, ClusterTemplate):
            status.config = chart.defaults
            status.provider_contracts = dict(spec.provider_contracts or chart.contracts)
            status.k8s_version = spec.k8s_version or chart.kubernetes
            status.schema_config_map_name = f"schema-ct-{obj.metadata.name}"
        else:
            status.capi_contracts = dict(spec.capi_contracts or chart.contracts)
        return ""

    async def _hold_schema(self, scope: Scope[Any], schema: bytes) -> None:
        """For programs that show forms: the schema of the values."""
        obj = scope.object
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": obj.status.schema_config_map_name,
                "namespace": obj.metadata.namespace or SYSTEM_NAMESPACE,
                "labels": dict(MANAGED),
                "ownerReferences": [owner_reference(obj)],
            },
            "data": {"schema": schema.decode()},
        }
        await self.applier.hold(scope.key, body, CONFIG_MAP)


def _names(helm: HelmSpec, name: str) -> bool:
    """Whether the chart comes from, or through, an object of this name. Secrets of repositories are not known here."""
    spec, ref, source = helm.chart_spec, helm.chart_ref, helm.chart_source
    local = source.local_source_ref if source is not None else None
    named = {each.name for each in (spec.source_ref if spec is not None else None, ref, local) if each is not None}
    return name in named


def install(setup: Setup) -> None:
    for kind in (ClusterTemplate, ProviderTemplate):
        setup.manager.add(TemplateReconciler(setup, kind).controller)
