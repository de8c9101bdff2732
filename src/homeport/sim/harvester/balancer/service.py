"""Services of type LoadBalancer: which address they get, and where it leads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from ipaddress import IPv4Address, ip_address, ip_network

from homeport.sim.harvester.balancer.announce import Announcer, Backends
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import CONFIG_MAP, ENDPOINT_SLICE, POD, SERVICE, Json
from homeport.sim.harvester.object import key_of, labels, leaving, notes, status_of
from homeport.sim.network import Exhausted, Pool, Taken

ASKED = "kube-vip.io/loadbalancerIPs"
ASK_DHCP = "0.0.0.0"  # noqa: S104  (what kube-vip takes for "ask a DHCP server")
SERVICE_NAME = "kubernetes.io/service-name"
POOLS = "kube-system/kubevip"  # the ConfigMap with ranges for Services that ask for no address


class Services:
    def __init__(self, core: Core, announcer: Announcer) -> None:
        self._core = core
        self._announcer = announcer
        self._choosing = asyncio.Lock()  # one at a time: each sees what the one before it took

    async def settle(self, key: str) -> float | None:
        service = self._core.mirror.get(SERVICE, key)
        if service is None or leaving(service) or service["spec"].get("type") != "LoadBalancer":
            self._announcer.drop(key)
            return None
        address = await self._hold_address(service)
        if address:
            self._announcer.hold(key, address, self._ports(service))
        else:
            self._announcer.drop(key)
        return None

    # -- the address -------------------------------------------------------------------------------------------

    async def _hold_address(self, service: Json) -> str:
        async with self._choosing:
            held = _ingress(service)
            address = self._address(service, held)
            if address != held:
                ingress = [{"ip": address, "ipMode": "VIP"}] if address else []
                await self._core.patch(SERVICE, service, {"status": {"loadBalancer": {"ingress": ingress}}}, "status")
        return address

    def _address(self, service: Json, held: str) -> str:
        """What it asks for; else what the ConfigMap of kube-vip has; '' is pending."""
        asked = notes(service).get(ASKED, "") or service["spec"].get("loadBalancerIP", "")
        asked = str(asked).split(",")[0].strip()
        if asked == ASK_DHCP:
            return self._lease(service)
        if asked:
            return asked if _is_address(asked) else ""
        return self._from_pool(service, held)

    def _lease(self, service: Json) -> str:
        """From the DHCP server of the network that Harvester's own address is on."""
        world = self._core.world
        here = ip_address(world.address)
        vlan = next((each.id for each in world.vlans if each.subnet and here in ip_network(each.subnet)), None)
        return "" if vlan is None else self._core.leases.take(vlan, _mac(service))

    def _from_pool(self, service: Json, held: str) -> str:
        config = (self._core.mirror.get(CONFIG_MAP, POOLS) or {}).get("data") or {}
        namespace = service["metadata"]["namespace"]
        ranges = [
            text.strip()
            for scope in (namespace, "global")
            for kind in ("range", "cidr")
            for text in str(config.get(f"{kind}-{scope}", "")).split(",")
            if text.strip()
        ]
        if not ranges:
            return ""
        pool = Pool(ranges)
        for other in self._core.mirror.all(SERVICE):
            if key_of(other) != key_of(service) and (taken := _ingress(other)):
                with contextlib.suppress(Taken):  # two of them may ask for the same address
                    pool.take(str(key_of(other)), taken)
        try:
            return pool.take(str(key_of(service)), held)
        except (Exhausted, Taken):
            return ""

    # -- where it leads ----------------------------------------------------------------------------------------

    def _ports(self, service: Json) -> dict[int, Backends]:
        return {
            int(port["port"]): list(self._backends(service, port))
            for port in service["spec"].get("ports") or ()
            if port.get("protocol", "TCP") == "TCP"
        }

    def _backends(self, service: Json, port: Json) -> Iterator[tuple[str, int]]:
        selector = service["spec"].get("selector")
        if not selector:
            yield from self._listed(service, port)
            return
        for pod in self._core.mirror.all(POD):
            address = status_of(pod).get("podIP")
            here = pod["metadata"]["namespace"] == service["metadata"]["namespace"] and not leaving(pod)
            if here and address and selector.items() <= labels(pod).items():
                yield str(address), _target(port)

    def _listed(self, service: Json, port: Json) -> Iterator[tuple[str, int]]:
        namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
        for each in self._core.mirror.all(ENDPOINT_SLICE):
            if each["metadata"]["namespace"] != namespace or labels(each).get(SERVICE_NAME) != name:
                continue
            numbers = [int(it["port"]) for it in each.get("ports") or () if it.get("name", "") == port.get("name", "")]
            for endpoint in each.get("endpoints") or ():
                if (endpoint.get("conditions") or {}).get("ready") is not False:
                    for number in numbers:
                        yield str(endpoint["addresses"][0]), number


def _ingress(service: Json) -> str:
    found = (status_of(service).get("loadBalancer") or {}).get("ingress") or []
    return str(found[0].get("ip", "")) if found else ""


def _is_address(text: str) -> bool:
    try:
        return isinstance(ip_address(text), IPv4Address)
    except ValueError:
        return False


def _mac(service: Json) -> str:
    return f"service {service['metadata']['uid']}"


def _target(port: Json) -> int:
    target = port.get("targetPort") or port["port"]
    return int(target) if str(target).isdigit() else int(port["port"])
