"""IP addresses and networks."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library.registry import Function, function, method
from homeport.machinery.reading import reads

_BITS: Final = re.compile(r"(?:0|[1-9][0-9]{0,2})\Z")
_LINK_LOCAL_4: Final = ipaddress.IPv4Network("224.0.0.0/24")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Ip:
    """An address; neither zones nor IPv4 addresses written as IPv6 are allowed."""

    __slots__ = ("address",)
    cel_type: Final = t.IP

    def __init__(self, address: Address) -> None:
        self.address = address

    @property
    def size(self) -> int:
        return len(self.address.packed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ip) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __str__(self) -> str:
        return str(self.address)


class Cidr:
    """An address with the length of its network part; the host part may be set."""

    __slots__ = ("address", "bits")
    cel_type: Final = t.CIDR

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    @property
    def size(self) -> int:
        return (self.bits + 7) // 8

    @property
    def first(self) -> int:
        shift = self.address.max_prefixlen - self.bits
        return int(self.address) >> shift << shift

    def holds(self, other: Address, bits: int) -> bool:
        if other.version != self.address.version or bits < self.bits:
            return False
        shift = self.address.max_prefixlen - self.bits
        return int(other) >> shift == int(self.address) >> shift

    def masked(self) -> Cidr:
        return Cidr(type(self.address)(self.first), self.bits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cidr) and (self.address, self.bits) == (other.address, other.bits)

    def __hash__(self) -> int:
        return hash((self.address, self.bits))

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def parse_ip(text: str) -> Ip:
    if "%" in text:
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    return Ip(_address(text))


def _address(text: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise EvaluationError(
            f'IP Address "{text}" parse error during conversion from string: unable to parse IP'
        ) from error
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


def parse_cidr(text: str) -> Cidr:
    head, slash, bits = text.rpartition("/")
    if not slash or "%" in head or not _BITS.match(bits):
        raise EvaluationError(f'network address parse error during conversion from string: "{text}" is not a CIDR')
    address = _address(head)
    if int(bits) > address.max_prefixlen:
        raise EvaluationError(
            f'network address parse error during conversion from string: "{text}": prefix length out of range'
        )
    return Cidr(address, int(bits))


def is_ip(text: str) -> bool:
    return reads(parse_ip, text, EvaluationError)


def is_cidr(text: str) -> bool:
    return reads(parse_cidr, text, EvaluationError)


def _link_local_multicast(ip: Ip) -> bool:
    if isinstance(ip.address, ipaddress.IPv4Address):
        return ip.address in _LINK_LOCAL_4
    return ip.address.packed[0] == 0xFF and ip.address.packed[1] & 0x0F == 2


def _link_local(ip: Ip) -> bool:
    packed = ip.address.packed
    if len(packed) == 4:
        return packed[:2] == b"\xa9\xfe"
    return packed[0] == 0xFE and packed[1] & 0xC0 == 0x80


def _global(ip: Ip) -> bool:
    address = ip.address
    if address.is_unspecified or address.is_loopback or address.is_multicast or _link_local(ip):
        return False
    return address.packed != b"\xff\xff\xff\xff"


def functions() -> list[Function]:
    s, b, ip, cidr = t.STRING, t.BOOL, t.IP, t.CIDR
    contains_ip = [
        method("containsIP", "cidr_contains_ip_string", (cidr, s), b, lambda c, a: _holds_ip(c, parse_ip(a))),
        method("containsIP", "cidr_contains_ip_ip", (cidr, ip), b, _holds_ip),
        method("containsCIDR", "cidr_contains_cidr_string", (cidr, s), b, lambda c, a: _holds_cidr(c, parse_cidr(a))),
        method("containsCIDR", "cidr_contains_cidr", (cidr, cidr), b, _holds_cidr),
    ]
    return [
        function("ip", "string_to_ip", (s,), ip, parse_ip),
        method("ip", "cidr_ip", (cidr,), ip, lambda c: Ip(c.address)),
        function("ip.isCanonical", "ip_is_canonical", (s,), b, lambda a: str(parse_ip(a)) == a),
        function("isIP", "is_ip", (s,), b, is_ip),
        method("family", "ip_family", (ip,), t.INT, lambda a: a.address.version),
        method("isUnspecified", "ip_is_unspecified", (ip,), b, lambda a: a.address.is_unspecified),
        method("isLoopback", "ip_is_loopback", (ip,), b, lambda a: a.address.is_loopback),
        method("isLinkLocalMulticast", "ip_is_link_local_multicast", (ip,), b, _link_local_multicast),
        method("isLinkLocalUnicast", "ip_is_link_local_unicast", (ip,), b, _link_local),
        method("isGlobalUnicast", "ip_is_global_unicast", (ip,), b, _global),
        function("string", "ip_to_string", (ip,), s, str),
        function("cidr", "string_to_cidr", (s,), cidr, parse_cidr),
        function("isCIDR", "is_cidr", (s,), b, is_cidr),
        method("prefixLength", "cidr_prefix_length", (cidr,), t.INT, lambda c: c.bits),
        method("masked", "cidr_masked", (cidr,), cidr, Cidr.masked),
        function("string", "cidr_to_string", (cidr,), s, str),
        *contains_ip,
    ]


def _holds_ip(cidr: Cidr, ip: Ip) -> bool:
    return cidr.holds(ip.address, ip.address.max_prefixlen)


def _holds_cidr(cidr: Cidr, other: Cidr) -> bool:
    return cidr.holds(other.address, other.bits)
