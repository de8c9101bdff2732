"""Everything that can be found wrong with a cluster before its first machine exists."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeVar

from homeport.api.nutanix.v1beta1 import Identifier, MachineSpec, NutanixCluster, NutanixMachineTemplate
from homeport.capi.family import canonical, family_of
from homeport.infra.error import Denied, ProviderError, Throttled, Unreachable, policy_of
from homeport.infra.protocol import Check, ClusterScope
from homeport.providers.nutanix.address import FindPool, check_pools, pool_with
from homeport.providers.nutanix.connection import PrismSession
from homeport.providers.nutanix.metro import UNSUPPORTED, refusal
from homeport.providers.nutanix.plan import CLUSTER_CATEGORY, FindDomain, size_of
from homeport.providers.nutanix.prism.record import Element, Image, Subnet, Vm

T = TypeVar("T")
Scope = ClusterScope[NutanixCluster, PrismSession]

REFERENCES = "ReferencesResolved"
ENDPOINT = "ControlPlaneEndpointFree"
CAPACITY = "CapacitySufficient"
NETWORKS = "NetworksDisjoint"
DOMAINS = "FailureDomainsValidated"
NO_DOMAINS = "NoFailureDomainsConfigured"

# Systems that don't read what others read: by what their images are called.
_IMMUTABLE = re.compile(r"flatcar|coreos", re.IGNORECASE)
_TALOS = re.compile(r"talos", re.IGNORECASE)
# A version of Kubernetes in the name of an image; systems and container runtimes have other numbers.
_KUBERNETES = re.compile(r"(?<![\d.])v?(1\.[2-9]\d\.\d+)(?![\d.]*\d)")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Machines that a cluster is going to have. `missing`: something that they are made from is not there yet."""

    owner: str
    count: int = 0
    template: NutanixMachineTemplate | None = None
    format: str = "cloud-config"
    version: str = ""  # of Kubernetes
    missing: str = ""
    control_plane: bool = False


@dataclass(frozen=True, slots=True)
class Domain:
    name: str
    cluster: Identifier | None
    subnets: Sequence[Identifier]
    control_plane: bool = True


# Of a namespace and the name of a Cluster in it.
FindWanted = Callable[[str, str], Iterable[Wanted]]
FindClusters = Callable[[], Iterable[NutanixCluster]]


