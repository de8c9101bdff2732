"""Services of type LoadBalancer where the infrastructure has no load balancer: an address from a pool.

The announcer of the address (kube-vip, MetalLB's speaker) reads it from the annotations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.infra.error import Misconfigured
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

SERVICE = Resource("", "v1", "Service", "services")
_WRITE = Write(field_manager="homeport-ccm")
# What users and others write; the first that is there counts.
WANTED = ("metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs", "kube-vip.io/loadbalancerIPs")
POOL = ("metallb.io/address-pool", "metallb.universe.tf/address-pool")
ANNOUNCED = "kube-vip.io/loadbalancerIPs"

Address = IPv4Address | IPv6Address


class PoolError(ValueError):
    """A pool that can't be read; the text names it."""


@dataclass(frozen=True, slots=True)
class Pool:
    name: str
    ranges: tuple[tuple[Address, Address], ...]

    def __contains__(self, address: object) -> bool:
        return isinstance(address, IPv4Address | IPv6Address) and any(
            low.version == address.version and int(low) <= int(address) <= int(high) for low, high in self.ranges
        )

    def __iter__(self) -> Iterator[Address]:
        for low, high in self.ranges:
            for number in range(int(low), int(high) + 1):
                yield type(low)(number)


def parse_pool(text: str, name: str = "default") -> Pool:
    """`10.127.14.30-10.127.14.50,10.1.0.0/28`."""
    ranges = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        try:
            if "/" in part:
                network = ip_network(part, strict=False)
                ranges.append((network.network_address, network.broadcast_address))
            else:
                low, _, high = part.partition("-")
                ranges.append((ip_address(low.strip()), ip_address((high or low).strip())))
        except ValueError as error:
            raise PoolError(f"address pool {name!r}: {part!r}: {error}: expected FIRST-LAST or a CIDR") from None
        if int(ranges[-1][0]) > int(ranges[-1][1]) or ranges[-1][0].version != ranges[-1][1].version:
            raise PoolError(f"address pool {name!r}: {part!r} ends before it begins")
    if not ranges:
        raise PoolError(f"address pool {name!r} is empty: expected FIRST-LAST or a CIDR")
    return Pool(name, tuple(ranges))


def parse_pools(found: Mapping[str, str]) -> tuple[Pool, ...]:
    """Name > ranges. Raises Misconfigured."""
    try:
        return tuple(parse_pool(text, name) for name, text in found.items())
    except PoolError as error:
        raise Misconfigured(f"addressPools: {error}") from None


