"""Addresses: reading them, and giving them out from a pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from homeport.machinery.address import is_address

Address = IPv4Address | IPv6Address


class Exhausted(Exception):
    """The pool has no free address left."""


class Taken(Exception):
    """The address belongs to somebody else already."""

    def __init__(self, address: str, owner: str) -> None:
        super().__init__(f"{address} is taken by {owner}")
        self.address = address
        self.owner = owner


@lru_cache(maxsize=8192)  # the same few addresses, for each packet of the simulated network
def normal(host: str) -> str:
    """One spelling per address or name: brackets, case and trailing dots don't count."""
    text = host.strip().removeprefix("[").removesuffix("]")
    try:
        return str(ip_address(text))
    except ValueError:
        return text.rstrip(".").lower()


def split_endpoint(text: str, default_port: int = 6443) -> tuple[str, int]:
    """`10.0.0.1:6443`, `[fd00::1]:6443`, `https://name:9440/path`, `name`. ValueError for anything else."""
    bare = "" if "://" in text else "//"
    if text.count(":") > 1 and not text.startswith("[") and "://" not in text and is_address(text):
        return normal(text), default_port
    parts = urlsplit(bare + text)
    if not parts.hostname:
        raise ValueError(f"{text!r} has no host: expected HOST:PORT")
    return normal(parts.hostname), parts.port or {"http": 80, "https": 443}.get(parts.scheme, default_port)


class Pool:
    """Ranges of addresses and who has which. `ranges`: `10.0.0.0/24`, `10.0.0.10-10.0.0.50` or single addresses."""

    def __init__(self, ranges: Iterable[str]) -> None:
        self._ranges = [_bounds(text) for text in ranges]
        self._owners: dict[Address, str] = {}

    def take(self, owner: str, address: str = "") -> str:
        """A free address for `owner`, or the one asked for. Asking again for one that is one's own is fine."""
        if address:
            return self._claim(owner, ip_address(address))
        for candidate in self._candidates():
            if candidate not in self._owners:
                return self._claim(owner, candidate)
        raise Exhausted(f"no address is free: all {len(self._owners)} are in use")

    def _claim(self, owner: str, address: Address) -> str:
        held = self._owners.setdefault(address, owner)
        if held != owner:
            raise Taken(str(address), held)
        return str(address)

    def free(self, owner: str) -> list[str]:
        """Everything that `owner` had."""
        given = [address for address, held in self._owners.items() if held == owner]
        for address in given:
            del self._owners[address]
        return [str(address) for address in given]

    def owner(self, address: str) -> str | None:
        return self._owners.get(ip_address(address))

    def _candidates(self) -> Iterator[Address]:
        for first, last in self._ranges:
            for number in range(int(first), int(last) + 1):
                yield type(first)(number)


def _bounds(text: str) -> tuple[Address, Address]:
    if "/" in text:
        network = ip_network(text, strict=False)
        few = network.num_addresses <= 2
        first, last = network.network_address, network.broadcast_address
        return (first, last) if few else (first + 1, last - 1)
    low, _, high = text.partition("-")
    first, last = ip_address(low.strip()), ip_address((high or low).strip())
    if type(first) is not type(last) or int(first) > int(last):
        raise ValueError(f"{text!r} is not a valid range of addresses: expected FIRST-LAST or a CIDR")
    return first, last
