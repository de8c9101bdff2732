"""Ingress, IngressClass and NetworkPolicy."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from homeport.apiserver.kinds.check import (
    cidr,
    dns_label,
    dns_subdomain,
    forbidden,
    immutable,
    invalid,
    label_selector,
    named,
    port,
    port_name_errors,
    port_number,
    required,
    unsupported,
)
from homeport.apiserver.kinds.strategy import Plain, WithStatus
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause
from homeport.machinery.address import is_address

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_WILDCARD = re.compile(r"\*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+").fullmatch


class Ingress(WithStatus):
    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj.get("spec") or {}
        causes: list[Cause] = []
        if not spec.get("rules") and spec.get("defaultBackend") is None:
            detail = "either `defaultBackend` or `rules` must be specified"
            causes.append(invalid("spec", None, detail))
        if spec.get("defaultBackend") is not None:
            causes += _backend("spec.defaultBackend", spec["defaultBackend"])
        for i, rule in enumerate(spec.get("rules") or ()):
            causes += _rule(f"spec.rules[{i}]", rule)
        for i, tls in enumerate(spec.get("tls") or ()):
            for k, host in enumerate(tls.get("hosts") or ()):
                causes += _host(f"spec.tls[{i}].hosts[{k}]", host)
            if tls.get("secretName"):
                causes += named(f"spec.tls[{i}].secretName", tls["secretName"], dns_subdomain)
        if spec.get("ingressClassName"):
            causes += named("spec.ingressClassName", spec["ingressClassName"], dns_subdomain)
        return causes


def _host(field: str, host: str) -> Iterator[Cause]:
    if "*" in host:
        if not _WILDCARD(host):
            yield invalid(
                field,
                host,
                "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
                "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
                "(e.g. '*.example.com', regex used for validation is "
                r"'\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            )
        return
    yield from named(field, host, dns_subdomain)


def _rule(field: str, rule: Json) -> Iterator[Cause]:
    host = rule.get("host", "")
    if host:
        if is_address(host):
            yield invalid(f"{field}.host", host, "must be a DNS name, not an IP address")
        else:
            yield from _host(f"{field}.host", host)
    http = rule.get("http")
    if http is None:
        return
    if not http.get("paths"):
        yield required(f"{field}.http.paths")
    for i, path in enumerate(http.get("paths") or ()):
        yield from _path(f"{field}.http.paths[{i}]", path)


def _path(field: str, found: Json) -> Iterator[Cause]:
    kind, path = found.get("pathType"), found.get("path", "")
    if kind is None:
        yield required(f"{field}.pathType", "pathType must be specified")
        return
    if kind in ("Exact", "Prefix"):
        if not path.startswith("/"):
            yield invalid(f"{field}.path", path, "must be an absolute path")
        for bad in ("//", "/./", "/../", "%2f", "%2F"):
            if bad in path:
                yield invalid(f"{field}.path", path, f"must not contain '{bad}'")
        for bad in ("/..", "/."):
            if path.endswith(bad):
                yield invalid(f"{field}.path", path, f"cannot end with '{bad}'")
    elif kind == "ImplementationSpecific":
        if path and not path.startswith("/"):
            yield invalid(f"{field}.path", path, "must be an absolute path")
    else:
        yield unsupported(f"{field}.pathType", kind, _PATH_TYPES)
    yield from _backend(f"{field}.backend", found.get("backend") or {})


def _backend(field: str, backend: Json) -> Iterator[Cause]:
    service, resource = backend.get("service"), backend.get("resource")
    if resource is not None and service is not None:
        yield invalid(field, "", "cannot set both resource and service backends")
        return
    if resource is not None:
        for part in ("kind", "name"):
            if not resource.get(part):
                yield required(f"{field}.resource.{part}")
        return
    name, chosen = (service or {}).get("name", ""), (service or {}).get("port") or {}
    if name:
        yield from named(f"{field}.service.name", name, dns_label)
    else:
        yield required(f"{field}.service.name")
    if chosen.get("name") and chosen.get("number"):
        yield invalid(field, "", "cannot set both port name & port number")
    elif chosen.get("name"):
        for wrong in port_name_errors(chosen["name"]):
            yield invalid(f"{field}.service.port.name", chosen["name"], wrong)
    elif chosen.get("number"):
        yield from port_number(f"{field}.service.port.number", chosen["number"])
    else:
        yield required(field, "port name or number is required")


class IngressClass(Plain):
    def default(self, obj: Json) -> None:
        parameters = (obj.get("spec") or {}).get("parameters")
        if parameters is not None:
            parameters.setdefault("scope", "Cluster")

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj.get("spec") or {}
        controller = spec.get("controller", "")
        causes: list[Cause] = []
        if not controller:
            causes.append(required("spec.controller"))
        else:
            domain, slash, path = controller.partition("/")
            if not slash or not domain or not path:
                detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
                causes.append(invalid("spec.controller", controller, detail))
            else:
                causes += named("spec.controller", domain, dns_subdomain)
        if old is not None:
            causes += immutable("spec.controller", controller, (old.get("spec") or {}).get("controller", ""))
        return causes


class NetworkPolicy(Plain):
    def default(self, obj: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        spec.setdefault("podSelector", {})
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for found in rule.get("ports") or ():
                    found.setdefault("protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        causes = list(label_selector("spec.podSelector", spec["podSelector"]))
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for i, rule in enumerate(spec.get(direction) or ()):
                field = f"spec.{direction}[{i}]"
                for k, found in enumerate(rule.get("ports") or ()):
                    causes += _policy_port(f"{field}.ports[{k}]", found)
                for k, peer in enumerate(rule.get(peers) or ()):
                    causes += _peer(f"{field}.{peers}[{k}]", peer)
        if len(spec["policyTypes"]) > 2:
            causes.append(invalid("spec.policyTypes", spec["policyTypes"], "may not specify more than two policyTypes"))
        for i, kind in enumerate(spec["policyTypes"]):
            if kind not in ("Ingress", "Egress"):
                causes.append(unsupported(f"spec.policyTypes[{i}]", kind, ("Ingress", "Egress")))
        return causes


def _policy_port(field: str, found: Json) -> Iterator[Cause]:
    if found["protocol"] not in ("TCP", "UDP", "SCTP"):
        yield unsupported(f"{field}.protocol", found["protocol"], ("TCP", "UDP", "SCTP"))
    number = found.get("port")
    if number is not None:
        yield from port(f"{field}.port", number)
    last = found.get("endPort")
    if last is None:
        return
    if number is None:
        yield required(f"{field}.port", "must be specified when `endPort` is set")
    elif isinstance(number, str):
        yield invalid(f"{field}.endPort", last, "may not be specified when `port` is non-numeric")
    elif last < number:
        yield invalid(f"{field}.endPort", last, "must be greater than or equal to `port`")


def _peer(field: str, peer: Json) -> Iterator[Cause]:
    if not peer:
        yield required(field, "must specify a peer")
        return
    block = peer.get("ipBlock")
    for name in ("podSelector", "namespaceSelector"):
        yield from label_selector(f"{field}.{name}", peer.get(name))
    if block is None:
        return
    if len(peer) > 1:
        yield forbidden(field, "may not specify both ipBlock and another peer")
        return
    wrong = (
        list(cidr(f"{field}.ipBlock.cidr", block["cidr"])) if block.get("cidr") else [required(f"{field}.ipBlock.cidr")]
    )
    yield from wrong
    if wrong:
        return
    whole = ipaddress.ip_network(block["cidr"], strict=False)
    for i, part in enumerate(block.get("except") or ()):
        subfield = f"{field}.ipBlock.except[{i}]"
        bad = list(cidr(subfield, part))
        yield from bad
        if not bad and not _inside(ipaddress.ip_network(part, strict=False), whole):
            yield invalid(subfield, part, "must be a strict subset of `cidr`")


def _inside(
    part: ipaddress.IPv4Network | ipaddress.IPv6Network, whole: ipaddress.IPv4Network | ipaddress.IPv6Network
) -> bool:
    if isinstance(part, ipaddress.IPv4Network) and isinstance(whole, ipaddress.IPv4Network):
        return part != whole and part.subnet_of(whole)
    if isinstance(part, ipaddress.IPv6Network) and isinstance(whole, ipaddress.IPv6Network):
        return part != whole and part.subnet_of(whole)
    return False
