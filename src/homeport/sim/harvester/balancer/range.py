"""Ranges of an IPPool: which addresses they hold, and which one is given next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network

from homeport.sim.harvester.kind import Json


@dataclass(frozen=True, slots=True)
class Range:
    network: IPv4Network
    first: IPv4Address
    last: IPv4Address
    gateway: IPv4Address | None

    def __contains__(self, address: IPv4Address) -> bool:
        return self.first <= address <= self.last

    def __len__(self) -> int:
        return int(self.last) - int(self.first) + 1 - int(self.gateway is not None and self.gateway in self)

    def overlaps(self, other: Range) -> bool:
        return self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


def parse_ranges(raw: Sequence[Json]) -> list[Range]:
    """Raises ValueError with what is wrong."""
    return [_parse(each) for each in raw]


def _parse(raw: Json) -> Range:
    subnet = str(raw.get("subnet", ""))
    try:
        network = ip_network(subnet, strict=False)
    except ValueError:
        raise ValueError(f"invalid CIDR address: {subnet}, a valid example is 192.168.1.0/24") from None
    if "/" not in subnet or not isinstance(network, IPv4Network):
        raise ValueError(f"invalid CIDR address: {subnet}, a valid example is 192.168.1.0/24")
    if network.prefixlen == 32:
        only = network.network_address
        return Range(network, only, only, None)
    start = _within(raw.get("rangeStart"), "range start", network) or network.network_address + 1
    end = _within(raw.get("rangeEnd"), "range end", network) or network.broadcast_address - 1
    gateway = _within(raw.get("gateway"), "gateway", network) or network.network_address + 1
    return Range(network, min(start, end), max(start, end), gateway)


def _within(text: str | None, what: str, network: IPv4Network) -> IPv4Address | None:
    if not text:
        return None
    try:
        address = ip_address(text)
    except ValueError:
        raise ValueError(f"invalid {what} {text}: invalid IP {text}") from None
    if not isinstance(address, IPv4Address) or address not in network:
        raise ValueError(f"invalid {what} {text}: IP {text} is out of subnet {network}")
    if address == network.network_address:
        raise ValueError(f"invalid {what} {text}: IP {text} is the network address")
    if address == network.broadcast_address:
        raise ValueError(f"invalid {what} {text}: IP {text} is the broadcast address")
    return address


def next_address(ranges: Sequence[Range], taken: Collection[str], last: str) -> str:
    """The first free one after the one that was given last, round and round; '' if there is none."""
    free = (str(each) for each in _from(ranges, last) if str(each) not in taken)
    return next(free, "")


def _from(ranges: Sequence[Range], last: str) -> Iterator[IPv4Address]:
    after = ip_address(last) if last else None
    begin = next((number for number, each in enumerate(ranges) if isinstance(after, IPv4Address) and after in each), -1)
    if begin >= 0 and isinstance(after, IPv4Address):
        yield from _addresses(ranges[begin], after + 1, ranges[begin].last)
    for number in range(1, len(ranges) + 1):
        each = ranges[(begin + number) % len(ranges)]
        yield from _addresses(each, each.first, each.last)


def _addresses(within: Range, first: IPv4Address, last: IPv4Address) -> Iterator[IPv4Address]:
    for number in range(int(first), int(last) + 1):
        address = IPv4Address(number)
        if address != within.gateway:
            yield address


def range_of(ranges: Sequence[Range], address: str) -> Range | None:
    wanted = ip_address(address)
    return next((each for each in ranges if isinstance(wanted, IPv4Address) and wanted in each), None)
