"""Charts of HelmRepository kcm-templates: what Homeport brings along for clusters and providers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from homeport.api.k0rdent.v1beta1.template import ClusterTemplate, HelmSpec
from homeport.platforms.k0rdent.cluster.blueprint import class_objects
from homeport.platforms.k0rdent.cluster.distribution import Distribution
from homeport.platforms.k0rdent.cluster.k0s import K0S
from homeport.platforms.k0rdent.cluster.kubeadm import KUBEADM
from homeport.platforms.k0rdent.cluster.schema import default_values, values_schema
from homeport.platforms.k0rdent.cluster.vendor import Chart, Vendor
from homeport.platforms.k0rdent.harvester.vendor import HARVESTER
from homeport.platforms.k0rdent.name import REPOSITORY
from homeport.platforms.k0rdent.nutanix.vendor import NUTANIX

Json = dict[str, Any]

VENDORS = (NUTANIX, HARVESTER)
DISTRIBUTIONS = (K0S, KUBEADM)
CORE = "core-cluster-api"
CHART_VERSION = "1.0.0"
_KUBEADM = {**KUBEADM.providers(True), **KUBEADM.providers(False)}
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
        return _schema(self.chart.name)

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
    parts: Mapping[str, str] = field(default_factory=dict)  # further providers > the component that each one needs
    # That exist as long as the provider is enabled, on a plane with these components.
    objects: Callable[[Collection[str]], list[Json]] = lambda running: []
    version: str = CHART_VERSION


@cache
def _schema(name: str) -> Json:
    return values_schema(CLUSTER_CHARTS[name].chart)


_MODES = {True: "whose control plane runs in the management plane", False: "with its control plane on VMs"}


def _cluster_charts(vendor: Vendor, distribution: Distribution) -> list[ClusterChart]:
    return [
        ClusterChart(
            Chart(vendor, distribution, hosted),
            f"A {distribution.name} cluster on {vendor.title} {how}",
            (vendor.provider, *distribution.providers(hosted)),
            distribution.version.partition("+")[0],
        )
        for hosted, how in _MODES.items()
    ]


def _class_objects(vendor: Vendor, running: Collection[str]) -> list[Json]:
    charts = [
        Chart(vendor, distribution, hosted)
        for distribution in DISTRIBUTIONS
        for hosted in _MODES
        if set(distribution.providers(hosted).values()) <= set(running)
    ]
    return [each for chart in charts for each in class_objects(chart)]


CLUSTER_CHARTS: Mapping[str, ClusterChart] = {
    each.name: each
    for vendor in VENDORS
    for distribution in DISTRIBUTIONS
    for each in _cluster_charts(vendor, distribution)
}
PROVIDER_CHARTS: Mapping[str, ProviderChart] = {
    each.name: each
    for each in (
        ProviderChart("kcm", "The management plane", "k0rdent"),
        ProviderChart(
            "cluster-api",
            "Cluster API with kubeadm",
            "core",
            providers=(CORE,),
            parts=_KUBEADM,
            contracts={"v1beta1": "", "v1beta2": ""},
        ),
        ProviderChart(
            "cluster-api-provider-k0sproject-k0smotron",
            "k0s control planes and workers",
            "k0smotron",
            provider="k0smotron",
            providers=tuple(K0S.providers(True)),
            contracts=_CONTRACTS,
        ),
        ProviderChart(
            "nutanix-capx",
            "Nutanix AHV",
            "nutanix",
            provider="nutanix",
            providers=(NUTANIX.provider,),
            contracts=_CONTRACTS,
            objects=lambda running: _class_objects(NUTANIX, running),
        ),
        ProviderChart(
            "harvester-capk",
            "Harvester and KubeVirt",
            "kubevirt",
            provider="harvester",
            providers=(HARVESTER.provider,),
            contracts=_CONTRACTS,
            objects=lambda running: _class_objects(HARVESTER, running),
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
