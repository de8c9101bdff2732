"""Everything that can be found wrong with a cluster before its first machine exists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeVar

from homeport.api.nutanix.v1beta1 import Identifier, MachineSpec, NutanixCluster
from homeport.capi.family import family_of
from homeport.infra.error import Denied, ProviderError, Throttled, Unreachable, policy_of
from homeport.infra.preflight.check import CAPACITY, REFERENCES, passed
from homeport.infra.preflight.fit import check_version, misfit
from homeport.infra.preflight.host import ENDPOINT, bad_endpoint, check_disjoint, check_host, check_kept, check_reach
from homeport.infra.preflight.name import Lookup, check_name, look_up
from homeport.infra.preflight.plan import MachinePlan
from homeport.infra.preflight.pool import FindPool
from homeport.infra.protocol import Check, ClusterScope
from homeport.providers.nutanix.address import check_pools
from homeport.providers.nutanix.connection import PrismSession
from homeport.providers.nutanix.metro import UNSUPPORTED, refusal
from homeport.providers.nutanix.plan import CLUSTER_CATEGORY, FindDomain, size_of
from homeport.providers.nutanix.prism.record import Element, Image, Subnet, Vm

T = TypeVar("T")
Scope = ClusterScope[NutanixCluster, PrismSession]

Place = tuple[Identifier | None, Sequence[Identifier]]  # a Prism Element and its subnets
DOMAINS = "FailureDomainsValidated"
NO_DOMAINS = "NoFailureDomainsConfigured"


@dataclass(frozen=True, slots=True)
class Domain:
    name: str
    cluster: Identifier | None
    subnets: Sequence[Identifier]
    control_plane: bool = True


FindClusters = Callable[[], Iterable[NutanixCluster]]


class Preflight:
    def __init__(
        self, find_domain: FindDomain, clusters: FindClusters, find_pool: FindPool, lookup: Lookup = look_up
    ) -> None:
        self._find_domain = find_domain
        self._lookup = lookup
        self._find_pool = find_pool
        self._clusters = clusters

    async def run(self, scope: Scope) -> Sequence[Check]:
        """What is wrong with the cluster itself."""
        checks = [*await self._check_domains(scope), *await self._check_domain_pools(scope)]
        unknown = await check_name(scope, self._lookup)
        if scope.provisioned:
            # Its own machines hold the address by now.
            return [*checks, *(unknown or await self._check_routed(scope) or check_kept(scope))]
        checks += unknown
        checks += check_host(scope, self._clusters(), self._find_pool)
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
        if image.kind == "iso":
            text = f"{path}: {image.name!r} is an ISO installer image: a disk image (type DISK) is required"
            return Check(REFERENCES, False, "ImageIsISO", text)
        wrong = misfit(image.name, plan)
        if wrong:
            return Check(REFERENCES, False, wrong[0], f"{path}: {wrong[1]}")
        return check_version(image.name, plan, path)

    # -- the control plane's address -----------------------------------------------------------------------------

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
                        bad_endpoint(
                            "EndpointInPool",
                            f"{host} is in the pool {first}-{last} of subnet {subnet.name!r}, which Prism assigns to "
                            "machines: choose an address outside of the pool",
                        )
                    ]
        held = await self._check_holder(scope, str(address), await scope.session.inventory.vms())
        return (
            held
            if not all(check.ok for check in held)
            else check_reach(scope, address, _ranges(await self._subnets_used(scope)))
        )

    async def _check_routed(self, scope: Scope) -> list[Check]:
        """Until the control plane has answered: an address outside of the subnets explains why it does not."""
        host = scope.infra.spec.control_plane_endpoint.host
        if scope.cluster.status.initialization.control_plane_initialized or not family_of(host):
            return []
        found = check_reach(scope, ip_address(host), _ranges(await self._subnets_used(scope)))
        return [check for check in found if not check.ok]

    async def _check_networks(self, scope: Scope) -> list[Check]:
        return check_disjoint(scope, _ranges(await self._subnets_used(scope)))

    async def _check_holder(self, scope: Scope, host: str, vms: Sequence[Vm]) -> list[Check]:
        holders = [vm for vm in vms if host in vm.addresses]
        own = await scope.session.lookup.find_category(CLUSTER_CATEGORY, scope.name) if holders else None
        for vm in holders:
            if own is None or own.id not in vm.category_ids:
                return [bad_endpoint("EndpointInUse", f"VM {vm.name!r} ({vm.id}) already has the address {host}")]
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
        vms = await session.inventory.vms() if needed else []
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


def _ranges(subnets: Sequence[Subnet]) -> dict[str, str]:
    """The network of each subnet; '' where Prism does not manage addresses."""
    return {f"subnet {each.name!r}": each.cidr for each in subnets}


async def _tried(work: Awaitable[T], where: str, condition: str = REFERENCES) -> tuple[T | None, Check]:
    """What was found, and its check. If Prism Central could not be asked, the check says nothing about the spec."""
    try:
        return await work, Check(condition, True)
    except (Unreachable, Throttled, Denied):
        raise
    except ProviderError as error:
        return None, Check(condition, False, policy_of(error).reason, f"{where}: {error.message}")


def _within(address: IPv4Address | IPv6Address, first: str, last: str) -> bool:
    low, high = ip_address(first), ip_address(last)
    return low.version == address.version == high.version and int(low) <= int(address) <= int(high)


def _memory(spec: MachineSpec) -> int:
    try:
        return size_of(spec.memory_size, "spec.memorySize", 0)
    except ProviderError:
        return 0
