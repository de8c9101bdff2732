"""LoadBalancers: an address of a pool, a Service that carries it, and the VMs behind it."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, ip_address
from typing import Any

from homeport.sim.harvester.balancer.announce import Announcer
from homeport.sim.harvester.balancer.pool import PoolError, Pools
from homeport.sim.harvester.balancer.select import GROUP, Requirement, select_pool
from homeport.sim.harvester.balancer.service import ASK_DHCP, SERVICE_NAME
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import ENDPOINT_SLICE, IP_POOL, LOAD_BALANCER, SERVICE, VMI, Json
from homeport.sim.harvester.object import condition, finalizers, key_of, labels, leaving, notes, status_of

FINALIZER = "wrangler.cattle.io/harvester-lb-controller"
SERVICE_LABEL = f"{GROUP}/servicelb"
_RETRY_SECONDS = 1.0
# Without any endpoint, rules of the network would lead somewhere else.
_NOBODY = {"addresses": ["10.52.0.255"], "uid": "dummy347-546a-4642-9da6-5608endpoint"}


class NotReady(Exception):
    """Why a load balancer can't serve; `after`: when to look again."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class LoadBalancers:
    def __init__(self, core: Core, pools: Pools, announcer: Announcer) -> None:
        self._core = core
        self._pools = pools
        self._announcer = announcer
        self._probes: dict[tuple[str, str], int] = {}  # results in a row: above 0 successes, below 0 failures

    async def settle(self, key: str) -> float | None:
        found = self._core.mirror.get(LOAD_BALANCER, key)
        if found is None:
            return None
        if leaving(found):
            await self._release(found)
            return None
        status: Json = {}
        try:
            after = await self._serve(key, found, status)
        except NotReady as error:
            await self._report(found, status, str(error))
            return error.after
        await self._report(found, status, "")
        return after

    async def _serve(self, key: str, balancer: Json, status: Json) -> float | None:
        """Fills in `status` as far as it gets. Raises NotReady."""
        status["allocatedAddress"] = allocated = await self._allocate(key, balancer)
        if balancer["spec"].get("workloadType") == "cluster":
            return None  # the address is announced in the guest cluster
        await self._hold_service(balancer, allocated["ip"])
        ingress = (status_of(self._service(key)).get("loadBalancer") or {}).get("ingress") or []
        if not ingress:
            status["address"] = ""
            raise NotReady("wait external IP", _RETRY_SECONDS)
        status["address"] = ingress[0]["ip"]
        matched = list(self._matched(balancer))
        addresses = {each["metadata"]["uid"]: address for each in matched if (address := address_of(each))}
        status["backendServers"] = list(addresses.values())
        healthy = self._healthy(key, balancer, list(addresses.values()))
        await self._hold_endpoints(balancer, matched, addresses, healthy)
        return _verdict(balancer, matched, addresses, healthy)

    # -- the address -------------------------------------------------------------------------------------------

    async def _allocate(self, key: str, balancer: Json) -> Json:
        spec, held = balancer["spec"], status_of(balancer).get("allocatedAddress") or {}
        if spec.get("ipam") == "dhcp":
            return {"ip": ASK_DHCP}
        if held.get("ipPool") and spec.get("ipPool") and held["ipPool"] != spec["ipPool"]:
            await self._pools.release(held["ipPool"], key)
            held = {}
        if held.get("ipPool"):
            return dict(held)
        try:
            return await self._pools.book(spec.get("ipPool") or self._select(balancer), key)
        except PoolError as error:
            raise NotReady(str(error), _RETRY_SECONDS) from error

    def _select(self, balancer: Json) -> str:
        told = notes(balancer)
        wanted = Requirement(
            told.get(f"{GROUP}/network", ""),
            told.get(f"{GROUP}/project", ""),
            told.get(f"{GROUP}/namespace", "") or balancer["metadata"]["namespace"],
            told.get(f"{GROUP}/cluster", ""),
        )
        pools = self._core.mirror.all(IP_POOL)
        found = select_pool(pools, wanted)
        if found is None and balancer["spec"].get("workloadType") == "cluster":
            found = select_pool(pools, wanted, loose=True)
        if found is None:
            shown = (
                f"&{{Network:{wanted.network} Project:{wanted.project} Namespace:{wanted.namespace} "
                f"Cluster:{wanted.cluster}}}"
            )
            raise NotReady(f"no matched IPPool with requirement {shown}", _RETRY_SECONDS)
        return str(found["metadata"]["name"])

    # -- the Service and its endpoints -------------------------------------------------------------------------

    def _service(self, key: str) -> Json:
        return self._core.mirror.get(SERVICE, key) or {}

    async def _hold_service(self, balancer: Json, address: str) -> None:
        ports = [
            {
                "name": each.get("name", ""),
                "protocol": each.get("protocol", "TCP"),
                "port": each["port"],
                "targetPort": each["backendPort"],
            }
            for each in balancer["spec"].get("listeners") or ()
        ]
        spec = {"type": "LoadBalancer", "loadBalancerIP": address, "ports": ports}
        found = self._core.mirror.get(SERVICE, key_of(balancer))
        if found is None:
            made = {"metadata": _child(balancer, {SERVICE_LABEL: "true"}), "spec": spec}
            await self._core.create(made, SERVICE)
        elif found["spec"].get("loadBalancerIP") != address or _ports(found["spec"].get("ports") or []) != _ports(
            ports
        ):
            await self._core.patch(SERVICE, found, {"spec": spec})

    async def _hold_endpoints(
        self, balancer: Json, matched: list[Json], addresses: dict[str, str], healthy: set[str]
    ) -> None:
        endpoints: list[Json] = [
            {
                "addresses": [addresses[each["metadata"]["uid"]]],
                "conditions": {"ready": addresses[each["metadata"]["uid"]] in healthy},
                "targetRef": _reference(each["metadata"], each["metadata"]["uid"]),
            }
            for each in matched
            if each["metadata"]["uid"] in addresses
        ]
        if not healthy:
            nobody = _reference(balancer["metadata"], str(_NOBODY["uid"]))
            endpoints.append({"addresses": _NOBODY["addresses"], "conditions": {"ready": True}, "targetRef": nobody})
        ports = [
            {"name": each.get("name", ""), "protocol": each.get("protocol", "TCP"), "port": each["backendPort"]}
            for each in balancer["spec"].get("listeners") or ()
        ]
        found = self._core.mirror.get(ENDPOINT_SLICE, key_of(balancer))
        if found is None:
            meta = _child(balancer, {SERVICE_LABEL: "true", SERVICE_NAME: balancer["metadata"]["name"]})
            made = {"metadata": meta, "addressType": "IPv4", "ports": ports, "endpoints": endpoints}
            await self._core.create(made, ENDPOINT_SLICE)
        elif found.get("endpoints") != endpoints or _ports(found.get("ports") or []) != _ports(ports):
            await self._core.patch(ENDPOINT_SLICE, found, {"ports": ports, "endpoints": endpoints})

    def _matched(self, balancer: Json) -> Iterator[Json]:
        """The VMs of its namespace that the selector fits; none without a selector."""
        selector: dict[str, list[str]] = balancer["spec"].get("backendServerSelector") or {}
        for vmi in sorted(self._core.mirror.all(VMI), key=lambda each: str(each["metadata"]["name"])):
            here = vmi["metadata"]["namespace"] == balancer["metadata"]["namespace"] and not leaving(vmi)
            if selector and here and all(labels(vmi).get(name) in values for name, values in selector.items()):
                yield vmi

    def _healthy(self, key: str, balancer: Json, addresses: list[str]) -> set[str]:
        check = balancer["spec"].get("healthCheck") or {}
        if not check.get("port"):
            return set(addresses)
        found = set()
        for address in addresses:
            before = self._probes.get((key, address), 0)
            ok = self._announcer.reaches(key, address, int(check["port"]))
            row = max(before, 0) + 1 if ok else min(before, 0) - 1
            self._probes[key, address] = row
            needed = check.get("successThreshold", 1) if ok else check.get("failureThreshold", 3)
            if (ok and row >= needed) or (not ok and -row < needed and self._was_ready(key, address)):
                found.add(address)
        return found

    def _was_ready(self, key: str, address: str) -> bool:
        slice_ = self._core.mirror.get(ENDPOINT_SLICE, key) or {}
        for each in slice_.get("endpoints") or ():
            if each["addresses"] == [address]:
                return bool((each.get("conditions") or {}).get("ready"))
        return False

    # -- the end, and the report -------------------------------------------------------------------------------

    async def _release(self, balancer: Json) -> None:
        key, held = key_of(balancer), status_of(balancer).get("allocatedAddress") or {}
        if held.get("ipPool"):
            await self._pools.release(held["ipPool"], str(key))
        for kind in (ENDPOINT_SLICE, SERVICE):
            child = self._core.mirror.get(kind, key)
            if child is not None and labels(child).get(SERVICE_LABEL):
                await self._core.delete(kind, child)
        for probe in [each for each in self._probes if each[0] == str(key)]:
            del self._probes[probe]
        kept = [each for each in finalizers(balancer) if each != FINALIZER]
        await self._core.patch(LOAD_BALANCER, balancer, {"metadata": {"finalizers": kept}})

    async def _report(self, balancer: Json, status: Json, message: str) -> None:
        """These kinds have no status subresource: the status is written with the object."""
        now, before = self._core.stamp, condition(balancer, "Ready")
        ready: dict[str, Any] = {"type": "Ready", "status": "False" if message else "True", "lastUpdateTime": now}
        if message:
            ready["message"] = message
        same = before.get("status") == ready["status"] and before.get("message", "") == message
        known = status_of(balancer)
        if same and FINALIZER in finalizers(balancer) and all(known.get(name) == status[name] for name in status):
            return
        patch: Json = {"status": {**status, "conditions": [before if same else ready]}}
        if FINALIZER not in finalizers(balancer):
            patch["metadata"] = {"finalizers": [*finalizers(balancer), FINALIZER]}
        await self._core.patch(LOAD_BALANCER, balancer, patch)


