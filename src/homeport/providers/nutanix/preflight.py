"""Everything that can be found wrong with a cluster before its first machine exists."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeVar

from homeport.api.nutanix.v1beta1 import Identifier, MachineSpec, NutanixCluster
from homeport.capi.family import canonical, family_of
from homeport.infra.error import Denied, ProviderError, Throttled, Unreachable, policy_of
from homeport.infra.plan import MachinePlan
from homeport.infra.preflight import CAPACITY, REFERENCES, passed
from homeport.infra.protocol import Check, ClusterScope
from homeport.providers.nutanix.address import FindPool, check_pools, pool_with
from homeport.providers.nutanix.connection import PrismSession
from homeport.providers.nutanix.metro import UNSUPPORTED, refusal
from homeport.providers.nutanix.plan import CLUSTER_CATEGORY, FindDomain, size_of
from homeport.providers.nutanix.prism.record import Element, Image, Subnet, Vm

T = TypeVar("T")
Scope = ClusterScope[NutanixCluster, PrismSession]

Place = tuple[Identifier | None, Sequence[Identifier]]  # a Prism Element and its subnets
ENDPOINT = "ControlPlaneEndpointFree"
NETWORKS = "NetworksDisjoint"
DOMAINS = "FailureDomainsValidated"
NO_DOMAINS = "NoFailureDomainsConfigured"

# Systems that don't read what others read: by what their images are called.
_IMMUTABLE = re.compile(r"flatcar|coreos", re.IGNORECASE)
_TALOS = re.compile(r"talos", re.IGNORECASE)
# A version of Kubernetes in the name of an image; systems and container runtimes have other numbers.
_KUBERNETES = re.compile(r"(?<![\d.])v?(1\.[2-9]\d\.\d+)(?![\d.]*\d)")


@dataclass(frozen=True, slots=True)
class Domain:
    name: str
    cluster: Identifier | None
    subnets: Sequence[Identifier]
    control_plane: bool = True


FindClusters = Callable[[], Iterable[NutanixCluster]]


class Preflight:
    def __init__(self, find_domain: FindDomain, clusters: FindClusters, find_pool: FindPool) -> None:
        self._find_domain = find_domain
        self._find_pool = find_pool
        self._clusters = clusters

    async def run(self, scope: Scope) -> Sequence[Check]:
        """What is wrong with the cluster itself."""
        checks = [*await self._check_domains(scope), *await self._check_domain_pools(scope)]
        if scope.provisioned:
            return checks  # its own machines hold the address by now
        checks += self._check_sharing(scope)
        if passed(checks):
            checks += await self._check_endpoint(scope)
            checks += await self._check_networks(scope)
        return checks

    # -- templates ---------------------------------------------------------------------------------------------

    async def check_references(
        self, session: PrismSession, plans: Sequence[MachinePlan], namespace: str
    ) -> Sequence[Check]:
        checks: list[Check] = []
        for plan in plans:
            checks += await self._check_plan(session, plan)
            if not plan.control_plane:  # those are placed by failure domains, where the cluster has any
                checks += await self._check_template_pools(session, plan, namespace)
        return checks

    async def _check_plan(self, session: PrismSession, plan: MachinePlan) -> list[Check]:
        """Checks every reference of a template and reports all problems at once."""
        spec: MachineSpec = plan.template.spec.template.spec
        where = f"NutanixMachineTemplate {plan.template.metadata.name}"
        lookup, checks = session.lookup, [Check(REFERENCES, True)]
        element: Element | None = None
        if spec.cluster is not None:
            element, check = await _tried(lookup.element(spec.cluster, "spec.template.spec.cluster"), where)
            checks.append(check)
        if element is not None:
            for number, each in enumerate(spec.subnet):
                field = f"spec.template.spec.subnet[{number}]"
                checks.append((await _tried(lookup.subnet(each, element, field), where))[1])
        if spec.image is not None:
            found = lookup.image(spec.image, "spec.template.spec.image")
            checks.append(await self._check_image(found, "image", where, plan))
        elif spec.image_lookup is not None:
            found = lookup.newest_image(spec.image_lookup, plan.version)
            checks.append(await self._check_image(found, "imageLookup", where, plan))
        if spec.project is not None:
            checks.append((await _tried(lookup.project(spec.project, "spec.template.spec.project"), where))[1])
        for number, category in enumerate(spec.additional_categories):
            field = f"spec.template.spec.additionalCategories[{number}]"
            checks.append((await _tried(lookup.category(category, field), where))[1])
        return checks

    async def _check_template_pools(self, session: PrismSession, plan: MachinePlan, namespace: str) -> list[Check]:
        spec = plan.template.spec.template.spec
        return await self._check_pools(session, plan, [(spec.cluster, spec.subnet)], namespace)

    async def _check_domain_pools(self, scope: Scope) -> list[Check]:
        """Pools of control plane machines, on the subnets of their failure domains where these decide."""
        checks: list[Check] = []
        places = [(each.cluster, each.subnets) for each in self.domains(scope) if each.control_plane]
        namespace = scope.infra.metadata.namespace
        for plan in scope.plan.machines:
            if plan.control_plane and plan.template is not None and places:
                checks += await self._check_pools(scope.session, plan, places, namespace)
            elif plan.control_plane and plan.template is not None:
                checks += await self._check_template_pools(scope.session, plan, namespace)
        return checks

    async def _check_pools(
        self, session: PrismSession, plan: MachinePlan, places: Sequence[Place], namespace: str
    ) -> list[Check]:
        """On the subnets that the machines will be on."""
        pools = plan.template.spec.template.spec.addresses_from_pools
        where = f"NutanixMachineTemplate {plan.template.metadata.name}"
        checks: list[Check] = []
        for cluster, named in places if pools else ():
            subnets = await self._resolved(session, cluster, named)
            checks += check_pools(namespace, pools, subnets, self._find_pool, REFERENCES, where)
        return list(dict.fromkeys(checks))

    async def _resolved(
        self, session: PrismSession, cluster: Identifier | None, subnets: Sequence[Identifier]
    ) -> list[Subnet | None]:
        """None stands for a missing item, which another check reports."""
        element = (await _tried(session.lookup.element(cluster, ""), ""))[0] if cluster else None
        if element is None:
            return [None for _ in subnets]
        return [(await _tried(session.lookup.subnet(each, element, ""), ""))[0] for each in subnets]

    async def _check_image(self, found: Awaitable[Image], field: str, where: str, plan: MachinePlan) -> Check:
        image, check = await _tried(found, where)
        if image is None:
            return check
        path = f"{where}: spec.template.spec.{field}"
        wrong = image_misfit(image, plan)
        if wrong:
            return Check(REFERENCES, False, wrong[0], f"{path}: {wrong[1]}")
        other = image_version(image, plan)
        text = f"{path}: {image.name!r} contains Kubernetes {other} (from its name), but {plan.owner} has version"
        return (
            Check(REFERENCES, False, "ImageVersionMismatch", f"{text} {plan.version}", advisory=True)
            if other
            else check
        )

    # -- the control plane's address -----------------------------------------------------------------------------

    def _check_sharing(self, scope: Scope) -> list[Check]:
        host = scope.infra.spec.control_plane_endpoint.host
        if not host:
            return self._check_no_endpoint(scope)
        for network in _cluster_networks(scope):
            if family_of(host) == network.version and ip_address(host) in network:
                text = f"{host} is in {network}, a network of Pods or Services of Cluster {scope.name}"
                return [
                    _bad_endpoint(
                        "EndpointInClusterNetwork", f"{text}: choose an address in the subnet of the machines"
                    )
                ]
        for other in self._clusters():
            same = canonical(other.spec.control_plane_endpoint.host) == canonical(host)
            if same and other.metadata.uid != scope.infra.metadata.uid:
                text = (
                    f"{host} is already the endpoint of NutanixCluster {other.metadata.namespace}/{other.metadata.name}"
                )
                return [_bad_endpoint("EndpointInUse", f"{text}: choose another")]
        return self._check_own_pools(scope, host)

    def _check_no_endpoint(self, scope: Scope) -> list[Check]:
        if scope.plan.endpoint_supplied or scope.cluster.spec.control_plane_endpoint.host:
            return [Check(ENDPOINT, True)]
        for plan in scope.plan.machines:
            if plan.control_plane and plan.missing:  # it may supply one
                return [Check(ENDPOINT, False, "WaitingForControlPlane", plan.missing, waiting=True)]
        return [Check(ENDPOINT, False, "EndpointMissing", "spec.controlPlaneEndpoint.host: give a free address")]

    def _check_own_pools(self, scope: Scope, host: str) -> list[Check]:
        """Sooner or later a machine would get the address of its control plane."""
        namespace, shared = scope.infra.metadata.namespace, ""
        for plan in scope.plan.machines if family_of(host) else ():
            if plan.template is not None:
                refs = plan.template.spec.template.spec.addresses_from_pools
                shared = shared or pool_with(namespace, refs, self._find_pool, host)
        if not shared:
            return [Check(ENDPOINT, True)]
        text = f"{host} is in {shared}, which assigns addresses to machines"
        return [
            _bad_endpoint(
                "EndpointInPool", f"{text}: choose another address, or add it to excludedAddresses of the pool"
            )
        ]

    async def _check_endpoint(self, scope: Scope) -> list[Check]:
        """A virtual address that Prism also gives out to machines ends up on two of them."""
        host = scope.infra.spec.control_plane_endpoint.host
        try:
            address = ip_address(host)
        except ValueError:
            return [Check(ENDPOINT, True)]
        for subnet in await self._subnets_used(scope):
            for first, last in subnet.pools:
                if first and last and _within(address, first, last):
                    return [
                        _bad_endpoint(
                            "EndpointInPool",
                            f"{host} is in the pool {first}-{last} of subnet {subnet.name!r}, which Prism assigns to "
                            "machines: choose an address outside of the pool",
                        )
                    ]
        held = await self._check_holder(scope, str(address), await scope.session.prism.find_vms())
        return held if not all(check.ok for check in held) else _check_reach(address, await self._subnets_used(scope))

    async def _check_networks(self, scope: Scope) -> list[Check]:
        for subnet in await self._subnets_used(scope):
            for network in _cluster_networks(scope) if subnet.cidr else ():
                machines = ip_network(subnet.cidr, strict=False)
                if machines.version == network.version and machines.overlaps(network):
                    text = (
                        f"subnet {subnet.name!r} ({machines}) overlaps with {network} in spec.clusterNetwork of "
                        f"Cluster {scope.name}: Pods can't reach machines with addresses in both"
                    )
                    return [Check(NETWORKS, False, "NetworksOverlap", text, advisory=True)]
        return [Check(NETWORKS, True)]

    async def _check_holder(self, scope: Scope, host: str, vms: Sequence[Vm]) -> list[Check]:
        holders = [vm for vm in vms if host in vm.addresses]
        own = await scope.session.lookup.find_category(CLUSTER_CATEGORY, scope.name) if holders else None
        for vm in holders:
            if own is None or own.id not in vm.category_ids:
                return [_bad_endpoint("EndpointInUse", f"VM {vm.name!r} ({vm.id}) already has the address {host}")]
        return [Check(ENDPOINT, True)]

    async def _subnets_used(self, scope: Scope) -> list[Subnet]:
        places = [(each.cluster, each.subnets) for each in self.domains(scope)]
        for plan in scope.plan.machines:
            if plan.template is not None:
                spec = plan.template.spec.template.spec
                places.append((spec.cluster, spec.subnet))
        found: dict[str, Subnet] = {}
        for cluster, subnets in places:
            element = (await _tried(scope.session.lookup.element(cluster, ""), ""))[0] if cluster else None
            if element is None:
                continue
            for each in subnets:
                subnet, _ = await _tried(scope.session.lookup.subnet(each, element, ""), "")
                if subnet is not None:
                    found[subnet.id] = subnet
        return list(found.values())

    # -- room --------------------------------------------------------------------------------------------------

    async def check_capacity(self, session: PrismSession, plans: Sequence[MachinePlan]) -> Sequence[Check]:
        checks, needed, names = [], await self._needed(session, plans), await session.lookup.elements()
        vms = await session.prism.find_vms() if needed else []
        for cluster_id, wanted in needed.items():
            used = sum(vm.memory_bytes for vm in vms if vm.cluster_id == cluster_id and vm.power == "on")
            there = sum(host.memory_bytes for host in await session.prism.hosts(cluster_id))
            free = max(there - used, 0)
            if wanted > free:
                name = next((each.name for each in names if each.id == cluster_id), cluster_id)
                message = (
                    f"cluster {name!r} has {free >> 30} GiB of free memory, but the machines of this cluster need "
                    f"{wanted >> 30} GiB: free memory, or use smaller or fewer machines"
                )
                checks.append(Check(CAPACITY, False, "InsufficientCapacity", message))
        return checks or [Check(CAPACITY, True)]

    async def _needed(self, session: PrismSession, plans: Sequence[MachinePlan]) -> dict[str, int]:
        """Bytes of memory, by Prism Element."""
        needed: dict[str, int] = {}
        for plan in plans:
            spec = plan.template.spec.template.spec if plan.template is not None else None
            if spec is not None and spec.cluster is not None:
                element = (await _tried(session.lookup.element(spec.cluster, ""), ""))[0]
                if element is not None:
                    needed[element.id] = needed.get(element.id, 0) + plan.count * _memory(spec)
        return needed

    # -- failure domains ---------------------------------------------------------------------------------------

    def domains(self, scope: Scope) -> list[Domain]:
        found = [
            Domain(each.name, each.cluster, each.subnets, each.control_plane)
            for each in scope.infra.spec.failure_domains
        ]
        for ref in scope.infra.spec.control_plane_failure_domains:
            domain = self._find_domain(scope.infra.metadata.namespace, ref.name)
            if domain is not None:
                found.append(Domain(ref.name, domain.spec.prism_element_cluster, domain.spec.subnets))
        return found

    async def _check_domains(self, scope: Scope) -> list[Check]:
        spec = scope.infra.spec
        if not spec.failure_domains and not spec.control_plane_failure_domains:
            return [Check(NO_DOMAINS, True)]
        checks = [
            Check(DOMAINS, False, "FailureDomainMissing", f"NutanixFailureDomain {ref.name} does not exist: create it")
            for ref in spec.control_plane_failure_domains
            if self._find_domain(scope.infra.metadata.namespace, ref.name) is None and not refusal(ref.name)
        ]
        for number, ref in enumerate(spec.control_plane_failure_domains):
            if refused := refusal(ref.name):
                text = f"spec.controlPlaneFailureDomains[{number}]: {refused}"
                checks.append(Check(DOMAINS, False, UNSUPPORTED, text))
        for domain in self.domains(scope):
            checks += await self.check_domain(scope, domain)
        return checks

    async def check_domain(self, scope: Scope, domain: Domain) -> list[Check]:
        where = f"failure domain {domain.name}"
        if domain.cluster is None:
            return [Check(DOMAINS, False, "FailureDomainsMisconfigured", f"{where}: cluster: name a Prism Element")]
        element, check = await _tried(scope.session.lookup.element(domain.cluster, "cluster"), where, DOMAINS)
        if element is None:
            return [check]
        return [
            (await _tried(scope.session.lookup.subnet(each, element, f"subnets[{number}]"), where, DOMAINS))[1]
            for number, each in enumerate(domain.subnets)
        ]


def image_misfit(image: Image, plan: MachinePlan) -> tuple[str, str] | None:
    """Why machines with this image would never come up: (reason, sentence).

    Only kubeadm's needs are known; other bootstrap providers know best which image they want.
    """
    if image.kind == "iso":
        return "ImageIsISO", f"{image.name!r} is an ISO installer image: a disk image (type DISK) is required"
    if not plan.kubeadm:
        return None
    if _TALOS.search(image.name):
        text = f"{image.name!r} is a Talos image, which can't use the kubeadm configuration of {plan.owner}"
        return "ImageDoesNotFit", f"{text}: use an image with cloud-init and kubeadm"
    if _IMMUTABLE.search(image.name) and plan.format and plan.format != "ignition":
        text = f"{image.name!r} requires Ignition, but {plan.owner} has the format {plan.format}"
        return "ImageDoesNotFit", f"{text}: set format: ignition, or use another image"
    return None


def image_version(image: Image, plan: MachinePlan) -> str:
    """The version of Kubernetes that the name of an image tells, if that is another than the one wanted."""
    found = _KUBERNETES.findall(image.name)
    asked = plan.version.removeprefix("v").partition("+")[0].partition("-")[0]
    return f"v{found[0]}" if found and asked and asked not in found else ""


def _check_reach(address: IPv4Address | IPv6Address, subnets: Sequence[Subnet]) -> list[Check]:
    """Machines announce the address on their own subnet; where Prism does not manage addresses, it is unknown."""
    networks = [ip_network(each.cidr, strict=False) for each in subnets if each.cidr]
    if not networks or len(networks) < len(subnets) or any(address in each for each in networks):
        return [Check(ENDPOINT, True)]
    shown = ", ".join(f"{each.name!r} ({each.cidr})" for each in subnets)
    text = f"{address} is outside the subnets of the machines ({shown}): it must be routed to be reachable"
    return [Check(ENDPOINT, False, "EndpointOutsideSubnet", f"spec.controlPlaneEndpoint.host: {text}", advisory=True)]


def _cluster_networks(scope: Scope) -> list[IPv4Network | IPv6Network]:
    network = scope.cluster.spec.cluster_network
    blocks = [*network.pods.cidr_blocks, *network.services.cidr_blocks]
    return [ip_network(each, strict=False) for each in blocks if family_of(each)]


async def _tried(work: Awaitable[T], where: str, condition: str = REFERENCES) -> tuple[T | None, Check]:
    """What was found, and its check. If Prism Central could not be asked, the check says nothing about the spec."""
    try:
        return await work, Check(condition, True)
    except (Unreachable, Throttled, Denied):
        raise
    except ProviderError as error:
        return None, Check(condition, False, policy_of(error).reason, f"{where}: {error.message}")


def _bad_endpoint(reason: str, message: str) -> Check:
    return Check(ENDPOINT, False, reason, f"spec.controlPlaneEndpoint.host: {message}")


def _within(address: IPv4Address | IPv6Address, first: str, last: str) -> bool:
    low, high = ip_address(first), ip_address(last)
    return low.version == address.version == high.version and int(low) <= int(address) <= int(high)


def _memory(spec: MachineSpec) -> int:
    try:
        return size_of(spec.memory_size, "spec.memorySize", 0)
    except ProviderError:
        return 0
