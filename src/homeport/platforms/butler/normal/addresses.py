"""Address ranges in all their spellings, and networks that must not overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address, ip_network

from homeport.api.butler.v1alpha1.part import Pool
from homeport.machinery.address import Address, AddressSet
from homeport.platforms.butler.normal.outcome import Reading

NONE = AddressSet()


def read_range(reading: Reading, path: str, text: str) -> AddressSet:
    """`10.0.0.5-10.0.0.9`, `10.0.0.0/28` or `10.0.0.5`."""
    if not text:
        return NONE
    try:
        return AddressSet.parse([text])
    except ValueError as error:
        reading.fault(path, str(error))
        return NONE


def read_pool(reading: Reading, path: str, pool: Pool | None) -> AddressSet:
    if pool is None or not (pool.start and pool.end):
        return NONE
    return read_range(reading, path, f"{pool.start}-{pool.end}")


def read_address(reading: Reading, path: str, text: str) -> Address | None:
    if not text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        reading.fault(path, f'"{text}" is not a valid IP address')
        return None


def read_network(reading: Reading, path: str, text: str) -> AddressSet:
    try:
        ip_network(text)
    except ValueError as error:
        reading.fault(path, f'"{text}" is not a network in CIDR notation ({error}): write for example 10.244.0.0/16')
        return NONE
    return AddressSet.parse([text])


# Of no host, or of the host itself: "this" network, loopback, link-local, multicast and what is reserved.
_NOWHERE = (
    AddressSet.parse(["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"]),
    AddressSet.parse(["::/127", "fe80::/10", "ff00::/8"]),
)


def check_hosts(reading: Reading, path: str, addresses: AddressSet) -> None:
    """Addresses that are given out are such that hosts can have."""
    for each in _NOWHERE:
        if overlaps(addresses, each):
            wrong = addresses.without(addresses.without(each))
            reading.fault(path, f"{addresses} has addresses that no host of a network can have ({wrong})")


def overlaps(one: AddressSet, other: AddressSet) -> bool:
    return bool(one) and one.version == other.version and one.without(other) != one


def check_apart(reading: Reading, networks: Mapping[str, AddressSet]) -> None:
    """Each pair that overlaps is a fault of the later one."""
    seen: list[tuple[str, AddressSet]] = []
    for path, network in networks.items():
        for before, other in seen:
            if overlaps(network, other):
                reading.fault(path, f"{network} overlaps {before} ({other}): choose networks that do not overlap")
        seen.append((path, network))


def carve_out(reading: Reading, path: str, pool: AddressSet, vip_path: str, vip: Address | None) -> AddressSet:
    """The pool without the virtual address of the API server."""
    if vip is None or vip not in pool:
        return pool
    left = pool.without(AddressSet.parse([str(vip)]))
    if not left:
        reading.fault(path, f"{pool} has no address besides {vip_path} ({vip}): add addresses to the pool")
    else:
        reading.warn(
            f"{path}: {vip} is the virtual address of the API server ({vip_path}); it is left out of the pool {pool}"
        )
    return left


def overlap_messages(own: AddressSet, others: Iterable[tuple[str, AddressSet]]) -> list[str]:
    """What pools of others say against this one."""
    return [
        f"{own} overlaps {who} ({other}): two clusters would announce the same addresses; choose another range"
        for who, other in others
        if overlaps(own, other)
    ]
