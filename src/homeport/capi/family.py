"""Families of addresses: which one a cluster speaks first, and addresses in that order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import ip_address, ip_interface

from homeport.api.cluster.v1beta2 import Cluster

Family = int  # 4, 6, or 0 where nothing says


@lru_cache(maxsize=16384)
def family_of(text: str) -> Family:
    """Of an address or a network; 0 of what is neither."""
    try:
        return ip_interface(text).version
    except ValueError:
        return 0


def primary_family(cluster: Cluster) -> Family:
    """The first network of Services decides, else that of Pods, else the address of the control plane."""
    network = cluster.spec.cluster_network
    texts = [*network.services.cidr_blocks[:1], *network.pods.cidr_blocks[:1], cluster.spec.control_plane_endpoint.host]
    return next((family for text in texts if (family := family_of(text))), 0)


def in_order(addresses: Iterable[str], first: Family) -> list[str]:
    """Those of the first family before the others; otherwise as they came. None twice, whatever its spelling."""
    found: dict[str, str] = {}
    for each in addresses:
        found.setdefault(canonical(each), each)
    return sorted(found.values(), key=lambda each: bool(first) and family_of(each) != first)


@lru_cache(maxsize=16384)
def canonical(text: str) -> str:
    """An address in its one spelling; other texts as they are."""
    try:
        return str(ip_address(text))
    except ValueError:
        return text


def is_host(text: str) -> bool:
    """An address or a host name. Names don't end in a number: `10.0.0.300` is a mistyped address."""
    if family_of(text) and "/" not in text:
        return True
    labels = text.rstrip(".").split(".")
    good = all(0 < len(each) <= 63 and each.replace("-", "a").replace("_", "a").isalnum() for each in labels)
    return good and len(text) <= 253 and not labels[-1].isdigit()


def correction(host: str) -> str:
    """What to do about a text that is not a host."""
    if host.replace(".", "").isdigit():
        return "an IPv4 address has four numbers from 0 to 255, such as 10.0.0.5"
    return "remove scheme, port and brackets"


def wrong_endpoint(host: str) -> str:
    """Why `host` can't be the endpoint of a control plane; '' if it can."""
    if not is_host(host):
        return f"{host!r} is not a valid host name or IP address: {correction(host)}"
    if not family_of(host):
        return ""
    address = ip_address(host)
    if address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local:
        return f"{host!r} can't be reached from other machines: give an address in the network of the machines"
    return ""


def reachable(addresses: Iterable[str]) -> Sequence[str]:
    """Without those that only neighbours on the same link can use: no Node is known by them."""
    return [each for each in addresses if not _link_local(each)]


@lru_cache(maxsize=16384)
def _link_local(text: str) -> bool:
    try:
        return ip_address(text).is_link_local
    except ValueError:
        return False
