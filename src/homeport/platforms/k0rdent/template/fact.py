"""What a chart says about itself as a template: providers, contracts, version of Kubernetes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from homeport.api.k0rdent.v1beta1 import GROUP
from homeport.machinery.chart import Chart

_PROVIDER = "cluster.x-k8s.io/provider"
_PREFIX = "cluster.x-k8s.io/"
_KUBERNETES = f"{GROUP}/k8s-version"


@dataclass(frozen=True, slots=True)
class ChartFacts:
    providers: tuple[str, ...] = ()
    contracts: Mapping[str, str] = field(default_factory=dict)  # of providers, or for a provider of Cluster API's own
    kubernetes: str = ""


def facts_of(chart: Chart) -> ChartFacts:
    """From the annotations of Chart.yaml."""
    held = chart.metadata.annotations
    providers = tuple(each.strip() for each in str(held.get(_PROVIDER, "")).split(",") if each.strip())
    contracts = {
        key.removeprefix(_PREFIX): str(value)
        for key, value in held.items()
        if key.startswith(_PREFIX) and key != _PROVIDER
    }
    return ChartFacts(providers, contracts, str(held.get(_KUBERNETES, "")))
