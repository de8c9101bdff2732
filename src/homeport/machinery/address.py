"""Sets of IP addresses as ranges: as large as a network of IPv6, and never written out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from homeport.machinery.reading import reads

Address = IPv4Address | IPv6Address
Span = tuple[int, int]  # first and last


def is_address(text: str) -> bool:
    """IPv4 or IPv6, without a port or brackets."""
    return reads(ip_address, text)


def parse_span(text: str) -> tuple[Address, Address]:
    """First and last of `10.0.0.5`, `10.0.0.5-10.0.0.9` or `10.0.0.0/24`. ValueError says what is wrong with it."""
    if "%" in text:
        raise ValueError(f"{text!r} names an interface: leave out what follows the %")
    try:
        if "/" in text:
            network = ip_network(text.strip(), strict=False)
            return network.network_address, network.broadcast_address
        low, dash, high = text.partition("-")
        first, last = ip_address(low.strip()), ip_address((high if dash else low).strip())
    except ValueError:
        raise ValueError(f"{text!r} is not a valid IP address, range (FIRST-LAST) or CIDR") from None
    if first.version != last.version:
        raise ValueError(f"{text!r} begins in one family of addresses and ends in another")
    if int(first) > int(last):
        raise ValueError(f"{text!r} ends before it begins")
    return first, last


@dataclass(frozen=True, slots=True)
class AddressSet:
    """Addresses of one family; `version` is 4 or 6, and 0 of the empty set that was made of nothing."""

    version: int = 0
    spans: tuple[Span, ...] = ()  # in order, apart from each other

    @classmethod
    def parse(cls, texts: Iterable[str]) -> AddressSet:
        """ValueError for what can't be read, and for addresses of two families."""
        version, spans = 0, []
        for text in texts:
            first, last = parse_span(text)
            if version and first.version != version:
                raise ValueError(f"{text!r} is IPv{first.version}, and others are IPv{version}: use a set for each")
            version = first.version
            spans.append((int(first), int(last)))
        return cls(version, _joined(spans))

    def __contains__(self, address: object) -> bool:
        if not isinstance(address, IPv4Address | IPv6Address) or address.version != self.version:
            return False
        return any(low <= int(address) <= high for low, high in self.spans)

    def __bool__(self) -> bool:
        return bool(self.spans)

    @property
    def count(self) -> int:
        """Not `len`, which can't say how large a network of IPv6 is."""
        return sum(high - low + 1 for low, high in self.spans)

    def without(self, other: AddressSet) -> AddressSet:
        if other.version != self.version:
            return self
        spans = list(self.spans)
        for gone in other.spans:
            spans = [part for span in spans for part in _cut(span, gone)]
        return AddressSet(self.version, tuple(spans))

    def covers(self, other: AddressSet) -> bool:
        return not other.without(self)

    def free(self, taken: Set[Address]) -> Iterator[Address]:
        """Those that are not taken, in order."""
        made = IPv4Address if self.version == 4 else IPv6Address
        for low, high in self.spans:
            for number in range(low, high + 1):
                address = made(number)
                if address not in taken:
                    yield address

    def __str__(self) -> str:
        made = IPv4Address if self.version == 4 else IPv6Address
        return ", ".join(str(made(low)) if low == high else f"{made(low)}-{made(high)}" for low, high in self.spans)


def _joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def _cut(span: Span, gone: Span) -> Iterator[Span]:
    (low, high), (first, last) = span, gone
    if last < low or first > high:
        yield span
        return
    if low < first:
        yield low, first - 1
    if last < high:
        yield last + 1, high
