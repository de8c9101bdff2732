"""What a cluster uses of its team's limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from homeport.machinery.quantity import BINARY, Quantity
from homeport.platforms.butler.normal.sizes import GIB, MIB
from homeport.platforms.butler.normal.tenant import TenantModel


@dataclass(frozen=True, slots=True)
class Demand:
    """Of one cluster or of several. Only workers count: hosted control planes run on the platform's own machines."""

    clusters: int = 0
    nodes: int = 0
    cpu: int = 0
    memory: int = 0  # bytes
    storage: int = 0  # bytes

    def __add__(self, other: Demand) -> Demand:
        return Demand(
            self.clusters + other.clusters,
            self.nodes + other.nodes,
            self.cpu + other.cpu,
            self.memory + other.memory,
            self.storage + other.storage,
        )

    def at_least(self, other: Demand) -> Demand:
        """The larger one of each amount."""
        return Demand(
            max(self.clusters, other.clusters),
            max(self.nodes, other.nodes),
            max(self.cpu, other.cpu),
            max(self.memory, other.memory),
            max(self.storage, other.storage),
        )


def demand_of(model: TenantModel) -> Demand:
    """Control planes on machines of their own count as well: as many and as large as the first pool's workers."""
    first = model.pools[0]
    planes = 0 if model.hosted else model.replicas
    sizes = [(each.replicas, each) for each in model.pools] + [(planes, first)]
    return Demand(
        clusters=1,
        nodes=sum(count for count, _ in sizes),
        cpu=sum(count * each.cpu for count, each in sizes),
        memory=sum(count * each.memory_mib * MIB for count, each in sizes),
        storage=sum(count * each.disk_gib * GIB for count, each in sizes),
    )


def total(demands: Iterable[Demand]) -> Demand:
    return sum(demands, Demand())


def as_bytes(amount: int) -> Quantity:
    return Quantity(Decimal(amount), BINARY)
