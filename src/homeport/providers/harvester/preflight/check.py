"""Everything that can be found wrong with a cluster before its first machine exists.

That the kubeconfig is valid, and the server answers with a certificate that it trusts, is proven by the session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster
from homeport.api.meta import Unstructured
from homeport.infra.error import Denied
from homeport.infra.machine.address import pools_of
from homeport.infra.preflight.check import REFERENCES, passed
from homeport.infra.preflight.host import bad_endpoint, check_disjoint, check_host, check_kept, check_reach
from homeport.infra.preflight.name import Lookup, check_name, look_up
from homeport.infra.preflight.near import near
from homeport.infra.preflight.plan import MachinePlan
from homeport.infra.preflight.pool import FindPool, read_pool
from homeport.infra.protocol import Check
from homeport.machinery.address import AddressSet, parse_span
from homeport.providers.harvester.endpoint import Scope, front, front_key
from homeport.providers.harvester.image import parse_name
from homeport.providers.harvester.infracluster import permission
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.permission import networks_of
from homeport.providers.harvester.infracluster.resource import CLUSTER_UID, IP_POOL, LOAD_BALANCER, NETWORK, VMI
from homeport.providers.harvester.machine.plan import namespace_of
from homeport.providers.harvester.preflight import capacity, reference
from homeport.providers.harvester.preflight.reference import Template, route_of
from homeport.runtime.cache import labels_of

VERSION = "VersionSupported"
LEAST = (1, 3, 0)
_NUMBERS = re.compile(r"^v?(\d+)\.(\d+)(?:\.(\d+))?")

FindClusters = Callable[[], Iterable[KubevirtCluster]]


class Preflight:
    def __init__(self, clusters: FindClusters, find_pool: FindPool, lookup: Lookup = look_up) -> None:
        self._lookup = lookup
        self._clusters = clusters
        self._find_pool = find_pool

    # -- templates ---------------------------------------------------------------------------------------------

    async def check_references(
        self, session: HarvesterSession, plans: Sequence[MachinePlan], namespace: str
    ) -> Sequence[Check]:
        """Each step needs those before it: what an account may not read can't be checked."""
        checks = await check_release(session)
        checks += await permission.check_machines(session, [each.template.spec.template.spec for each in plans])
        if not passed(checks):
            return checks
        for plan in plans:
            checks += await reference.check(Template(session, plan))
            checks += self._check_pools(session, plan, namespace)
        return list(dict.fromkeys(checks))

    def _check_pools(self, session: HarvesterSession, plan: MachinePlan, namespace: str) -> list[Check]:
        template, checks = Template(session, plan), []
        for number, ref in enumerate(pools_of(plan.template.spec.template)):
            _, problem = read_pool(namespace, ref, self._find_pool)
            if problem is not None:
                field = f"spec.template.spec.addressesFromPools[{number}]"
                checks.append(template.bad(field, *problem, waiting=True))
        return checks

    async def check_capacity(self, session: HarvesterSession, plans: Sequence[MachinePlan]) -> Sequence[Check]:
        return await capacity.check(session, plans)

    # -- the cluster itself ------------------------------------------------------------------------------------

    async def run(self, scope: Scope) -> Sequence[Check]:
        if scope.provisioned:
            # Its own machines hold the address by now.
            return await check_name(scope, self._lookup) or check_kept(scope) if front(scope) is None else []
        kind, left = front(scope), await permission.check_balancers(scope.session)
        if kind is None:
            return [*await self._check_address(scope), *left]
        checks = await permission.check_front(scope.session, kind, front_key(scope, kind).namespace)
        if kind is LOAD_BALANCER and passed(checks):
            checks += await _check_balancer(scope)
        return [*checks, *left]

    async def _check_address(self, scope: Scope) -> list[Check]:
        """A virtual address that the machines announce themselves: nobody else may have it or give it out."""
        checks = check_host(scope, self._clusters(), self._find_pool)
        try:
            address = ip_address(scope.infra.spec.control_plane_endpoint.host)
        except ValueError:
            return [*checks, *await check_name(scope, self._lookup)]
        if not passed(checks):
            return checks
        networks = await _networks_used(scope)
        wrong = _check_gateway(address, networks) or await _check_ip_pools(scope, address)
        wrong = wrong or await _check_holder(scope, address)
        if wrong:
            return wrong
        ranges = {f"network {each.namespace}/{each.name}": _subnet(each) for each in networks}
        return [*check_reach(scope, address, ranges), *check_disjoint(scope, ranges)]


async def check_release(session: HarvesterSession) -> list[Check]:
    """Builds that have no number are those of developers, who know best."""
    if not session.harvester:
        return []
    try:
        said = await session.setting("server-version")
    except Denied:
        return []
    found = _NUMBERS.match(said)
    if found is None or tuple(int(each or 0) for each in found.groups()) >= LEAST:
        return [Check(VERSION, True)]
    least = ".".join(map(str, LEAST))
    text = f"{session.access.server} runs Harvester {said}: version {least} or later is required: upgrade Harvester"
    return [Check(VERSION, False, "VersionTooOld", text)]


