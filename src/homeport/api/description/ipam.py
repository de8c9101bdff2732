"""Fields of pools, claims and addresses."""

from __future__ import annotations

from collections.abc import Mapping

FIELDS: Mapping[str, str] = {
    "InClusterIPPool.spec": "Addresses that the pool gives to claims of its own namespace, and their network.",
    "GlobalInClusterIPPool.spec": "Addresses that the pool gives to claims of any namespace, and their network.",
    "InClusterIPPool.status": "How many addresses of the pool are in use and free.",
    "GlobalInClusterIPPool.status": "How many addresses of the pool are in use and free.",
    "addresses": "Addresses to give out, all of one IP family: single ones (10.0.0.5), ranges (10.0.0.10-10.0.0.20) or "
    "networks (10.0.1.0/24).",
    "subnet": "Network that addresses are taken from, in CIDR notation, for example 10.0.1.0/24.",
    "first": "First address of the range to give out, for example 10.0.0.10.",
    "start": "First address of the range to give out, for example 10.0.0.10.",
    "last": "Last address of the range to give out, for example 10.0.0.20.",
    "end": "Last address of the range to give out, for example 10.0.0.20.",
    "prefix": "Length of the network prefix, for example 24 for a netmask of 255.255.255.0.",
    "gateway": "IP address of the network's default gateway, for example 10.0.0.1. It is never given out.",
    "PoolSpec.allocateReservedIPAddresses": "True also gives out the first and the last address of a network, which are "
    "usually reserved. Default: false.",
    "PoolSpec.excludedAddresses": "Addresses of the pool that are never given out, in the same forms as addresses.",
    "PoolSpec.addressReuseGracePeriodSeconds": "Seconds that an address stays unused after its claim was deleted. Default: 0.",
    "PoolStatus.ipAddresses": "Number of addresses in the pool. Numbers too large for clients are shown as the largest that "
    "they can read.",
    "PoolUsage.total": "Number of addresses that the pool can give out, used ones included.",
    "PoolUsage.free": "Number of addresses that the pool can still give out.",
    "PoolUsage.used": "Number of addresses that claims hold.",
    "PoolUsage.outOfRange": "Number of addresses that claims hold although the pool no longer contains them.",
    "IPAddress.spec": "The address, its network, and the claim and pool that it belongs to.",
    "IPAddressSpec.address": "The IP address that was given out, for example 10.0.0.12 or 2001:db8::12.",
    "IPAddressSpec.claimRef": "IPAddressClaim of the same namespace that the address was given to.",
    "IPAddressSpec.poolRef": "Pool that the address was taken from.",
    "IPAddressClaim.spec": "Pool that the claim asks for an address.",
    "IPAddressClaim.status": "Address that the claim was given, and conditions.",
    "IPAddressClaimSpec.clusterName": "Name of the Cluster that the claim belongs to. The claim is paused with its Cluster.",
    "IPAddressClaimSpec.poolRef": "Pool to take an address from, for example an InClusterIPPool of the same namespace.",
    "IPAddressClaimStatus.addressRef": "IPAddress of the same namespace that the claim was given.",
    "IPAddressReference.name": "Name of the IPAddress that the claim was given.",
    "IPAddressClaimReference.name": "Name of the IPAddressClaim that the address was given to.",
    "IPPoolReference.apiGroup": "API group of the pool, for example ipam.cluster.x-k8s.io.",
    "IPPoolReference.kind": "Kind of the pool: InClusterIPPool or GlobalInClusterIPPool, or a kind of your own.",
    "IPPoolReference.name": "Name of the pool. A pool that has a namespace is in that of the claim.",
}  # fmt: skip
