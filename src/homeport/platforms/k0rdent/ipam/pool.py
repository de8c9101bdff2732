"""The pools of a ClusterIPAMClaim, and what is wrong with it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any

from homeport.api.ipam.v1alpha2 import GROUP as POOL_GROUP
from homeport.api.k0rdent.v1beta1.ipam import AddressSpace, ClusterIPAMClaimSpec
from homeport.machinery.address import AddressSet

Json = dict[str, Any]

IN_CLUSTER = "in-cluster"
NODE_NETWORK = "nodeNetwork"
_NETWORKS = {NODE_NETWORK: "node_network", "clusterNetwork": "cluster_network", "externalNetwork": "external_network"}
_ENDINGS = {NODE_NETWORK: "node", "clusterNetwork": "cluster", "externalNetwork": "external"}
POOL_KIND = "InClusterIPPool"


def networks_of(spec: ClusterIPAMClaimSpec) -> dict[str, AddressSpace]:
    """By the name of the field."""
    found = {name: getattr(spec, attribute) for name, attribute in _NETWORKS.items()}
    return {name: each for name, each in found.items() if each is not None}


def claim_error(spec: ClusterIPAMClaimSpec) -> str:
    networks = networks_of(spec)
    if not networks:
        return "set nodeNetwork, clusterNetwork or externalNetwork"
    return "; ".join(f"spec.{name}{text}" for name, space in networks.items() for text in _faults(space))


def _faults(space: AddressSpace) -> Iterator[str]:
    try:
        network = ip_network(space.cidr) if space.cidr else None
    except ValueError:
        yield f'.cidr: "{space.cidr}" is not a network: expected for example 10.0.0.0/24'
        return
    if network is None and not space.ip_addresses:
        yield ": set ipAddresses or cidr"
    if network is None and space.prefix is None:
        yield ".prefix is required without cidr: the length of the network's prefix, for example 24"
    for each in space.ip_addresses:
        try:
            AddressSet.parse([each])
        except ValueError:
            yield f'.ipAddresses: "{each}" is not an address, a range FIRST-LAST or a network'
    if space.gateway:
        try:
            ip_address(space.gateway)
        except ValueError:
            yield f'.gateway: "{space.gateway}" is not an address'


def pool_name(ipam: str, network: str) -> str:
    return f"{ipam}-{_ENDINGS[network]}"


def pool_spec(space: AddressSpace) -> Json:
    prefix = space.prefix if space.prefix is not None else ip_network(space.cidr).prefixlen
    made: Json = {"addresses": list(space.ip_addresses) or [space.cidr], "prefix": prefix}
    return {**made, "gateway": space.gateway} if space.gateway else made


def pool_reference(name: str) -> Json:
    return {"apiGroup": POOL_GROUP, "kind": POOL_KIND, "name": name}


def provider_config(space: AddressSpace, pool: str) -> Json:
    """What templates get as values."""
    made = {"ipPool": pool_reference(pool), **pool_spec(space)}
    return {**made, "cidr": space.cidr} if space.cidr else made
