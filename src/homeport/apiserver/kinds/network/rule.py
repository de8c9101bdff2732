"""What is wrong with a Service."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.apiserver.kinds import check
from homeport.apiserver.kinds.check import PROTOCOLS, Struct
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

WITH_PORTS = ("NodePort", "LoadBalancer")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DAY = 86400


def external(spec: Json) -> bool:
    kind = spec["type"]
    return kind in WITH_PORTS or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Json) -> bool:
    return spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def changed_addresses(spec: Json, old: Json) -> Iterator[Cause]:
    if "ExternalName" in (spec["type"], old.get("type")):
        return
    now, before = spec.get("clusterIPs") or [], old.get("clusterIPs") or []
    if before and now and now[0] != before[0]:
        yield check.invalid("spec.clusterIPs[0]", now, "may not change once set")
    elif before and not now:
        yield check.invalid("spec.clusterIPs[0]", now, "primary clusterIP can not be unset")


def ingress_without_balancer(obj: Json, old: Json) -> Iterator[Cause]:
    now, before = ((found.get("status") or {}).get("loadBalancer") or {} for found in (obj, old))
    if now.get("ingress") and now != before and obj["spec"]["type"] != "LoadBalancer":
        yield check.forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")


def checked(spec: Json) -> Iterator[Cause]:
    kind, headless = spec["type"], spec.get("clusterIP") == "None"
    ports: list[Json] = spec.get("ports") or []
    if not ports and not headless and kind != "ExternalName":
        yield check.required("spec.ports")
    if kind in WITH_PORTS and headless:
        yield check.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name(spec)
    names: set[str] = set()
    for i, found in enumerate(ports):
        yield from _port(f"spec.ports[{i}]", found, names, name_needed=len(ports) > 1)
    yield from check.labels("spec.selector", spec.get("selector"))
    yield from check.one_of("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None"))
    if spec["sessionAffinity"] == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _DAY:
            field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            yield check.invalid(field, seconds, f"must be greater than 0 and less than {_DAY}")
    if kind != "ExternalName":
        yield from _addresses(spec)
    for i, address in enumerate(spec.get("externalIPs") or ()):
        yield from check.ip_address(f"spec.externalIPs[{i}]", address)
    yield from check.one_of("spec.type", kind, _TYPES)
    yield from _port_uses(ports, kind)
    yield from _load_balancer(spec, kind)
    yield from _traffic(spec, kind)


def _external_name(spec: Json) -> Iterator[Cause]:
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            yield check.forbidden(f"spec.{field}", "may not be set for ExternalName services")
    name = (spec.get("externalName") or "").removesuffix(".")
    if name:
        yield from check.named("spec.externalName", name, check.dns_subdomain)
    else:
        yield check.required("spec.externalName")


def _port(field: str, found: Json, names: set[str], *, name_needed: bool) -> Iterator[Cause]:
    name = found.get("name", "")
    if name:
        yield from check.named(f"{field}.name", name, check.dns_label)
        if name in names:
            yield check.duplicate(f"{field}.name", name)
        names.add(name)
    elif name_needed:
        yield check.required(f"{field}.name")
    yield from check.port_number(f"{field}.port", found.get("port", 0))
    yield from check.one_of(f"{field}.protocol", found["protocol"], PROTOCOLS)
    yield from check.port(f"{field}.targetPort", found["targetPort"])
    if found.get("appProtocol"):
        yield from check.named(f"{field}.appProtocol", found["appProtocol"], check.label_key)


def _addresses(spec: Json) -> Iterator[Cause]:
    one, many = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if one and not many:
        yield check.required("spec.clusterIPs")
    elif one and many[0] != one:
        yield check.invalid("spec.clusterIPs", many, "first value must match `clusterIP`")
    elif not one and many:
        yield check.invalid("spec.clusterIPs", many, "must be empty when `clusterIP` is not specified")
    seen: set[str] = set()
    for i, family in enumerate(spec.get("ipFamilies") or ()):
        yield from check.one_of(f"spec.ipFamilies[{i}]", family, ("IPv4", "IPv6"))
        if family in seen:
            yield check.duplicate(f"spec.ipFamilies[{i}]", family)
        seen.add(family)
    if spec.get("ipFamilyPolicy"):
        yield from check.one_of("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], _FAMILY_POLICIES)
    if many[:1] == ["None"]:
        if len(many) > 1:
            yield check.invalid("spec.clusterIPs", many, "'None' must be the first and only value")
    else:
        for i, address in enumerate(many):
            yield from check.ip_address(f"spec.clusterIPs[{i}]", address)
    if len(many) > 2:
        yield check.invalid("spec.clusterIPs", many, "may only hold up to 2 values")


def _port_uses(ports: list[Json], kind: str) -> Iterator[Cause]:
    if kind == "ClusterIP":
        for i, found in enumerate(ports):
            if found.get("nodePort"):
                yield check.forbidden(f"spec.ports[{i}].nodePort", "may not be used when `type` is 'ClusterIP'")
    node_ports: set[tuple[str, int]] = set()
    numbers: set[tuple[str, int]] = set()
    for i, found in enumerate(ports):
        use = (found["protocol"], found.get("nodePort", 0))
        if use[1] and use in node_ports:
            yield check.duplicate(f"spec.ports[{i}].nodePort", use[1])
        node_ports.add(use)
    for i, found in enumerate(ports):
        use = (found["protocol"], found.get("port", 0))
        if use in numbers:
            shown = Struct(Name="", Protocol=use[0], AppProtocol=None, Port=use[1], TargetPort=0, NodePort=0)
            yield check.duplicate(f"spec.ports[{i}]", shown)
        numbers.add(use)


def _load_balancer(spec: Json, kind: str) -> Iterator[Cause]:
    ranges = spec.get("loadBalancerSourceRanges") or ()
    if ranges and kind != "LoadBalancer":
        yield check.forbidden("spec.LoadBalancerSourceRanges", "may only be used when `type` is 'LoadBalancer'")
    for i, value in enumerate(ranges):
        yield from check.cidr(f"spec.LoadBalancerSourceRanges[{i}]", value.strip())
    if kind != "LoadBalancer":
        if "allocateLoadBalancerNodePorts" in spec:
            yield check.forbidden(
                "spec.allocateLoadBalancerNodePorts", "may only be used when `type` is 'LoadBalancer'"
            )
        if spec.get("loadBalancerClass"):
            yield check.forbidden("spec.loadBalancerClass", "may only be used when `type` is 'LoadBalancer'")
    elif spec.get("loadBalancerClass"):
        yield from check.named("spec.loadBalancerClass", spec["loadBalancerClass"], check.label_key)


def _traffic(spec: Json, kind: str) -> Iterator[Cause]:
    policy = spec.get("externalTrafficPolicy", "")
    if external(spec):
        yield from check.one_of("spec.externalTrafficPolicy", policy, ("Cluster", "Local"))
    elif policy:
        yield check.invalid("spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services")
    health = spec.get("healthCheckNodePort")
    if health and not needs_health_check(spec):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield check.invalid("spec.healthCheckNodePort", health, detail)
    elif health:
        yield from check.within("spec.healthCheckNodePort", health, 1, 65535)
    if spec.get("internalTrafficPolicy"):
        yield from check.one_of("spec.internalTrafficPolicy", spec["internalTrafficPolicy"], ("Cluster", "Local"))
    if spec.get("trafficDistribution"):
        choices = ("PreferClose", "PreferSameZone", "PreferSameNode")
        yield from check.one_of("spec.trafficDistribution", spec["trafficDistribution"], choices)