async def _check_balancer(scope: Scope) -> list[Check]:
    """That an address can be given to the LoadBalancer in front of the control plane."""
    balancer = scope.infra.spec.control_plane_load_balancer
    if balancer is None or balancer.ipam != "pool" or not scope.session.harvester:
        return []
    try:
        pools = await scope.session.list(IP_POOL)
    except Denied:
        return []
    field, name = "spec.controlPlaneLoadBalancer.ipPool", balancer.ip_pool
    chosen = [each for each in pools if not name or each.name == name]
    if not chosen:
        close = near(name, [each.name for each in pools]) if name else ""
        what = f"IPPool {name!r} does not exist" if name else "no IPPool exists"
        text = f"{field}: {what}: create it in the Harvester dashboard, Networks, IP Pools{close}"
        return [Check(REFERENCES, False, "NotFound", text)]
    own = f"{front_key(scope, LOAD_BALANCER)}"
    if any(_available(each) or own in ((each.get("status") or {}).get("allocated") or {}).values() for each in chosen):
        return []
    shown = ", ".join(each.name for each in chosen)
    text = f"{field}: IPPool {shown} has no free address: add a range, or delete unused LoadBalancers"
    return [Check(REFERENCES, False, "IPPoolExhausted", text)]


def _available(pool: Unstructured) -> bool:
    status = pool.get("status") or {}
    return bool(status.get("available", 1))


async def _networks_used(scope: Scope) -> list[Unstructured]:
    """NetworkAttachmentDefinitions of control planes: these announce the address."""
    found: dict[str, Unstructured] = {}
    for plan in scope.plan.machines:
        if plan.template is None or not plan.control_plane:
            continue
        spec = plan.template.spec.template.spec
        for text in networks_of(spec)[:1]:
            key = parse_name(text, namespace_of(spec, scope.session))
            for each in await scope.session.shown(NETWORK, key.namespace) if text else ():
                if each.name == key.name:
                    found[each.uid] = each
    return list(found.values())


def _subnet(network: Unstructured) -> str:
    text = str(route_of(network).get("cidr") or "")
    try:
        return str(ip_network(text, strict=False)) if text else ""
    except ValueError:
        return ""


def _check_gateway(address: IPv4Address | IPv6Address, networks: Sequence[Unstructured]) -> list[Check]:
    for each in networks:
        route = route_of(each)
        named = {
            str(route.get("gateway") or ""): "the gateway",
            str(route.get("serverIPAddr") or ""): "the DHCP server",
        }
        for text, what in named.items():
            if text and text.partition("/")[0] == str(address):
                message = f"{address} is {what} of network {each.namespace}/{each.name}: choose a free address"
                return [bad_endpoint("EndpointInUse", message)]
    return []


async def _check_ip_pools(scope: Scope, address: IPv4Address | IPv6Address) -> list[Check]:
    if not scope.session.harvester:
        return []
    try:
        pools = await scope.session.list(IP_POOL)
    except Denied:
        return []
    for pool in pools:
        for text in _ranges(pool):
            if parse_span(text)[0].version == address.version and address in AddressSet.parse([text]):
                message = (
                    f"{address} is in IPPool {pool.name} ({text}), which assigns addresses to load balancers: choose "
                    "an address outside of IPPools and of the range of the DHCP server"
                )
                return [bad_endpoint("EndpointInPool", message)]
    return []


def _ranges(pool: Unstructured) -> list[str]:
    """Those of a pool that can be read; without both ends it is the whole subnet."""
    found = []
    for each in (pool.get("spec") or {}).get("ranges") or ():
        first, last = each.get("rangeStart"), each.get("rangeEnd")
        text = f"{first}-{last}" if first and last else str(each.get("subnet") or "")
        try:
            parse_span(text)
        except ValueError:
            continue
        found.append(text)
    return found


async def _check_holder(scope: Scope, address: IPv4Address | IPv6Address) -> list[Check]:
    """A VM that has the address got it from DHCP or has it configured: either way it is not free."""
    try:
        instances = await scope.session.list(VMI)
    except Denied:
        instances = await scope.session.list(VMI, scope.session.namespace)
    for vmi in instances:
        if labels_of(vmi).get(CLUSTER_UID) == scope.infra.metadata.uid:
            continue
        for interface in (vmi.get("status") or {}).get("interfaces") or ():
            if str(address) in (interface.get("ipAddress"), *(interface.get("ipAddresses") or ())):
                message = (
                    f"VM {vmi.namespace}/{vmi.name} already has the address {address}: choose an address outside of "
                    "the range of the DHCP server"
                )
                return [bad_endpoint("EndpointInUse", message)]
    return []
