"""What the machines of a cluster need on Prism Central, and everything that can be found wrong before there is one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeVar

from homeport.api.nutanix.v1beta1 import (
    Identifier,
    MachineSpec,
    NutanixCluster,
    NutanixMachineTemplate,
)
from homeport.infra.error import ProviderError, Taken, policy_of
from homeport.infra.protocol import Check, ClusterScope, FailureDomain, Item, Owned
from homeport.providers.nutanix.connection import PrismSession
from homeport.providers.nutanix.plan import CLUSTER_CATEGORY, MARK, FindDomain, size_of
from homeport.providers.nutanix.prism.record import Category, Element, Subnet
from homeport.runtime.outcome import Wait

T = TypeVar("T")
Scope = ClusterScope[NutanixCluster, PrismSession]
# The templates that a cluster's control plane and workers are made from, and how many machines of each.
Templates = Callable[[str, str], Iterable[tuple[NutanixMachineTemplate, int]]]

REFERENCES = "ReferencesResolved"
ENDPOINT = "ControlPlaneEndpointFree"
CAPACITY = "CapacitySufficient"
DOMAINS = "FailureDomainsValidated"


class ClusterDriver:
    def __init__(self, find_domain: FindDomain, templates: Templates) -> None:
        self._find_domain = find_domain
        self._templates = templates

    # -- before there is anything ------------------------------------------------------------------------------

    async def preflight(self, scope: Scope) -> Sequence[Check]:
        checks = [*await self._check_domains(scope)]
        needed: dict[str, int] = {}
        for template, count in self._templates(scope.infra.metadata.namespace, scope.name):
            checks += await self._check_template(scope, template, count, needed)
        checks += await self._check_endpoint(scope)
        if all(check.ok for check in checks):
            checks += await self._check_capacity(scope, needed)
        return checks

    async def _check_template(
        self, scope: Scope, template: NutanixMachineTemplate, count: int, needed: dict[str, int]
    ) -> list[Check]:
        """Every reference of a template; all that is wrong with it is told at once."""
        spec, where = template.spec.template.spec, f"NutanixMachineTemplate {template.metadata.name}"
        lookup, checks = scope.session.lookup, []
        element: Element | None = None
        if spec.cluster is not None:
            element, check = await _tried(lookup.element(spec.cluster, "spec.template.spec.cluster"), where)
            checks.append(check)
        if element is not None:
            needed[element.id] = needed.get(element.id, 0) + count * _memory(spec)
            for number, each in enumerate(spec.subnet):
                field = f"spec.template.spec.subnet[{number}]"
                checks.append((await _tried(lookup.subnet(each, element, field), where))[1])
        if spec.image is not None:
            checks.append(await self._check_image(scope, spec.image, where))
        if spec.project is not None:
            checks.append((await _tried(lookup.project(spec.project, "spec.template.spec.project"), where))[1])
        for number, category in enumerate(spec.additional_categories):
            field = f"spec.template.spec.additionalCategories[{number}]"
            checks.append((await _tried(lookup.category(category, field), where))[1])
        return checks

    async def _check_image(self, scope: Scope, wanted: Identifier, where: str) -> Check:
        image, check = await _tried(scope.session.lookup.image(wanted, "spec.template.spec.image"), where)
        if image is not None and image.kind == "iso":
            return Check(
                REFERENCES,
                False,
                "ImageIsISO",
                f"{where}: spec.template.spec.image: {image.name!r} is an ISO, which installs a system but is none; "
                "name a DISK image",
            )
        return check

    async def _check_endpoint(self, scope: Scope) -> list[Check]:
        """A virtual address that Prism also gives out to machines ends up on two of them."""
        host = scope.infra.spec.control_plane_endpoint.host
        if not host:
            return [Check(ENDPOINT, False, "EndpointMissing", "spec.controlPlaneEndpoint.host: give a free address")]
        try:
            address = ip_address(host)
        except ValueError:
            return [Check(ENDPOINT, True)]
        for subnet in await self._subnets_used(scope):
            for first, last in subnet.pools:
                if first and last and _within(address, first, last):
                    return [
                        Check(
                            ENDPOINT,
                            False,
                            "EndpointInPool",
                            f"spec.controlPlaneEndpoint.host: {host} lies in the pool {first}-{last} that subnet "
                            f"{subnet.name!r} gives to machines; choose an address outside of it",
                        )
                    ]
        return [Check(ENDPOINT, True)]

    async def _subnets_used(self, scope: Scope) -> list[Subnet]:
        found: dict[str, Subnet] = {}
        for template, _ in self._templates(scope.infra.metadata.namespace, scope.name):
            spec = template.spec.template.spec
            if spec.cluster is None:
                continue
            element, _ = await _tried(scope.session.lookup.element(spec.cluster, ""), "")
            if element is None:
                continue
            for each in spec.subnet:
                subnet, _ = await _tried(scope.session.lookup.subnet(each, element, ""), "")
                if subnet is not None:
                    found[subnet.id] = subnet
        return list(found.values())

    async def _check_capacity(self, scope: Scope, needed: dict[str, int]) -> list[Check]:
        checks = []
        names = {each.id: each.name for each in await scope.session.lookup.elements()}
        for cluster_id, wanted in needed.items():
            free, _cpus = await scope.session.prism.free(cluster_id)
            if wanted > free:
                message = (
                    f"cluster {names.get(cluster_id, cluster_id)!r} has {free >> 30} GiB of memory free, and the "
                    f"machines of this cluster need {wanted >> 30} GiB: free some, or use smaller or fewer machines"
                )
                checks.append(Check(CAPACITY, False, "InsufficientCapacity", message))
        return checks or [Check(CAPACITY, True)]

    # -- failure domains ---------------------------------------------------------------------------------------

    def _domains(self, scope: Scope) -> list[tuple[str, Identifier | None, Sequence[Identifier], bool]]:
        found: list[tuple[str, Identifier | None, Sequence[Identifier], bool]] = [
            (each.name, each.cluster, each.subnets, each.control_plane) for each in scope.infra.spec.failure_domains
        ]
        for ref in scope.infra.spec.control_plane_failure_domains:
            domain = self._find_domain(scope.infra.metadata.namespace, ref.name)
            if domain is not None:
                found.append((ref.name, domain.spec.prism_element_cluster, domain.spec.subnets, True))
        return found

    async def _check_domains(self, scope: Scope) -> list[Check]:
        checks = [
            Check(DOMAINS, False, "FailureDomainMissing", f"NutanixFailureDomain {ref.name} does not exist: create it")
            for ref in scope.infra.spec.control_plane_failure_domains
            if self._find_domain(scope.infra.metadata.namespace, ref.name) is None
        ]
        for name, cluster, subnets, _ in self._domains(scope):
            checks += await self._check_domain(scope, name, cluster, subnets)
        return checks

    async def _check_domain(
        self, scope: Scope, name: str, cluster: Identifier | None, subnets: Sequence[Identifier]
    ) -> list[Check]:
        where = f"failure domain {name}"
        if cluster is None:
            return [Check(DOMAINS, False, "FailureDomainsMisconfigured", f"{where}: cluster: name a Prism Element")]
        element, check = await _tried(scope.session.lookup.element(cluster, "cluster"), where, DOMAINS)
        if element is None:
            return [check]
        return [
            (await _tried(scope.session.lookup.subnet(each, element, f"subnets[{number}]"), where, DOMAINS))[1]
            for number, each in enumerate(subnets)
        ]

    async def failure_domains(self, scope: Scope) -> Sequence[FailureDomain]:
        """Those that could be resolved: machines are never sent to one that can't take them."""
        found = []
        for name, cluster, subnets, control_plane in self._domains(scope):
            if all(check.ok for check in await self._check_domain(scope, name, cluster, subnets)):
                attributes = {"cluster": str(cluster.name or cluster.uuid)} if cluster else {}
                found.append(FailureDomain(name, control_plane, attributes))
        return found

    # -- what there is -----------------------------------------------------------------------------------------

    async def converge(self, scope: Scope) -> Wait | None:
        await self._category(scope, create=True)
        return None

    async def endpoint(self, scope: Scope) -> tuple[str, int] | None:
        """Users choose it; only the port may be left to us."""
        held = scope.infra.spec.control_plane_endpoint
        return None if held.port or not held.host else (held.host, 6443)

    async def _category(self, scope: Scope, *, create: bool) -> Category | None:
        prism = scope.session.prism
        found = await prism.find_category(CLUSTER_CATEGORY, scope.name)
        if found is None and create:
            description = f"Machines of Kubernetes cluster {scope.name}, managed by Homeport"
            found = await prism.create_category(CLUSTER_CATEGORY, scope.name, description)
        return found

    # -- the way back ------------------------------------------------------------------------------------------

    async def release(self, scope: Scope) -> Wait | None:
        """The category goes last, and stays while anything else carries it: two clusters may share a name."""
        category = await self._category(scope, create=False)
        if category is None:
            return None
        try:
            await scope.session.prism.delete_category(category)
        except Taken:
            if scope.sharing:
                return None
            left = await self.list_owned(scope)
            shown = ", ".join(f"{each.name} ({each.id})" for each in left[:3])
            return Wait(
                "CategoryInUse",
                f"category {category.key}:{category.value} is still on {len(left)} VMs ({shown}): delete them or take "
                "the category off them",
                after=15.0,
            )
        scope.session.lookup.forget_category(category.key, category.value)
        return None

    async def list_owned(self, scope: Scope) -> Sequence[Owned]:
        category = await self._category(scope, create=False)
        if category is None:
            return []
        found = await scope.session.prism.find_vms(category=category)
        return [Owned(each.id, each.name, each.mark(MARK)) for each in found]

    async def discover(self, scope: Scope, what: str) -> Sequence[Item]:
        lookup = scope.session.lookup
        match what:
            case "clusters":
                return [Item(each.id, each.name) for each in await lookup.elements()]
            case "networks":
                return [
                    Item(each.id, each.name, {"type": each.kind, "cidr": each.cidr}) for each in await lookup.subnets()
                ]
            case "images":
                return [Item(each.id, each.name, {"type": each.kind}) for each in await lookup.images()]
            case "projects":
                return [Item(each.id, each.name) for each in await scope.session.prism.projects()]
        raise ValueError(f"Nutanix has no {what}: ask for clusters, networks, images or projects")


async def _tried(work: Awaitable[T], where: str, condition: str = REFERENCES) -> tuple[T | None, Check]:
    """What was found, and the check of it."""
    try:
        return await work, Check(condition, True)
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
