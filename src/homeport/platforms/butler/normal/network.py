"""NetworkPool and IPAllocation."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.api.butler.v1alpha1 import IPAllocation, NetworkPool
from homeport.machinery.address import AddressSet
from homeport.platforms.butler.normal.addresses import NONE, check_hosts, read_network, read_pool, read_range
from homeport.platforms.butler.normal.outcome import Normal, Reading

NODES_PER_TENANT = 5
LB_POOL_PER_TENANT = 8


@dataclass(frozen=True, slots=True)
class NetworkModel:
    whole: AddressSet  # all of its addresses
    usable: AddressSet  # what may be given out: without reservations, network and broadcast address
    nodes_per_tenant: int
    lb_per_tenant: int


def normal_network_pool(pool: NetworkPool) -> Normal[NetworkModel]:
    reading, spec = Reading(), pool.spec
    network, usable = _read_addresses(reading, "spec.cidr", spec.cidr)
    check_hosts(reading, "spec.cidr", network)
    part = read_pool(reading, "spec.tenantAllocation", spec.tenant_allocation)
    if part:
        if not network.covers(part):
            reading.fault("spec.tenantAllocation", f"{part} is not inside spec.cidr ({spec.cidr})")
        usable = part
    for i, each in enumerate(spec.reserved):
        path = f"spec.reserved[{i}].cidr"
        reserved = read_range(reading, path, each.cidr)
        if reserved and not network.covers(reserved):
            reading.fault(path, f"{reserved} is not inside spec.cidr ({spec.cidr})")
        usable = usable.without(reserved)
    if not reading.faults and not usable:
        reading.fault("spec.reserved", "all addresses of the pool are reserved: none is left for clusters")
    defaults = spec.tenant_allocation.defaults if spec.tenant_allocation else None
    return reading.result(
        lambda: NetworkModel(
            network,
            usable,
            (defaults.nodes_per_tenant if defaults else None) or NODES_PER_TENANT,
            (defaults.lb_pool_per_tenant if defaults else None) or LB_POOL_PER_TENANT,
        )
    )


def _read_addresses(reading: Reading, path: str, text: str) -> tuple[AddressSet, AddressSet]:
    """All addresses of networks and ranges, and those that hosts can have. A range is meant as it is written."""
    whole, usable = AddressSet(), AddressSet()
    for each in text.split(","):
        part = (read_network if "/" in each else read_range)(reading, path, each.strip())
        if whole and part and part.version != whole.version:
            reading.fault(path, f"{part} is IPv{part.version}, and {whole} is IPv{whole.version}: use a pool for each")
            break
        whole = joined(whole, part)
        usable = joined(usable, _ends(part) if "/" in each else part)
    return whole, usable


def joined(one: AddressSet, other: AddressSet) -> AddressSet:
    return AddressSet.parse(each.strip() for part in (one, other) if part for each in str(part).split(","))


def _ends(network: AddressSet) -> AddressSet:
    """A whole network without its first and, for IPv4, its last address, which no host can have."""
    if network.count <= 2:
        return network
    low, high = network.spans[0]
    return AddressSet(network.version, ((low + 1, high - 1 if network.version == 4 else high),))


@dataclass(frozen=True, slots=True)
class AllocationModel:
    pool: str
    tenant: tuple[str, str]  # namespace and name
    type: str
    count: int | None
    pinned: AddressSet


def normal_ip_allocation(allocation: IPAllocation) -> Normal[AllocationModel]:
    reading, spec = Reading(), allocation.spec
    pinned = NONE
    if spec.pinned_range is not None:
        text = f"{spec.pinned_range.start_address}-{spec.pinned_range.end_address}"
        pinned = read_range(reading, "spec.pinnedRange", text)
    if pinned and spec.count is not None and spec.count != pinned.count:
        reading.fault("spec.count", f"{spec.count} contradicts spec.pinnedRange, which has {pinned.count} addresses")
    tenant = (spec.tenant_cluster_ref.namespace, spec.tenant_cluster_ref.name)
    return reading.result(lambda: AllocationModel(spec.pool_ref.name, tenant, spec.type, spec.count, pinned))
