"""Endpoints and EndpointSlice."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from homeport.apiserver.kinds.check import (
    IMMUTABLE,
    PROTOCOLS,
    dns_label,
    dns_subdomain,
    duplicate,
    invalid,
    ip_address,
    named,
    one_of,
    port_number,
    required,
    too_many,
)
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

DEPRECATED = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
_MOST_ENDPOINTS, _MOST_ADDRESSES, _MOST_PORTS = 1000, 100, 20000


def _reachable(field: str, address: str) -> Iterator[Cause]:
    """An address that something in the cluster can have."""
    found = ipaddress.ip_address(address)
    if found.is_unspecified:
        yield invalid(field, address, "may not be unspecified (0.0.0.0 or ::)")
    if found.is_loopback:
        yield invalid(field, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if found.is_link_local:
        yield invalid(field, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if found.is_multicast and not found.is_global:
        yield invalid(field, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


class Endpoints(Plain):
    def default(self, obj: Json) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port["protocol"] = port.get("protocol") or "TCP"

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes: list[Cause] = []
        for i, subset in enumerate(obj.get("subsets") or ()):
            field = f"subsets[{i}]"
            if not subset.get("addresses") and not subset.get("notReadyAddresses"):
                causes.append(required(field, "must specify `addresses` or `notReadyAddresses`"))
            for part in ("addresses", "notReadyAddresses"):
                for k, address in enumerate(subset.get(part) or ()):
                    causes += self._address(f"{field}.{part}[{k}]", address)
            ports = subset.get("ports") or []
            for k, port in enumerate(ports):
                causes += self._port(f"{field}.ports[{k}]", port, name_needed=len(ports) > 1)
        return causes

    def _address(self, field: str, address: Json) -> Iterator[Cause]:
        value = address.get("ip", "")
        wrong = list(ip_address(f"{field}.ip", value))
        yield from wrong
        if address.get("hostname"):
            yield from named(f"{field}.hostname", address["hostname"], dns_label)
        if address.get("nodeName"):
            yield from named(f"{field}.nodeName", address["nodeName"], dns_subdomain)
        if wrong:
            yield invalid(f"{field}.ip", value, "must be a valid IP address")
        else:
            yield from _reachable(f"{field}.ip", value)

    def _port(self, field: str, port: Json, *, name_needed: bool) -> Iterator[Cause]:
        if port.get("name"):
            yield from named(f"{field}.name", port["name"], dns_label)
        elif name_needed:
            yield required(f"{field}.name")
        yield from port_number(f"{field}.port", port.get("port", 0))
        yield from one_of(f"{field}.protocol", port["protocol"], PROTOCOLS)


class EndpointSlice(Plain):
    def default(self, obj: Json) -> None:
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        kind = obj.get("addressType", "")
        if old is not None and kind != old.get("addressType"):
            return [invalid("addressType", None, IMMUTABLE)]
        causes = list(one_of("addressType", kind, ("FQDN", "IPv4", "IPv6")))
        causes += self._ports(obj.get("ports") or [])
        endpoints = obj.get("endpoints") or []
        if len(endpoints) > _MOST_ENDPOINTS:
            causes.append(too_many("endpoints", len(endpoints), _MOST_ENDPOINTS))
        for i, endpoint in enumerate(endpoints):
            causes += self._endpoint(f"endpoints[{i}]", endpoint, kind)
        return causes

    def _ports(self, ports: list[Json]) -> Iterator[Cause]:
        if len(ports) > _MOST_PORTS:
            yield too_many("ports", len(ports), _MOST_PORTS)
        names: set[str] = set()
        for i, port in enumerate(ports):
            name = port.get("name", "")
            if name:
                yield from named(f"ports[{i}].name", name, dns_label)
            if name in names:
                yield duplicate(f"ports[{i}].name", name)
            names.add(name)
            yield from one_of(f"ports[{i}].protocol", port["protocol"], PROTOCOLS)

    def _endpoint(self, field: str, endpoint: Json, kind: str) -> Iterator[Cause]:
        addresses = endpoint.get("addresses") or []
        if not addresses:
            yield required(f"{field}.addresses")
        if len(addresses) > _MOST_ADDRESSES:
            yield too_many(f"{field}.addresses", len(addresses), _MOST_ADDRESSES)
        for i, address in enumerate(addresses):
            yield from self._address(f"{field}.addresses", i, address, kind)
        if endpoint.get("nodeName"):
            yield from named(f"{field}.nodeName", endpoint["nodeName"], dns_subdomain)
        if endpoint.get("hostname"):
            yield from named(f"{field}.hostname", endpoint["hostname"], dns_label)

    def _address(self, field: str, i: int, address: str, kind: str) -> Iterator[Cause]:
        subfield = f"{field}[{i}]"
        if kind == "FQDN":
            yield from named(subfield, address, dns_subdomain)
        elif kind in ("IPv4", "IPv6"):
            wrong = list(ip_address(subfield, address))
            yield from wrong
            if not wrong:
                if ipaddress.ip_address(address).version != int(kind[-1]):
                    yield invalid(field, address, f"must be an {kind} address")
                yield from _reachable(subfield, address)
