"""Values of a built-in template, read into one model. Pure.

What users may write in several ways is one thing here. A role's own value wins over machineDefaults, and that over the
default of the role.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from homeport.capi.k0s.validation import validate_cluster_config
from homeport.platforms.k0rdent.cluster.reading import Reading
from homeport.platforms.k0rdent.cluster.rule import (
    check_host,
    check_labels,
    check_overlap,
    check_share,
    check_sizes,
)
from homeport.platforms.k0rdent.cluster.schema import POD_CIDR, SERVICE_CIDR
from homeport.platforms.k0rdent.cluster.vendor import Chart, Infrastructure
from homeport.platforms.k0rdent.values import Fault

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """A cluster with all defaults filled in."""

    chart: Chart
    infrastructure: Infrastructure
    host: str
    host_port: int
    worker: Json  # spec of a template of machines
    control_plane: Json  # the same; {} if the control plane is hosted
    version: str
    args: tuple[str, ...]
    control_plane_args: tuple[str, ...]
    labels: Mapping[str, str]
    taints: tuple[Json, ...]
    plane_config: Json  # merged into what the distribution configures its control plane with
    worker_config: Json
    network_provider: str
    calico: Json
    pods: tuple[str, ...]
    services: tuple[str, ...]
    workers: int
    control_planes: int
    cluster_labels: Mapping[str, str] | None
    cluster_annotations: Mapping[str, str]
    health_check: str  # share of workers that may be unhealthy at once; '': none is replaced
    csi: bool
    csi_parameters: Mapping[str, str]
    api_arguments: Mapping[str, str] = field(default_factory=dict)  # of kube-apiserver
    files: tuple[Json, ...] = ()  # for machines of the control plane
    mounts: tuple[Json, ...] = ()  # for Pods of a hosted one

    @property
    def hosted(self) -> bool:
        return self.chart.hosted

    @property
    def network_addon(self) -> str:
        """The Pod network; '' if the cluster brings its own."""
        wanted = self.chart.distribution.network_addons and self.network_provider != "custom"
        return self.network_provider if wanted else ""


def read_config(chart: Chart, values: Mapping[str, Any]) -> tuple[ClusterConfig | None, list[Fault]]:
    """The values must match the schema of the chart."""
    reading = Reading(dict(values))
    made = _read(chart, reading)
    _check(chart, reading, made)
    if chart.distribution.name == "k0s":
        for cause in validate_cluster_config(reading.at("k0s.config"), "k0s.config"):
            reading.fault(cause.field, cause.message.removeprefix("Invalid value: "))
    return (None if reading.faults else made), reading.faults


def _check(chart: Chart, reading: Reading, made: ClusterConfig) -> None:
    """What does not change how the values are read."""
    check_host(reading, f"{chart.vendor.name}.controlPlaneEndpoint.host")
    check_sizes(reading, ("worker",) if chart.hosted else ("worker", "controlPlane"))
    check_labels(reading, f"{chart.distribution.name}.worker.labels")
    check_labels(reading, "clusterLabels")
    check_share(reading, "machineHealthCheck.maxUnhealthy")
    check_overlap(reading, {"pods": made.pods, "clusterNetwork.services.cidrBlocks": made.services})
    reading.faults[:] = dict.fromkeys(reading.faults)


def _read(chart: Chart, reading: Reading) -> ClusterConfig:
    vendor, standalone, at = chart.vendor, not chart.hosted, reading.at
    infrastructure, own = vendor.read(reading), chart.distribution.name
    endpoint = f"{vendor.name}.controlPlaneEndpoint"
    host = at(f"{endpoint}.host", "")
    if standalone and not host:
        reading.fault(f"{endpoint}.host", "is required: an address that is reserved for the API server")
    return ClusterConfig(
        chart=chart,
        infrastructure=infrastructure,
        host=host,
        host_port=int(at(f"{endpoint}.port", 6443)),
        worker=vendor.read_machine(reading, "worker"),
        control_plane=vendor.read_machine(reading, "controlPlane") if standalone else {},
        version=_version(reading, chart),
        args=tuple(at(f"{own}.args", ())),
        control_plane_args=tuple(at(f"{own}.controlPlane.args", ())),
        labels=dict(at(f"{own}.worker.labels", {})),
        taints=tuple(_taints(reading, own)),
        plane_config=dict(at(f"{own}.config") or at(f"{own}.controlPlane.config", {})),
        worker_config=dict(at(f"{own}.worker.config", {})),
        network_provider=_network(reading, chart),
        calico=dict(at(f"{own}.calico", {})),
        pods=_networks(reading, "pods", "podCIDR", _first_pool(reading) or POD_CIDR),
        services=_networks(reading, "services", "serviceCIDR", SERVICE_CIDR),
        workers=int(at("workersNumber", 1)),
        control_planes=int(at("controlPlaneNumber") or at(f"{own}.controlPlane.replicas") or (3 if standalone else 1)),
        cluster_labels=at("clusterLabels"),
        cluster_annotations=dict(at("clusterAnnotations", {})),
        health_check=at("machineHealthCheck.maxUnhealthy", "40%") if at("machineHealthCheck.enabled") else "",
        csi=at("csi.enabled", True),
        csi_parameters=vendor.csi_parameters(reading),
    )


def _version(reading: Reading, chart: Chart) -> str:
    distribution = chart.distribution
    path = f"{distribution.name}.version"
    text = str(reading.at(path, distribution.version))
    try:
        return distribution.normal(text)
    except ValueError as error:
        reading.fault(path, str(error))
        return text


def _network(reading: Reading, chart: Chart) -> str:
    """'' if the distribution leaves no choice."""
    plugins = chart.distribution.networks(chart.hosted)
    return str(reading.at("network.provider", plugins[0])) if plugins else ""


def _taints(reading: Reading, own: str) -> Iterator[Json]:
    path = f"{own}.worker.taints"
    for number, each in enumerate(reading.at(path, ())):
        if not each.get("key") or not each.get("effect"):
            reading.fault(f"{path}[{number}]", "key and effect are required")
            continue
        yield {name: each[name] for name in ("key", "value", "effect") if each.get(name)}


def _first_pool(reading: Reading) -> str:
    pools = reading.at("k0s.calico.ipPools") or [{}]
    return str(pools[0].get("cidr") or "")


def _networks(reading: Reading, kind: str, old: str, default: str) -> tuple[str, ...]:
    path = f"clusterNetwork.{kind}.cidrBlocks"
    found = reading.at(path) or [reading.at(f"network.{old}", default)]
    for each in found:
        try:
            ip_network(each)
        except ValueError as error:
            reading.fault(path, f"{error}: expected a network in CIDR notation, for example {default}")
    return tuple(found)
