"""Addresses of the plane's Services: from a pool, or the plane's own with a port for each."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Protocol

from homeport.builtin.workload.forward import Backend
from homeport.runtime.workload.ranges import ServiceRanges

# Where a Service answers on this machine, at its own ports: only programs of this machine reach it.
ADDRESS_ANNOTATION = "workload.homeport.dev/address"
_UNSPECIFIED = ("0.0.0.0", "::")  # noqa: S104  (comparing, not binding)
_ATTEMPTS = 1 << 16
# The second number of loopback addresses. Simulated networks have 64 to 127: their machines listen there, too.
_SERVICES = range(16, 48)
_PODS = range(128, 192)


class Site(Protocol):
    """A simulated network that Services are reachable on, besides this machine's loopback addresses."""

    @property
    def pool(self) -> str:
        """Ranges that Services of type LoadBalancer get an address from if no pool is configured."""

    @property
    def node(self) -> str:
        """The address that node ports answer at."""

    def publish(
        self,
        service: str,
        ports: Mapping[tuple[str, int], Sequence[Backend]],
        names: Mapping[str, Sequence[str]],
    ) -> None:
        """`ports` by (address, port), `names` by what they lead to. Replaces whatever was published for the Service."""

    def withdraw(self, service: str) -> None: ...


class Pool:
    """Addresses of ranges such as `10.0.0.10-10.0.0.50`, `10.0.0.0/28` or single ones, separated by commas."""

    def __init__(self, text: str) -> None:
        """Raises ValueError."""
        self.text = text
        self._ranges = [_bounds(part.strip()) for part in text.split(",") if part.strip()]
        if not self._ranges:
            raise ValueError("no address: expected for example 10.0.0.10-10.0.0.50")

    def __contains__(self, address: str) -> bool:
        try:
            found = ip_address(address)
        except ValueError:
            return False
        return any(
            first.version == found.version and int(first) <= int(found) <= int(last) for first, last in self._ranges
        )

    def free(self, taken: Collection[str]) -> str | None:
        return next((each for each in self._all() if each not in taken), None)

    def _all(self) -> Iterator[str]:
        for first, last in self._ranges:
            for number in range(int(first), int(last) + 1):
                yield str(type(first)(number))


def _bounds(text: str) -> tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address]:
    if "/" in text:
        network = ip_network(text, strict=False)
        few = network.num_addresses <= 2
        return network.network_address + (not few), network.broadcast_address - (not few)
    low, _, high = text.partition("-")
    first, last = ip_address(low.strip()), ip_address((high or low).strip())
    if first.version != last.version or int(first) > int(last):
        raise ValueError(f"{text!r} is not a range of addresses: expected FIRST-LAST, a CIDR or one address")
    return first, last


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Where Services of the plane answer. Loopback unless told otherwise."""

    host: str = "127.0.0.1"  # the plane's own listen address: node ports listen there
    pool: Pool | None = None
    site: Site | None = None
    ranges: ServiceRanges = field(default_factory=ServiceRanges)  # for Services that name an address of them

    @property
    def balancers(self) -> Pool | None:
        """None: Services of type LoadBalancer share the plane's address, each with ports of its own."""
        return self.pool or (Pool(self.site.pool) if self.site is not None else None)

    @property
    def node_host(self) -> str:
        """Where node ports answer."""
        return self.site.node if self.site is not None else self.shown_host

    @property
    def shown_host(self) -> str:
        """An address that clients can dial."""
        return outgoing() if self.host in _UNSPECIFIED else "127.0.0.1" if self.host == "localhost" else self.host


def outgoing() -> str:
    """This machine's address on the network that leads outside; loopback if there is none. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def loopback_of(uid: str, taken: Collection[str]) -> str:
    """A loopback address for a Service: the same after a restart, and most likely another one on another plane."""
    return _loopback(f"service {uid}", taken, _SERVICES)


def pod_loopback_of(uid: str, taken: Collection[str]) -> str:
    """A loopback address for a Pod: Pods may use the same ports."""
    return _loopback(uid, taken, _PODS)


def _loopback(seed: str, taken: Collection[str], numbers: range) -> str:
    for turn in range(_ATTEMPTS):
        digest = hashlib.sha256(f"{seed} {turn}".encode()).digest()
        address = f"127.{numbers[digest[0] % len(numbers)]}.{digest[1]}.{1 + digest[2] % 254}"
        if address not in taken:
            return address
    raise RuntimeError(f"no loopback address is left: all of 127.{numbers[0]} to 127.{numbers[-1]} are in use")


def ingress_addresses(service: Mapping[str, Any]) -> list[str]:
    status = (service.get("status") or {}).get("loadBalancer") or {}
    return [str(each["ip"]) for each in status.get("ingress") or () if each.get("ip")]