class ServiceReconciler:
    def __init__(self, manager: Manager, pools: Sequence[Pool]) -> None:
        self._client = manager.client
        self._recorder = manager.recorder
        self._services = manager.informers.get(SERVICE).cache
        self._pools = pools
        self._given: dict[Key, str] = {}  # by us: the cache shows it a moment later
        self.waiting: set[Key] = set()  # Services that there was no address for

    async def reconcile(self, key: Key) -> Wait | None:
        service = self._services.get(key)
        self.waiting.discard(key)
        if service is None:
            self._given.pop(key, None)
            return None
        if service.metadata.get("deletionTimestamp") or not balanced(service):
            self._given.pop(key, None)
            await self._take_back(key, service)
            return None
        held = ingress(service)
        taken = {each for other in self._services if key_of(other) != key for each in ingress(other)}
        taken |= {address for other, address in self._given.items() if other != key}
        chosen, why = choose(service, self._pools, held, taken)
        if chosen is None:
            self._recorder.record(service, "NoAddress", why, warning=True)
            self.waiting.add(key)
            return Wait("NoAddress", why)
        self._given[key] = chosen
        await self._give(key, service, chosen)
        return None

    async def _give(self, key: Key, service: Unstructured, address: str) -> None:
        annotations = service.metadata.get("annotations") or {}
        if annotations.get(ANNOUNCED) != address:
            body: dict[str, Any] = {"metadata": {"annotations": {ANNOUNCED: address}}}
            await self._client.patch(SERVICE, key, MergePatch(body), _WRITE)
        if ingress(service) != [address]:
            body = {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
            await self._client.patch(SERVICE, key, MergePatch(body), _WRITE, subresource="status")
            self._recorder.record(service, "EnsuredLoadBalancer", f"reachable at {address}")

    async def _take_back(self, key: Key, service: Unstructured) -> None:
        """Only what is ours: others may balance it in their way."""
        ours = [each for each in ingress(service) if any(ip_address(each) in pool for pool in self._pools)]
        if not ours:
            return
        try:
            body: dict[str, Any] = {"status": {"loadBalancer": {"ingress": None}}}
            await self._client.patch(SERVICE, key, MergePatch(body), _WRITE, subresource="status")
            if (service.metadata.get("annotations") or {}).get(ANNOUNCED) in ours:
                body = {"metadata": {"annotations": {ANNOUNCED: None}}}
                await self._client.patch(SERVICE, key, MergePatch(body), _WRITE)
        except NotFound:
            return


def balanced(service: Unstructured) -> bool:
    spec = service.get("spec") or {}
    return spec.get("type") == "LoadBalancer" and not spec.get("loadBalancerClass")


def ingress(service: Unstructured) -> list[str]:
    found = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [str(each["ip"]) for each in found if each.get("ip")]


def choose(
    service: Unstructured, pools: Sequence[Pool], held: Sequence[str], taken: Iterable[str]
) -> tuple[str | None, str]:
    """An address, or why there is none. One that it has it keeps; one that it asks for it gets if it is free."""
    annotations = service.metadata.get("annotations") or {}
    used = set(taken)
    name = next((annotations[each] for each in POOL if annotations.get(each)), "")
    usable = [pool for pool in pools if not name or pool.name == name]
    if not usable:
        known = ", ".join(pool.name for pool in pools) or "none"
        return None, f"address pool {name!r} does not exist: expected one of {known}"
    wanted = str((service.get("spec") or {}).get("loadBalancerIP") or _asked(annotations, held))
    if wanted:
        return _wanted(wanted, usable, used)
    for each in held:
        if any(ip_address(each) in pool for pool in usable):
            return each, ""
    for pool in usable:
        for address in pool:
            if str(address) not in used:
                return str(address), ""
    return None, f"all addresses of pool {', '.join(pool.name for pool in usable)} are in use: extend the pool"


def _asked(annotations: Any, held: Sequence[str]) -> str:
    for name in WANTED:
        value = str(annotations.get(name) or "").split(",")[0].strip()
        if value and not (name == ANNOUNCED and value in held):
            return value
    return ""


def _wanted(text: str, pools: Sequence[Pool], used: set[str]) -> tuple[str | None, str]:
    try:
        address = ip_address(text)
    except ValueError:
        return None, f"{text!r} is not a valid IP address"
    if not any(address in pool for pool in pools):
        return None, f"{text} is not in an address pool: request another address, or extend a pool"
    if str(address) in used:
        return None, f"{text} is assigned to another Service: request another address"
    return str(address), ""


def _freed(old: Any, new: Any) -> bool:
    return old is not None and set(ingress(old)) > set(ingress(new) if new is not None else ())


def install(manager: Manager, pools: Sequence[Pool]) -> None:
    """One worker: two Services that come at once must not get the same address."""
    reconciler = ServiceReconciler(manager, pools)
    controller = Controller("service", SERVICE, reconciler, workers=1, predicate=_has_load_balancer)
    controller.map(SERVICE, lambda _: list(reconciler.waiting), predicate=_freed)
    manager.add(controller)


def _has_load_balancer(old: Any, new: Any) -> bool:
    """Only Services of type LoadBalancer, or that were, concern this controller."""
    return any(each is not None and (balanced(each) or ingress(each)) for each in (old, new))
