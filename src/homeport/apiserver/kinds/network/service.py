"""Service: defaults, what its types demand, and its addresses and ports.

One IP family: a server with a second one would need a second range. Not checked: annotations of cloud load balancers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.apiserver.kinds.check import invalid
from homeport.apiserver.kinds.network.allocation import Allocator, ports_of
from homeport.apiserver.kinds.network.rule import (
    WITH_PORTS,
    changed_addresses,
    checked,
    external,
    ingress_without_balancer,
    needs_health_check,
)
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause


class Service(Plain):
    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator

    def begin(self, obj: Json) -> None:
        obj["status"] = {}
        _sync_addresses(obj.get("spec") or {}, {})

    def prepare_update(self, obj: Json, old: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        before = old.get("spec") or {}
        _sync_addresses(spec, before)
        kind, was = spec.get("type") or "ClusterIP", before.get("type")
        if kind != "ExternalName" and was != "ExternalName":
            # What is left out on update stays: a client need not know what was allocated.
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if not spec.get(field) and before.get(field):
                    spec[field] = before[field]
        _drop_with_type(spec, before, kind)
        _keep_ports(spec, before, kind)

    def default(self, obj: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        if not spec.get("type"):
            spec["type"] = "ClusterIP"
        _default_affinity(spec)
        for found in spec.get("ports") or ():
            found.setdefault("protocol", "TCP")
            if found.get("targetPort") in (None, 0, ""):
                found["targetPort"] = found.get("port", 0)
        if external(spec) and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        if spec["type"] in ("ClusterIP", *WITH_PORTS):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        causes: list[Cause] = []
        if old is not None:
            causes += changed_addresses(spec, old.get("spec") or {})
            causes += ingress_without_balancer(obj, old)
        causes += checked(spec)
        if not causes:
            causes += self._allocate(obj, old)
        return causes

    def fields(self, obj: Json) -> Mapping[str, str]:
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}

    # Addresses and ports are handed out last, when nothing else can be wrong: they are nobody's field then.

    def _allocate(self, obj: Json, old: Json | None) -> Iterator[Cause]:
        spec, meta = obj["spec"], obj["metadata"]
        key = f"{meta['namespace']}/{meta['name']}"
        if spec["type"] == "ExternalName":
            return
        yield from _families(spec)
        if spec.get("clusterIP") != "None":
            yield from self._address(spec, key)
        if spec["type"] in WITH_PORTS:
            yield from self._ports(spec, key)

    def _address(self, spec: Json, key: str) -> Iterator[Cause]:
        wanted = spec.get("clusterIP")
        if not wanted:
            found = self.allocator.free_address(key)
            if found is None:
                yield invalid("spec.clusterIPs", None, "failed to allocate a serviceIP: range is full")
                return
            spec["clusterIP"], spec["clusterIPs"] = found, [found]
            return
        fault = ""
        if not self.allocator.contains(wanted):
            fault = "the provided network does not match the current range"
        elif self.allocator.addresses.by_other(wanted, key):
            fault = "provided IP is already allocated"
        if fault:
            yield invalid("spec.clusterIPs", spec["clusterIPs"], f"failed to allocate IP {wanted}: {fault}")
        else:
            self.allocator.addresses.reserve(wanted, key)

    def _ports(self, spec: Json, key: str) -> Iterator[Cause]:
        wanted = spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts")
        shared: dict[int, int] = {}  # one number serves both protocols of a port
        for i, found in enumerate(spec.get("ports") or ()):
            field, port = f"spec.ports[{i}].nodePort", found.get("port", 0)
            if found.get("nodePort"):
                yield from self._port(field, found["nodePort"], key)
            elif wanted:
                number = shared.get(port) or self.allocator.free_port(key, ports_of(spec))
                if number is None:
                    yield invalid(field, 0, "failed to allocate a nodePort: range is full")
                    return
                found["nodePort"] = number
            if found.get("nodePort"):
                shared.setdefault(port, found["nodePort"])
        if needs_health_check(spec):
            if spec.get("healthCheckNodePort"):
                yield from self._port("spec.healthCheckNodePort", spec["healthCheckNodePort"], key)
            else:
                spec["healthCheckNodePort"] = self.allocator.free_port(key, ports_of(spec)) or 0

    def _port(self, field: str, number: int, key: str) -> Iterator[Cause]:
        ports = self.allocator.ports
        if number not in ports:
            detail = f"provided port is not in the valid range. The range of valid ports is {ports[0]}-{ports[-1]}"
            yield invalid(field, number, detail)
        elif self.allocator.node_ports.by_other(number, key):
            yield invalid(field, number, "provided port is already allocated")
        else:
            self.allocator.node_ports.reserve(number, key)


def _default_affinity(spec: Json) -> None:
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        given = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if given.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}


def _sync_addresses(spec: Json, old: Json) -> None:
    """clusterIP is the first of clusterIPs: whichever of the two was changed decides."""
    one, many = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    before, before_many = old.get("clusterIP", ""), old.get("clusterIPs") or []
    if not before:
        if one and not many:
            spec["clusterIPs"] = [one]
        return
    if one != before and many == before_many:
        if one:
            spec["clusterIPs"] = [one]
        else:
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
    elif one == before and not many:
        spec["clusterIPs"] = before_many


def _drop_with_type(spec: Json, old: Json, kind: str) -> None:
    """What belonged to the old type goes with it, if the client did not touch it."""
    was = old.get("type")
    if kind == was:
        if kind == "LoadBalancer" and old.get("externalTrafficPolicy") == "Local" != spec.get("externalTrafficPolicy"):
            _drop_same(spec, old, "healthCheckNodePort")
        return
    if kind == "ExternalName":
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
            _drop_same(spec, old, field)
    if was in WITH_PORTS and kind not in WITH_PORTS:
        if not (kind == "ClusterIP" and spec.get("externalIPs")):
            _drop_same(spec, old, "externalTrafficPolicy")
        known = {p.get("nodePort") for p in old.get("ports") or ()}
        for found in spec.get("ports") or ():
            if found.get("nodePort") in known:
                found.pop("nodePort", None)
    if was == "LoadBalancer":
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"):
            _drop_same(spec, old, field)
    if was == "ExternalName" and spec.get("externalName") == old.get("externalName"):
        spec.pop("externalName", None)


def _drop_same(spec: Json, old: Json, field: str) -> None:
    if field in spec and spec[field] == old.get(field):
        del spec[field]


def _keep_ports(spec: Json, old: Json, kind: str) -> None:
    """A port that is left out of an update keeps the node port it had."""
    if kind not in WITH_PORTS or old.get("type") not in WITH_PORTS:
        return
    known = {
        (p.get("port"), p.get("protocol", "TCP")): p["nodePort"] for p in old.get("ports") or () if p.get("nodePort")
    }
    used = set(ports_of(spec))
    for found in spec.get("ports") or ():
        number = known.get((found.get("port"), found.get("protocol") or "TCP"))
        if number and not found.get("nodePort") and number not in used:
            found["nodePort"] = number
    if old.get("healthCheckNodePort") and not spec.get("healthCheckNodePort"):
        if kind == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
            spec["healthCheckNodePort"] = old["healthCheckNodePort"]


def _families(spec: Json) -> Iterator[Cause]:
    headless_alone = spec.get("clusterIP") == "None" and not spec.get("selector")
    policy = spec.get("ipFamilyPolicy")
    if headless_alone:
        # Nobody but the one who makes the endpoints knows their families: all are possible.
        if not policy:
            spec["ipFamilyPolicy"] = "SingleStack" if spec.get("ipFamilies") else "RequireDualStack"
        if not spec.get("ipFamilies"):
            single = spec["ipFamilyPolicy"] == "SingleStack"
            spec["ipFamilies"] = ["IPv4"] if single else ["IPv4", "IPv6"]
        return
    if policy == "RequireDualStack":
        yield invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services")
    for i, family in enumerate(spec.get("ipFamilies") or ()):
        if family != "IPv4":
            yield invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster")
    if not policy:
        spec["ipFamilyPolicy"] = "SingleStack"
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4"]
