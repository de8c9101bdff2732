"""Fields of NetworkPools and IPAllocations."""

from __future__ import annotations

from collections.abc import Mapping

FIELDS: Mapping[str, str] = {
    "NetworkPoolSpec.cidr": "Network of the pool in CIDR notation, for example 10.40.1.0/24.",
    "Reservation.cidr": "Addresses in CIDR notation, for example 10.40.1.0/29.",
    "Reservation.description": "What the addresses are reserved for.",
    "IPAllocationStatus.cidr": "Addresses in CIDR notation, if they make up a network.",
    "reserved": "Addresses of the network that are not given out.",
    "tenantAllocation": "Part of the network that tenant clusters get addresses from. Default: all of it.",
    "TenantAllocation.defaults": "How many addresses a tenant cluster gets.",
    "nodesPerTenant": "Number of addresses for nodes. Default: 5.",
    "lbPoolPerTenant": "Number of addresses for load balancers. Default: 8.",
    "totalIPs": "Number of addresses that can be given out.",
    "allocatedIPs": "Number of addresses that are given out.",
    "allocationCount": "Number of IPAllocations of the pool.",
    "fragmentationPercent": "Share of the free addresses outside the largest free block, in percent.",
    "largestFreeBlock": "Number of addresses of the largest free block.",
    "poolRef": "NetworkPool of the same namespace that the addresses come from.",
    "tenantClusterRef": "TenantCluster that the addresses are for.",
    "IPAllocationSpec.type": "What the addresses are for: nodes, loadbalancer or endpoint (the API server).",
    "count": "Number of addresses. Default: the one of the pool.",
    "pinnedRange": "Addresses that it must have. Default: any free ones.",
    "startAddress": "First IP address of the range, for example 10.40.0.201.",
    "endAddress": "Last IP address of the range, for example 10.40.0.250.",
    "addresses": "All addresses of the allocation.",
    "allocatedCount": "Number of addresses of the allocation.",
    "allocatedAt": "Time at which the addresses were given out, in RFC 3339 format.",
    "allocatedBy": "Controller that gave out the addresses.",
    "releasedAt": "Time at which the addresses were returned, in RFC 3339 format.",
}  # fmt: skip
