"""Charts of HelmRepository kcm-templates: what Homeport brings along for clusters and providers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from homeport.api.k0rdent.v1beta1.template import ClusterTemplate, HelmSpec
from homeport.platforms.k0rdent.cluster.blueprint import class_objects
from homeport.platforms.k0rdent.cluster.schema import K0S_VERSION, default_values, values_schema
from homeport.platforms.k0rdent.cluster.vendor import Chart, Vendor
from homeport.platforms.k0rdent.harvester.vendor import HARVESTER
from homeport.platforms.k0rdent.name import REPOSITORY
from homeport.platforms.k0rdent.nutanix.vendor import NUTANIX

Json = dict[str, Any]

VENDORS = (NUTANIX, HARVESTER)
CORE = "core-cluster-api"
CHART_VERSION = "1.0.0"
_K0S = ("control-plane-k0sproject-k0smotron", "bootstrap-k0sproject-k0smotron")
_CONTRACTS = {"v1beta1": "v1beta1", "v1beta2": "v1beta1_v1beta2"}


@dataclass(frozen=True, slots=True)
class ClusterChart:
    """A chart that makes clusters."""

    chart: Chart
    description: str
    providers: tuple[str, ...]
    kubernetes: str
    version: str = CHART_VERSION

    @property
    def name(self) -> str:
        return self.chart.name

    @property
    def schema(self) -> Json:
        return _schema(self.chart.vendor.name, self.chart.hosted)

    @property
    def defaults(self) -> Json:
        return default_values(self.schema)

    @property
    def contracts(self) -> dict[str, str]:
        return dict.fromkeys(self.providers, "v1beta1")


@dataclass(frozen=True, slots=True)
class ProviderChart:
    """A part of the plane that Management can enable. `component` is the name of the plane's component."""

    name: str
    description: str
    component: str
    provider: str = ""  # name in Management.spec.providers; '': a part of the core
    providers: tuple[str, ...] = ()
    contracts: Mapping[str, str] = field(default_factory=dict)
    objects: Callable[[], list[Json]] = list  # that exist as long as the provider is enabled
    version: str = CHART_VERSION


@cache
def _schema(vendor: str, hosted: bool) -> Json:
    return values_schema(Chart(next(each for each in VENDORS if each.name == vendor), hosted))


_KUBERNETES = K0S_VERSION.partition("+")[0]
_MODES = {True: "whose control plane runs in the management plane", False: "with its control plane on VMs"}


def _cluster_charts(vendor: Vendor) -> list[ClusterChart]:
    return [
        ClusterChart(
            Chart(vendor, hosted),
            f"A k0s cluster on {vendor.title} {how}",
            (vendor.provider, *_K0S),
            _KUBERNETES,
        )
        for hosted, how in _MODES.items()
    ]


def _class_objects(vendor: Vendor) -> list[Json]:
    return [*class_objects(Chart(vendor, hosted=True)), *class_objects(Chart(vendor, hosted=False))]


CLUSTER_CHARTS: Mapping[str, ClusterChart] = {each.name: each for vendor in VENDORS for each in _cluster_charts(vendor)}
PROVIDER_CHARTS: Mapping[str, ProviderChart] = {
    each.name: each
    for each in (
        ProviderChart("kcm", "The management plane", "k0rdent"),
        ProviderChart(
            "cluster-api", "Cluster API", "core", providers=(CORE,), contracts={"v1beta1": "", "v1beta2": ""}
        ),
        ProviderChart(
            "cluster-api-provider-k0sproject-k0smotron",
            "k0s control planes and workers",
            "k0smotron",
            provider="k0smotron",
            providers=_K0S,
            contracts=_CONTRACTS,
        ),
        ProviderChart(
            "nutanix-capx",
            "Nutanix AHV",
            "nutanix",
            provider="nutanix",
            providers=(NUTANIX.provider,),
            contracts=_CONTRACTS,
            objects=lambda: _class_objects(NUTANIX),
        ),
        ProviderChart(
            "harvester-capk",
            "Harvester and KubeVirt",
            "kubevirt",
            provider="harvester",
            providers=(HARVESTER.provider,),
            contracts=_CONTRACTS,
            objects=lambda: _class_objects(HARVESTER),
        ),
    )
}


def is_built_in(template: ClusterTemplate) -> bool:
    """Whether its chart is part of Homeport, not one of a user."""
    return bool(chart_name(template.spec.helm))


def chart_name(helm: HelmSpec | None) -> str:
    """Name of a chart of kcm-templates; '' if the template has a chart from elsewhere."""
    spec = helm.chart_spec if helm is not None else None
    if spec is None or spec.source_ref.kind not in ("", "HelmRepository"):
        return ""
    return spec.chart if spec.source_ref.name in ("", REPOSITORY) else ""
