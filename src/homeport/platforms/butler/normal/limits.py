"""The most that clusters of a team may use, and what they may be made of."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from homeport.api.butler.v1alpha1.butlerconfig import DefaultTeamLimits
from homeport.api.butler.v1alpha1.team import TeamLimits
from homeport.machinery.quantity import Quantity, QuantityError, parse_quantity
from homeport.platforms.butler.normal.outcome import Reading


@dataclass(frozen=True, slots=True)
class Limits:
    """None and (): no limit."""

    clusters: int | None = None
    nodes_per_cluster: int | None = None
    nodes: int | None = None
    cpu: Quantity | None = None
    memory: Quantity | None = None
    storage: Quantity | None = None
    versions: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    addons: tuple[str, ...] = ()
    denied_addons: tuple[str, ...] = ()

    def under(self, other: Limits) -> Limits:
        """These, and for what they leave open those of the other."""
        mine = {name: value for name in _NAMES if (value := getattr(self, name)) not in (None, ())}
        return replace(other, **mine)


_NAMES = tuple(each.name for each in fields(Limits))


def read_default_limits(reading: Reading, given: DefaultTeamLimits | None) -> Limits:
    if given is None:
        return Limits()
    path = "spec.defaultTeamLimits"
    return Limits(
        clusters=given.max_clusters,
        nodes_per_cluster=given.max_workers_per_cluster,
        cpu=_quantity(reading, f"{path}.maxTotalCPU", given.max_total_cpu),
        memory=_quantity(reading, f"{path}.maxTotalMemory", given.max_total_memory),
        storage=_quantity(reading, f"{path}.maxTotalStorage", given.max_total_storage),
    )


def read_limits(reading: Reading, path: str, given: TeamLimits | None) -> Limits:
    if given is None:
        return Limits()
    per_cluster = reading.either(
        (f"{path}.maxNodesPerCluster", given.max_nodes_per_cluster),
        (f"{path}.maxWorkersPerCluster", given.max_workers_per_cluster),
    )
    nodes = reading.either(
        (f"{path}.maxTotalNodes", given.max_total_nodes), (f"{path}.maxTotalWorkers", given.max_total_workers)
    )
    return Limits(
        clusters=given.max_clusters,
        nodes_per_cluster=per_cluster,
        nodes=nodes,
        cpu=_quantity(reading, f"{path}.maxCPUCores", given.max_cpu_cores),
        memory=_quantity(reading, f"{path}.maxMemory", given.max_memory),
        storage=_quantity(reading, f"{path}.maxStorage", given.max_storage),
        versions=tuple(given.allowed_kubernetes_versions),
        providers=tuple(given.allowed_providers),
        addons=tuple(given.allowed_addons),
        denied_addons=tuple(given.denied_addons),
    )


def _quantity(reading: Reading, path: str, text: str | int) -> Quantity | None:
    if text == "":
        return None
    try:
        found = parse_quantity(text)
    except QuantityError:
        reading.fault(path, f'"{text}" is not a quantity: write for example 64 or 256Gi')
        return None
    if found.amount < 0:
        reading.fault(path, f"{text} is negative: a limit is 0 or more")
    return found
