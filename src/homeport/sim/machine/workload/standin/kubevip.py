"""kube-vip for Services: the address that a Service asks for, or that kube-vip's cloud provider chose for it."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

from homeport.sim.machine.workload.kind import CONFIG_MAP, SERVICE, Json
from homeport.sim.machine.workload.standin.announcer import Announcement, Announcer
from homeport.sim.machine.workload.standin.event import EventRecorder
from homeport.sim.machine.workload.standin.image import container_of, working
from homeport.sim.machine.workload.view import View, leaving
from homeport.sim.network import Exhausted, Pool, Taken

KUBE_VIP: Final = ("kube-vip",)
PROVIDER: Final = ("kube-vip-cloud-provider",)
_WANTED: Final = "kube-vip.io/loadbalancerIPs"
_LABEL: Final = "implementation"


class KubeVip:
    def __init__(self, announcer: Announcer) -> None:
        self._announcer = announcer
        self._events = EventRecorder("kube-vip-cloud-provider")

    async def settle(self, view: View) -> None:
        pods = [pod for pod in working(view, *KUBE_VIP) if serves_services(pod)]
        services = [each for each in view.all(SERVICE) if _is_ours(each)] if pods or working(view, *PROVIDER) else []
        if services and working(view, *PROVIDER):
            await self._assign(view, services)
        nodes = sorted(pod["spec"]["nodeName"] for pod in pods)
        wanted: dict[str, Announcement] = {}
        for service in services if nodes else ():
            address = _asked(service)
            if not address:
                continue
            await view.set_status(SERVICE, service, {"loadBalancer": {"ingress": [{"ip": address, "ipMode": "VIP"}]}})
            known = wanted.get(address)
            wanted[address] = Announcement(nodes, [*(known.services if known else ()), service])
        self._announcer.settle(view, wanted)

    async def _assign(self, view: View, services: list[Json]) -> None:
        """What the cloud provider does: writes an address of the range of the Service's namespace, or of all."""
        found = (each for each in view.all(CONFIG_MAP) if each["metadata"]["namespace"] == "kube-system")
        data = next((each.get("data") or {} for each in found if each["metadata"]["name"] == "kubevip"), {})
        taken = [address for each in services if (address := _asked(each))]
        for service in services:
            if _asked(service):
                continue
            namespace = service["metadata"]["namespace"]
            ranges = [
                text.strip()
                for key in (f"cidr-{namespace}", f"range-{namespace}", "cidr-global", "range-global")
                for text in str(data.get(key, "")).split(",")
                if text.strip()
            ]
            address = _free(ranges, taken)
            if not address:
                text = "no address pools could be found" if not ranges else "no addresses available in the pool"
                await self._events.warn(view, SERVICE, service, "SyncLoadBalancerFailed", text)
                continue
            taken.append(address)
            notes = {"annotations": {_WANTED: address}, "labels": {_LABEL: "kube-vip"}}
            await view.patch(SERVICE, service, {"metadata": notes, "spec": {"loadBalancerIP": address}})


def _free(ranges: Iterable[str], taken: Iterable[str]) -> str:
    try:
        pool = Pool(ranges)
        for address in taken:
            pool.take("others", str(ip_address(address)))
        return pool.take("service")
    except (Exhausted, Taken, ValueError):
        return ""


def serves_services(pod: Json) -> bool:
    env = (container_of(pod, *KUBE_VIP) or {}).get("env") or ()
    return any(each.get("name") == "svc_enable" and str(each.get("value")).lower() == "true" for each in env)


def _is_ours(service: Json) -> bool:
    spec = service["spec"]
    return (
        spec.get("type") == "LoadBalancer"
        and not leaving(service)
        and spec.get("loadBalancerClass") in (None, "", "kube-vip.io/kube-vip-class")
    )


def _asked(service: Json) -> str:
    notes = service["metadata"].get("annotations") or {}
    text = str(notes.get(_WANTED) or service["spec"].get("loadBalancerIP") or "").split(",")[0].strip()
    try:
        address = ip_address(text)
    except ValueError:
        return ""
    return "" if address.is_unspecified else str(address)  # 0.0.0.0 asks a DHCP server, which is not simulated