def _verdict(balancer: Json, matched: list[Json], addresses: dict[str, str], healthy: set[str]) -> float | None:
    """When to probe again. Raises NotReady."""
    check = balancer["spec"].get("healthCheck") or {}
    period = float(check.get("periodSeconds") or 5) if check.get("port") else None
    if not addresses:
        raise NotReady("running backend servers have no IP" if matched else "no running backend servers")
    if period is not None and not healthy:
        text = f"running backend servers are not probed as healthy total:{len(addresses)}, healthy:0"
        raise NotReady(text, period)
    return period


def address_of(vmi: Json) -> str:
    """The first IPv4 address that the VM reports; '' if it reports none."""
    for each in status_of(vmi).get("interfaces") or ():
        text = str(each.get("ipAddress") or "")
        try:
            if text and isinstance(ip_address(text), IPv4Address):
                return text
        except ValueError:
            continue
    return ""


def _child(balancer: Json, marks: dict[str, str]) -> Json:
    meta = balancer["metadata"]
    owner = {
        **LOAD_BALANCER.type_meta,
        "name": meta["name"],
        "uid": meta["uid"],
    }
    return {"name": meta["name"], "namespace": meta["namespace"], "labels": marks, "ownerReferences": [owner]}


def _reference(meta: Json, uid: str) -> Json:
    return {"namespace": meta["namespace"], "name": meta["name"], "uid": uid}


def _ports(ports: list[Json]) -> list[tuple[Any, ...]]:
    return [(each.get("name", ""), each.get("protocol", "TCP"), each["port"], each.get("targetPort")) for each in ports]
