"""NetworkPool and IPAllocation: addresses, and who has which of them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.butler.v1alpha1.part import (
    GROUP,
    VERSION,
    Address,
    LocalRef,
    NamespacedRef,
    Percent,
    Pool,
    Positive,
    Text,
)
from homeport.api.field import Conditions, Long, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Required

ALLOCATION_TYPES = ("nodes", "loadbalancer", "endpoint")


class Reservation(Model):
    """Addresses of a pool that are not given out."""

    cidr: Required[Text] = ""
    description: str = ""


class AllocationDefaults(Model):
    """How many addresses a tenant cluster gets."""

    nodes_per_tenant: Positive | None = None
    lb_pool_per_tenant: Positive | None = None


class TenantAllocation(Pool):
    """The part of a pool that tenant clusters get addresses from."""

    defaults: AllocationDefaults | None = None


class NetworkPoolSpec(Model):
    """The addresses of a pool."""

    cidr: Required[Text] = ""
    reserved: Annotated[list[Reservation], ListType("atomic")] = []
    tenant_allocation: TenantAllocation | None = None


class NetworkPoolStatus(Model):
    """How many addresses are free."""

    conditions: Conditions = []
    observed_generation: Long = 0
    total_ips: int = msgspec.field(default=0, name="totalIPs")
    allocated_ips: int = msgspec.field(default=0, name="allocatedIPs")
    available_ips: int = msgspec.field(default=0, name="availableIPs")
    allocation_count: int = 0
    fragmentation_percent: Percent = 0
    largest_free_block: int = 0


@resource(GROUP, VERSION, "NetworkPool", "networkpools")
class NetworkPool(Object):
    """A NetworkPool is a range of addresses for nodes, API servers and load balancers."""

    spec: Required[NetworkPoolSpec] = msgspec.field(default_factory=NetworkPoolSpec)
    status: NetworkPoolStatus = msgspec.field(default_factory=NetworkPoolStatus)


class PinnedRange(Model):
    """Addresses that an allocation must have."""

    start_address: Required[Address] = ""
    end_address: Required[Address] = ""


class IPAllocationSpec(Model):
    """The addresses that a tenant cluster needs."""

    pool_ref: Required[LocalRef] = msgspec.field(default_factory=LocalRef)
    tenant_cluster_ref: Required[NamespacedRef] = msgspec.field(default_factory=NamespacedRef)
    type: Required[Annotated[str, Enum(ALLOCATION_TYPES)]] = ""
    count: Positive | None = None
    pinned_range: PinnedRange | None = None


class IPAllocationStatus(Model):
    """The addresses that a tenant cluster has."""

    conditions: Conditions = []
    observed_generation: Long = 0
    phase: Annotated[str, Enum(("Pending", "Allocated", "Released", "Failed"))] = ""
    cidr: str = ""
    start_address: str = ""
    end_address: str = ""
    addresses: list[str] = []
    allocated_count: int = 0
    allocated_at: Time | None = None
    allocated_by: str = ""
    released_at: Time | None = None


@resource(GROUP, VERSION, "IPAllocation", "ipallocations")
class IPAllocation(Object):
    """An IPAllocation is a range of addresses that belongs to one tenant cluster."""

    spec: Required[IPAllocationSpec] = msgspec.field(default_factory=IPAllocationSpec)
    status: IPAllocationStatus = msgspec.field(default_factory=IPAllocationStatus)