class Preflight:
    def __init__(
        self, find_domain: FindDomain, wanted: FindWanted, clusters: FindClusters, find_pool: FindPool
    ) -> None:
        self._find_domain = find_domain
        self._find_pool = find_pool
        self._wanted = wanted
        self._clusters = clusters

    async def run(self, scope: Scope) -> Sequence[Check]:
        checks = [*await self._check_domains(scope)]
        needed: dict[str, int] = {}
        for wanted in self._wanted(scope.infra.metadata.namespace, scope.name):
            checks += await self._check_wanted(scope, wanted, needed)
        if scope.provisioned:
            return checks  # its own machines hold the address and the memory by now
        if not any(check.condition == REFERENCES for check in checks):
            checks.append(Check(REFERENCES, True))
        checks += self._check_sharing(scope)
        if all(check.ok or check.advisory for check in checks):
            vms = await scope.session.prism.find_vms()
            checks += await self._check_endpoint(scope, vms)
            checks += await self._check_networks(scope)
            checks += await self._check_capacity(scope, needed, vms)
        return checks

    # -- templates ---------------------------------------------------------------------------------------------

    async def _check_wanted(self, scope: Scope, wanted: Wanted, needed: dict[str, int]) -> list[Check]:
        """Every reference of a template; all that is wrong with it is told at once."""
        if wanted.template is None:
            return [Check(REFERENCES, False, "WaitingForTemplates", wanted.missing, waiting=True)]
        spec = wanted.template.spec.template.spec
        where = f"NutanixMachineTemplate {wanted.template.metadata.name}"
        lookup, checks = scope.session.lookup, [Check(REFERENCES, True)]
        element: Element | None = None
        if spec.cluster is not None:
            element, check = await _tried(lookup.element(spec.cluster, "spec.template.spec.cluster"), where)
            checks.append(check)
        if element is not None:
            needed[element.id] = needed.get(element.id, 0) + wanted.count * _memory(spec)
            for number, each in enumerate(spec.subnet):
                field = f"spec.template.spec.subnet[{number}]"
                checks.append((await _tried(lookup.subnet(each, element, field), where))[1])
        if spec.image is not None:
            found = lookup.image(spec.image, "spec.template.spec.image")
            checks.append(await self._check_image(found, "image", where, wanted))
        elif spec.image_lookup is not None:
            found = lookup.newest_image(spec.image_lookup, wanted.version)
            checks.append(await self._check_image(found, "imageLookup", where, wanted))
        if spec.project is not None:
            checks.append((await _tried(lookup.project(spec.project, "spec.template.spec.project"), where))[1])
        for number, category in enumerate(spec.additional_categories):
            field = f"spec.template.spec.additionalCategories[{number}]"
            checks.append((await _tried(lookup.category(category, field), where))[1])
        return [*checks, *await self._check_pools(scope, wanted, spec, where)]

    async def _check_pools(self, scope: Scope, wanted: Wanted, spec: MachineSpec, where: str) -> list[Check]:
        """On the subnets that the machines will be on: of their failure domains, where these decide."""
        domains = [each for each in self.domains(scope) if each.control_plane] if wanted.control_plane else []
        places = [(each.cluster, each.subnets) for each in domains] or [(spec.cluster, spec.subnet)]
        namespace = scope.infra.metadata.namespace
        checks: list[Check] = []
        for cluster, named in places if spec.addresses_from_pools else ():
            subnets = await self._resolved(scope, cluster, named)
            checks += check_pools(namespace, spec.addresses_from_pools, subnets, self._find_pool, REFERENCES, where)
        return list(dict.fromkeys(checks))

    async def _resolved(
        self, scope: Scope, cluster: Identifier | None, subnets: Sequence[Identifier]
    ) -> list[Subnet | None]:
        """None in the place of what is not there, which is told elsewhere."""
        element = (await _tried(scope.session.lookup.element(cluster, ""), ""))[0] if cluster else None
        if element is None:
            return [None for _ in subnets]
        return [(await _tried(scope.session.lookup.subnet(each, element, ""), ""))[0] for each in subnets]

    async def _check_image(self, found: Awaitable[Image], field: str, where: str, wanted: Wanted) -> Check:
        image, check = await _tried(found, where)
        if image is None:
            return check
        path = f"{where}: spec.template.spec.{field}"
        wrong = image_misfit(image, wanted)
        if wrong:
            return Check(REFERENCES, False, wrong[0], f"{path}: {wrong[1]}")
        other = image_version(image, wanted)
        text = f"{path}: {image.name!r} has Kubernetes {other} by its name, and {wanted.owner} asks for"
        return (
            Check(REFERENCES, False, "ImageVersionMismatch", f"{text} {wanted.version}", advisory=True)
            if other
            else check
        )

    # -- the control plane's address -----------------------------------------------------------------------------

    def _check_sharing(self, scope: Scope) -> list[Check]:
        host = scope.infra.spec.control_plane_endpoint.host
        if not host:
            return [Check(ENDPOINT, False, "EndpointMissing", "spec.controlPlaneEndpoint.host: give a free address")]
        for network in _cluster_networks(scope):
            if family_of(host) == network.version and ip_address(host) in network:
                text = f"{host} lies in {network}, a network of Pods or Services of Cluster {scope.name}"
                return [_bad_endpoint("EndpointInClusterNetwork", f"{text}: choose an address of the subnet")]
        for other in self._clusters():
            same = canonical(other.spec.control_plane_endpoint.host) == canonical(host)
            if same and other.metadata.uid != scope.infra.metadata.uid:
                text = f"{host} is the address of NutanixCluster {other.metadata.namespace}/{other.metadata.name}"
                return [_bad_endpoint("EndpointInUse", f"{text}: choose another")]
        return self._check_own_pools(scope, host)

    def _check_own_pools(self, scope: Scope, host: str) -> list[Check]:
        """Sooner or later a machine would get the address of its control plane."""
        namespace, shared = scope.infra.metadata.namespace, ""
        for wanted in self._wanted(namespace, scope.name) if family_of(host) else ():
            if wanted.template is not None:
                refs = wanted.template.spec.template.spec.addresses_from_pools
                shared = shared or pool_with(namespace, refs, self._find_pool, host)
        if not shared:
            return [Check(ENDPOINT, True)]
        text = f"{host} lies in {shared}, which machines get their addresses from"
        return [_bad_endpoint("EndpointInPool", f"{text}; choose another, or exclude it there (excludedAddresses)")]

    async def _check_endpoint(self, scope: Scope, vms: Sequence[Vm]) -> list[Check]:
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
                            f"{host} lies in the pool {first}-{last} that subnet {subnet.name!r} gives to machines; "
                            "choose an address outside of it",
                        )
                    ]
        held = await self._check_holder(scope, str(address), vms)
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
                return [_bad_endpoint("EndpointInUse", f"VM {vm.name!r} ({vm.id}) has the address {host} already")]
        return [Check(ENDPOINT, True)]

    async def _subnets_used(self, scope: Scope) -> list[Subnet]:
        places = [(each.cluster, each.subnets) for each in self.domains(scope)]
        for wanted in self._wanted(scope.infra.metadata.namespace, scope.name):
            if wanted.template is not None:
                spec = wanted.template.spec.template.spec
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

    async def _check_capacity(self, scope: Scope, needed: dict[str, int], vms: Sequence[Vm]) -> list[Check]:
        checks = []
        names = {each.id: each.name for each in await scope.session.lookup.elements()}
        for cluster_id, wanted in needed.items():
            used = sum(vm.memory_bytes for vm in vms if vm.cluster_id == cluster_id and vm.power == "on")
            free = max(await scope.session.prism.memory(cluster_id) - used, 0)
            if wanted > free:
                message = (
                    f"cluster {names.get(cluster_id, cluster_id)!r} has {free >> 30} GiB of memory free, and the "
                    f"machines of this cluster need {wanted >> 30} GiB: free some, or use smaller or fewer machines"
                )
                checks.append(Check(CAPACITY, False, "InsufficientCapacity", message))
        return checks or [Check(CAPACITY, True)]

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


