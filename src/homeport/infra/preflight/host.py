"""The control plane's endpoint and the cluster's networks, checked before the first machine exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.contract import Endpoint
from homeport.capi.family import canonical, family_of
from homeport.capi.name import Condition
from homeport.infra.machine.address import pools_of
from homeport.infra.preflight.pool import FindPool, pool_with
from homeport.infra.protocol import Check, ClusterScope

ENDPOINT = Condition.CONTROL_PLANE_ENDPOINT_FREE
NETWORKS = Condition.NETWORKS_DISJOINT

Scope = ClusterScope[Any, Any]


def bad_endpoint(reason: str, message: str) -> Check:
    return Check(ENDPOINT, False, reason, f"spec.controlPlaneEndpoint.host: {message}")


def cluster_networks(cluster: Cluster) -> list[IPv4Network | IPv6Network]:
    """Of Pods and Services."""
    network = cluster.spec.cluster_network
    blocks = [*network.pods.cidr_blocks, *network.services.cidr_blocks]
    return [ip_network(each, strict=False) for each in blocks if family_of(each)]


def check_host(scope: Scope, clusters: Iterable[Any], find_pool: FindPool) -> list[Check]:
    """What can be seen without asking the vendor. `clusters`: all InfraClusters of the kind."""
    host = scope.infra.spec.control_plane_endpoint.host
    if not host:
        return _check_no_host(scope)
    for network in cluster_networks(scope.cluster):
        if family_of(host) == network.version and ip_address(host) in network:
            text = f"{host} is in {network}, a network of Pods or Services of Cluster {scope.name}"
            return [
                bad_endpoint("EndpointInClusterNetwork", f"{text}: choose an address in the subnet of the machines")
            ]
    spelled = canonical(host)
    for other in clusters:
        same = canonical(other.spec.control_plane_endpoint.host) == spelled
        if same and other.metadata.uid != scope.infra.metadata.uid:
            named = f"{type(other).__resource__.kind} {other.metadata.namespace}/{other.metadata.name}"
            return [bad_endpoint("EndpointInUse", f"{host} is already the endpoint of {named}: choose another")]
    return _check_own_pools(scope, host, find_pool)


def check_kept(scope: Scope) -> list[Check]:
    """Of a provisioned cluster: its certificates and kubeconfigs name the endpoint that the Cluster took."""
    offered, used = scope.infra.spec.control_plane_endpoint, scope.cluster.spec.control_plane_endpoint
    # A DNS name of the Cluster may lead to the address.
    comparable = family_of(offered.host) and family_of(used.host)
    if not comparable or (canonical(offered.host), offered.port or used.port) == (canonical(used.host), used.port):
        return [Check(ENDPOINT, True)]
    shown = Endpoint(used.host, used.port)
    text = f"{Endpoint(offered.host, offered.port)} has no effect: Cluster {scope.name} uses {shown}: set it back"
    return [Check(ENDPOINT, False, "EndpointChanged", f"spec.controlPlaneEndpoint: {text}", advisory=True)]


def _check_no_host(scope: Scope) -> list[Check]:
    if scope.plan.endpoint_supplied or scope.cluster.spec.control_plane_endpoint.host:
        return [Check(ENDPOINT, True)]
    for plan in scope.plan.machines:
        if plan.control_plane and plan.missing:  # it may supply one
            return [Check(ENDPOINT, False, "WaitingForControlPlane", plan.missing, waiting=True)]
    text = "spec.controlPlaneEndpoint.host is empty: give a free address in the network of the machines"
    return [Check(ENDPOINT, False, "EndpointMissing", text)]


def _check_own_pools(scope: Scope, host: str, find_pool: FindPool) -> list[Check]:
    """Sooner or later a machine would get the address of its control plane."""
    namespace, shared = scope.infra.metadata.namespace, ""
    for plan in scope.plan.machines if family_of(host) else ():
        if plan.template is not None:
            shared = shared or pool_with(namespace, pools_of(plan.template.spec.template), find_pool, host)
    if not shared:
        return [Check(ENDPOINT, True)]
    text = f"{host} is in {shared}, which assigns addresses to machines"
    return [
        bad_endpoint("EndpointInPool", f"{text}: choose another address, or add it to excludedAddresses of the pool")
    ]


def check_reach(scope: Scope, address: IPv4Address | IPv6Address, networks: Mapping[str, str]) -> list[Check]:
    """Machines announce the address on their own network. `networks`: by name; '' where its addresses are not known."""
    if scope.plan.endpoint_supplied:  # a hosted control plane: no machine announces it
        return [Check(ENDPOINT, True)]
    known = [ip_network(each, strict=False) for each in networks.values() if each]
    if not known or len(known) < len(networks) or any(address in each for each in known):
        return [Check(ENDPOINT, True)]
    shown = ", ".join(f"{name.partition(' ')[2]} ({cidr})" for name, cidr in networks.items())
    text = f"{address} is outside the subnets of the machines ({shown}): it must be routed to be reachable"
    return [Check(ENDPOINT, False, "EndpointOutsideSubnet", f"spec.controlPlaneEndpoint.host: {text}", advisory=True)]


def check_disjoint(scope: Scope, networks: Mapping[str, str]) -> list[Check]:
    for name, cidr in networks.items():
        for network in cluster_networks(scope.cluster) if cidr else ():
            machines = ip_network(cidr, strict=False)
            if machines.version == network.version and machines.overlaps(network):
                text = (
                    f"{name} ({machines}) overlaps with {network} in spec.clusterNetwork of "
                    f"Cluster {scope.name}: Pods can't reach machines with addresses in both"
                )
                return [Check(NETWORKS, False, "NetworksOverlap", text, advisory=True)]
    return [Check(NETWORKS, True)]
