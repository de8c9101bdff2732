"""Rows of Services and what stands before and behind them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from homeport.apiserver.kinds.printer.text import (
    NONE,
    UNSET,
    Cell,
    age_of,
    first_few,
    labels,
    name_of,
    part,
    selector,
    text,
)
from homeport.apiserver.resource import Json


def _ingress_points(obj: Json) -> list[str]:
    points = part(obj, "status", "loadBalancer", "ingress") or ()
    return [point.get("ip") or point.get("hostname") or "" for point in points]


def _external(obj: Json, kind: str) -> str:
    extra = part(obj, "spec", "externalIPs") or []
    if kind == "ExternalName":
        return text(obj, "spec", "externalName")
    if kind != "LoadBalancer":
        return ",".join(extra) or NONE
    found = ",".join(sorted(set(_ingress_points(obj)))) if not extra else ",".join([*_ingress_points(obj), *extra])
    return found or "<pending>"


def _ports(obj: Json) -> str:
    shown = []
    for port in part(obj, "spec", "ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(shown) or NONE


def service(obj: Json, now: datetime) -> list[Cell]:
    kind = text(obj, "spec", "type", default="ClusterIP")
    addresses = part(obj, "spec", "clusterIPs") or ()
    address = addresses[0] if addresses else text(obj, "spec", "clusterIP", default=NONE)
    return [
        name_of(obj),
        kind,
        address,
        _external(obj, kind),
        _ports(obj),
        age_of(obj, now),
        labels(part(obj, "spec", "selector")),
    ]


def _join_port(host: str, port: object) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _subset(subset: Json) -> Iterator[str]:
    addresses = [a.get("ip", "") for a in subset.get("addresses") or ()]
    ports = subset.get("ports") or ()
    if not ports:
        yield from addresses
    for port in ports:
        for address in addresses:
            yield _join_port(address, port.get("port"))


def endpoints(obj: Json, now: datetime) -> list[Cell]:
    found = [text for subset in obj.get("subsets") or () for text in _subset(subset)]
    return [name_of(obj), first_few(found) if found else NONE, age_of(obj, now)]


def _slice_port(port: Json) -> str:
    if port.get("port") is not None:
        return str(port["port"])
    return port.get("name") or "*"


def endpoint_slice(obj: Json, now: datetime) -> list[Cell]:
    ports = [_slice_port(port) for port in obj.get("ports") or ()]
    addresses = [a for endpoint in obj.get("endpoints") or () for a in endpoint.get("addresses") or ()]
    return [
        name_of(obj),
        text(obj, "addressType"),
        first_few(ports) if ports else UNSET,
        first_few(addresses) if addresses else UNSET,
        age_of(obj, now),
    ]


def ingress(obj: Json, now: datetime) -> list[Cell]:
    hosts = [rule.get("host") for rule in part(obj, "spec", "rules") or ()]
    named = [host for host in hosts if host]
    return [
        name_of(obj),
        text(obj, "spec", "ingressClassName", default=NONE),
        first_few(named) if named else "*",
        ",".join(_ingress_points(obj)),
        "80, 443" if part(obj, "spec", "tls") else "80",
        age_of(obj, now),
    ]


def ingress_class(obj: Json, now: datetime) -> list[Cell]:
    ref = part(obj, "spec", "parameters")
    shown = NONE
    if ref:
        group = f".{ref['apiGroup']}" if ref.get("apiGroup") else ""
        shown = f"{ref.get('kind', '')}{group}/{ref.get('name', '')}"
    return [name_of(obj), text(obj, "spec", "controller"), shown, age_of(obj, now)]


def network_policy(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), selector(part(obj, "spec", "podSelector")), age_of(obj, now)]
