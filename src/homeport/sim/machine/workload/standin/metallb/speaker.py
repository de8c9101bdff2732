"""MetalLB's speakers: one of their nodes answers for each address that an L2Advertisement covers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from homeport.sim.machine.workload.kind import SERVICE, Json
from homeport.sim.machine.workload.standin.announcer import Announcement, Announcer
from homeport.sim.machine.workload.standin.event import EventRecorder
from homeport.sim.machine.workload.standin.image import container_of, flag, works
from homeport.sim.machine.workload.standin.metallb.controller import held_addresses, is_ours
from homeport.sim.machine.workload.standin.metallb.kind import BGP, L2, POOL, SPEAKER
from homeport.sim.machine.workload.standin.metallb.pool import Pool, usable_pools
from homeport.sim.machine.workload.view import View, matches

_EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"


class Speakers:
    def __init__(self, announcer: Announcer) -> None:
        self._announcer = announcer
        self._events = EventRecorder("metallb-speaker")

    async def settle(self, view: View, pods: list[Json]) -> None:
        pools = usable_pools(view.all(POOL))
        nodes = {pod["spec"]["nodeName"]: view.nodes[pod["spec"]["nodeName"]] for pod in pods if _may_speak(view, pod)}
        wanted = self._wanted(view, nodes, pools, _class(pods))
        self._announcer.settle(view, wanted)
        for address, announcement in wanted.items():
            node = self._announcer.holder(address)
            for service in announcement.services if node else ():
                text = f'announcing from node "{node}" with protocol "layer2"'
                await self._events.normal(view, SERVICE, service, "nodeAssigned", text)
        await self._say_unsimulated(view, pools, wanted, _class(pods))

    def _wanted(
        self, view: View, nodes: Mapping[str, Json], pools: Mapping[str, Pool], load_balancer_class: str
    ) -> dict[str, Announcement]:
        found: dict[str, tuple[set[str], list[Json]]] = {}
        for service in view.all(SERVICE):
            if not is_ours(service, load_balancer_class):
                continue
            able = _with_endpoints(view, service, nodes)
            for address in map(str, held_addresses(service)):
                pool = next((each for each in pools.values() if each.contains(ip_address(address))), None)
                chosen = able & _covered(view.all(L2), pool, service, nodes) if pool is not None else set()
                known = found.get(address)
                # Services that share an address are announced by one node, which has to serve all of them.
                found[address] = (chosen, [service]) if known is None else (known[0] & chosen, [*known[1], service])
        return {
            address: Announcement(sorted(able, key=lambda node: _rank(node, address)), services)
            for address, (able, services) in found.items()
            if able or self._announcer.holder(address)
        }

    async def _say_unsimulated(
        self, view: View, pools: Mapping[str, Pool], wanted: Mapping[str, Announcement], load_balancer_class: str
    ) -> None:
        for service in view.all(SERVICE) if view.all(BGP) else ():
            for address in held_addresses(service) if is_ours(service, load_balancer_class) else ():
                pool = next((each for each in pools.values() if each.contains(address)), None)
                if str(address) not in wanted and pool is not None and _selecting(view.all(BGP), pool):
                    text = (
                        f"BGPAdvertisements are not simulated: {address} is not reachable. "
                        "Create an L2Advertisement for its pool"
                    )
                    await self._events.warn(view, SERVICE, service, "NotSimulated", text)


def _class(pods: list[Json]) -> str:
    return flag(container_of(pods[0], *SPEAKER) or {}, "lb-class") if pods else ""


def _may_speak(view: View, pod: Json) -> bool:
    node = view.nodes.get(pod["spec"]["nodeName"])
    if node is None:
        return False
    container = container_of(pod, *SPEAKER) or {}
    ignored = flag(container, "ignore-exclude-lb") == "true" or "--ignore-exclude-lb" in (container.get("args") or ())
    return ignored or _EXCLUDED not in (node["metadata"].get("labels") or {})


def _with_endpoints(view: View, service: Json, nodes: Iterable[str]) -> set[str]:
    """Nodes that can serve it: none without a ready Pod, and with externalTrafficPolicy Local only those with one."""
    selector = service["spec"].get("selector") or {}
    if not selector:
        return set(nodes)  # its endpoints are somebody else's
    namespace = service["metadata"]["namespace"]
    ready = {
        pod["spec"]["nodeName"]
        for pod in view.pods
        if pod["metadata"]["namespace"] == namespace
        and selector.items() <= (pod["metadata"].get("labels") or {}).items()
        and works(view, pod)
    }
    if service["spec"].get("externalTrafficPolicy") == "Local":
        return ready & set(nodes)
    return set(nodes) if ready else set()


def _selecting(advertisements: Iterable[Json], pool: Pool) -> list[Json]:
    return [each for each in advertisements if _selects_pool(each.get("spec") or {}, pool)]


def _selects_pool(spec: Json, pool: Pool) -> bool:
    names, selectors = spec.get("ipAddressPools") or (), spec.get("ipAddressPoolSelectors") or ()
    return pool.name in names or any(matches(each, pool.labels) for each in selectors) or not (names or selectors)


def _covered(advertisements: Iterable[Json], pool: Pool, service: Json, nodes: Mapping[str, Json]) -> set[str]:
    """Nodes from which an L2Advertisement lets the Service's address be announced."""
    found: set[str] = set()
    for each in _selecting(advertisements, pool):
        spec = each.get("spec") or {}
        services, selectors = spec.get("serviceSelectors") or (), spec.get("nodeSelectors") or ()
        if services and not any(matches(one, service["metadata"].get("labels")) for one in services):
            continue
        found |= {
            name
            for name, node in nodes.items()
            if not selectors or any(matches(one, node["metadata"].get("labels")) for one in selectors)
        }
    return found


def _rank(node: str, address: str) -> bytes:
    """All speakers come to the same order without talking to each other."""
    return hashlib.sha256(f"{node}#{address}".encode()).digest()