def image_misfit(image: Image, wanted: Wanted) -> tuple[str, str] | None:
    """Why machines with this image would never come up: (reason, sentence)."""
    if image.kind == "iso":
        return "ImageIsISO", f"{image.name!r} is an ISO, which installs a system but is none; name a DISK image"
    if _TALOS.search(image.name):
        text = f"{image.name!r} is Talos, which reads no kubeadm configuration as {wanted.owner} gives it"
        return "ImageDoesNotFit", f"{text}; name an image with cloud-init and kubeadm"
    if _IMMUTABLE.search(image.name) and wanted.format != "ignition":
        text = f"{image.name!r} reads Ignition, and {wanted.owner} gives {wanted.format}"
        return "ImageDoesNotFit", f"{text}; set format: ignition there, or name another image"
    return None


def image_version(image: Image, wanted: Wanted) -> str:
    """The version of Kubernetes that the name of an image tells, if that is another than the one wanted."""
    found = _KUBERNETES.findall(image.name)
    asked = wanted.version.removeprefix("v").partition("+")[0].partition("-")[0]
    return f"v{found[0]}" if found and asked and asked not in found else ""


def _check_reach(address: IPv4Address | IPv6Address, subnets: Sequence[Subnet]) -> list[Check]:
    """Machines announce the address on their own subnet; where Prism does not manage addresses, nobody knows it."""
    networks = [ip_network(each.cidr, strict=False) for each in subnets if each.cidr]
    if not networks or len(networks) < len(subnets) or any(address in each for each in networks):
        return [Check(ENDPOINT, True)]
    shown = ", ".join(f"{each.name!r} ({each.cidr})" for each in subnets)
    text = f"{address} lies outside the subnets of the machines, {shown}: nobody reaches it unless it is routed there"
    return [Check(ENDPOINT, False, "EndpointOutsideSubnet", f"spec.controlPlaneEndpoint.host: {text}", advisory=True)]


def _cluster_networks(scope: Scope) -> list[IPv4Network | IPv6Network]:
    network = scope.cluster.spec.cluster_network
    blocks = [*network.pods.cidr_blocks, *network.services.cidr_blocks]
    return [ip_network(each, strict=False) for each in blocks if family_of(each)]


async def _tried(work: Awaitable[T], where: str, condition: str = REFERENCES) -> tuple[T | None, Check]:
    """What was found, and the check of it. That nobody could be asked says nothing about the spec."""
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
