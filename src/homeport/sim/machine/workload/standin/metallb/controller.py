"""MetalLB's controller: Services of type LoadBalancer get addresses from pools, in status.loadBalancer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from homeport.sim.machine.workload.kind import NAMESPACE, SERVICE, Json
from homeport.sim.machine.workload.standin.event import EventRecorder
from homeport.sim.machine.workload.standin.image import container_of, flag
from homeport.sim.machine.workload.standin.metallb.kind import CONTROLLER, POOL
from homeport.sim.machine.workload.standin.metallb.pool import (
    Address,
    AllocationProblem,
    Allocator,
    Pool,
    Port,
    Sharing,
    usable_pools,
)
from homeport.sim.machine.workload.view import View, leaving

_PREFIXES = ("metallb.io", "metallb.universe.tf")  # the second one is the old spelling
_FROM_POOL = "metallb.io/ip-allocated-from-pool"


@dataclass(slots=True)
class _Request:
    """What a Service asks for."""

    service: Json
    key: str
    ports: list[Port]
    sharing: Sharing
    versions: list[int]  # IP families
    pool: str
    held: list[Address] = field(default_factory=list)

    @classmethod
    def of(cls, service: Json) -> _Request:
        meta, spec = service["metadata"], service["spec"]
        selector = spec.get("selector") or {}
        local = spec.get("externalTrafficPolicy") == "Local"
        backend = ",".join(f"{key}={value}" for key, value in sorted(selector.items())) if local else ""
        return cls(
            service,
            f"{meta['namespace']}/{meta['name']}",
            [(str(each.get("protocol") or "TCP").lower(), int(each["port"])) for each in spec.get("ports") or ()],
            Sharing(_annotation(service, "allow-shared-ip"), backend),
            [6 if family == "IPv6" else 4 for family in spec.get("ipFamilies") or ["IPv4"]],
            _annotation(service, "address-pool"),
            held_addresses(service),
        )

    def wanted(self) -> list[Address]:
        """Addresses that the Service names. Raises AllocationProblem."""
        listed = _annotation(self.service, "loadBalancerIPs")
        single = str(self.service["spec"].get("loadBalancerIP") or "")
        if listed and single:
            raise AllocationProblem("service can not have both metallb.io/loadBalancerIPs and svc.Spec.LoadBalancerIP")
        try:
            return [ip_address(each.strip()) for each in (listed or single).split(",") if each.strip()]
        except ValueError:
            field_name = "metallb.io/loadBalancerIPs:" if listed else "spec.loadBalancerIP"
            raise AllocationProblem(f'invalid {field_name} "{listed or single}"') from None


class Controller:
    def __init__(self) -> None:
        self._events = EventRecorder("metallb-controller")

    async def settle(self, view: View, pod: Json) -> None:
        """`pod`: the one that leads."""
        container = container_of(pod, *CONTROLLER) or {}
        pools = usable_pools(view.all(POOL))
        allocator = Allocator(pools)
        services = [each for each in view.all(SERVICE) if is_ours(each, flag(container, "lb-class"))]
        requests = [_Request.of(each) for each in sorted(services, key=_age)]
        labels = {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in view.all(NAMESPACE)}
        # Who has addresses keeps them before others get any: after a restart nothing else remembers who had which.
        kept = {request.key: await self._keep(view, allocator, request) for request in requests if request.held}
        for request in requests:
            if not kept.get(request.key):
                await self._give(view, allocator, pools, request, labels)
        for service in view.all(SERVICE):
            if service["spec"].get("type") != "LoadBalancer" and _FROM_POOL in (
                service["metadata"].get("annotations") or {}
            ):
                await _clear(view, service)

    async def _keep(self, view: View, allocator: Allocator, request: _Request) -> bool:
        """Whether the addresses that it has are still allowed and wanted."""
        try:
            for address in request.held:
                allocator.assign(request.key, address, request.ports, request.sharing)
        except AllocationProblem as problem:
            text = (
                f'current IP for "{request.key}" not allowed by config, will attempt for new IP assignment: {problem}'
            )
            await self._events.normal(view, SERVICE, request.service, "ClearAssignment", text)
            return False
        try:
            wanted = request.wanted()
        except AllocationProblem as problem:
            text = f"invalid requested loadbalancer IPs: {problem}"
            await self._events.warn(view, SERVICE, request.service, "LoadBalancerFailed", text)
            return True
        return (not wanted or sorted(wanted, key=str) == sorted(request.held, key=str)) and (
            not request.pool or request.pool == allocator.pool_of(request.held[0])
        )

    async def _give(
        self,
        view: View,
        allocator: Allocator,
        pools: Mapping[str, Pool],
        request: _Request,
        labels: Mapping[str, Mapping[str, str]],
    ) -> None:
        service = request.service
        if not pools:
            await _clear(view, service)
            return
        try:
            found = _choose(allocator, request, labels.get(service["metadata"]["namespace"], {}))
        except AllocationProblem as problem:
            await _clear(view, service)
            text = f'Failed to allocate IP for "{request.key}": {problem}'
            await self._events.warn(view, SERVICE, service, "AllocationFailed", text)
            return
        if found != request.held:
            ingress = [{"ip": str(each), "ipMode": "VIP"} for each in found]
            await view.set_status(SERVICE, service, {"loadBalancer": {"ingress": ingress}})
            pool = {_FROM_POOL: allocator.pool_of(found[0])}
            await view.patch(SERVICE, service, {"metadata": {"annotations": pool}})
        shown = " ".join(f'"{each}"' for each in found)
        await self._events.normal(view, SERVICE, service, "IPAllocated", f"Assigned IP [{shown}]")


def _choose(allocator: Allocator, request: _Request, namespace_labels: Mapping[str, str]) -> list[Address]:
    """Raises AllocationProblem."""
    wanted = request.wanted()
    if not wanted:
        if request.pool:
            return allocator.from_pool(request.key, request.versions, request.pool, request.ports, request.sharing)
        return allocator.from_any(request.service, namespace_labels, request.versions, request.ports, request.sharing)
    shown = "[" + " ".join(f'"{each}"' for each in wanted) + "]"
    if sorted(each.version for each in wanted) != sorted(request.versions):
        raise AllocationProblem(f"requested loadBalancer IP(s) {shown} does not match the ipFamily of the service")
    pool = allocator.pool_of(wanted[0])
    if request.pool and pool and pool != request.pool:
        raise AllocationProblem(
            f"requested loadBalancer IP(s) {shown} is not compatible with requested address pool {request.pool}"
        )
    for address in wanted:
        allocator.assign(request.key, address, request.ports, request.sharing)
    return wanted


def is_ours(service: Json, load_balancer_class: str) -> bool:
    spec = service["spec"]
    return (
        spec.get("type") == "LoadBalancer"
        and not leaving(service)
        and (spec.get("loadBalancerClass") or "") == load_balancer_class
    )


def held_addresses(service: Json) -> list[Address]:
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [ip_address(each["ip"]) for each in ingress if each.get("ip")]


async def _clear(view: View, service: Json) -> None:
    """Only what came from MetalLB: another load balancer may serve the Service."""
    if _FROM_POOL not in (service["metadata"].get("annotations") or {}):
        return
    await view.patch(SERVICE, service, {"status": {"loadBalancer": None}}, subresource="status")
    await view.patch(SERVICE, service, {"metadata": {"annotations": {_FROM_POOL: None}}})


def _annotation(service: Json, name: str) -> str:
    annotations = service["metadata"].get("annotations") or {}
    return str(next((annotations[key] for prefix in _PREFIXES if (key := f"{prefix}/{name}") in annotations), ""))


def _age(service: Json) -> tuple[str, str, str]:
    meta = service["metadata"]
    return meta.get("creationTimestamp") or "", meta["namespace"], meta["name"]
