"""Pools of addresses as their specs describe them: what may be given out, and what is wrong with them."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from homeport.api.ipam.v1alpha2 import GROUP, GlobalInClusterIPPool, InClusterIPPool, PoolSpec
from homeport.api.ipam.v1beta2 import IPPoolReference
from homeport.client.protocol import Key
from homeport.machinery.address import Address, AddressSet, parse_span

Pool = InClusterIPPool | GlobalInClusterIPPool
KINDS: Mapping[str, type[Pool]] = {"InClusterIPPool": InClusterIPPool, "GlobalInClusterIPPool": GlobalInClusterIPPool}
# On a pool: addresses that were chosen for claims a moment ago and may not be objects yet, as
# {address: "SECONDS UID namespace/name"}.
RESERVED = "ipam.homeport.dev/reserved"


class Reservation(NamedTuple):
    chosen_at: int  # when it was chosen, in seconds since 1970
    uid: str  # of the claim
    key: Key


def pool_kind(ref: IPPoolReference | None) -> type[Pool] | None:
    """None: the pool is somebody else's."""
    return KINDS.get(ref.kind) if ref is not None and ref.api_group == GROUP else None


def pool_key(kind: type[Pool], name: str, namespace: str) -> Key:
    return Key(namespace if kind.__resource__.namespaced else "", name)


def describe(kind: type[Pool], key: Key) -> str:
    return f"{kind.__resource__.kind} {key}"


def network_of(spec: PoolSpec) -> AddressSet:
    """The network that all addresses of a pool are in. ValueError: there is none."""
    first = parse_span(spec.addresses[0])[0]
    longest = 32 if first.version == 4 else 128
    if not 0 <= spec.prefix <= longest:
        raise ValueError(
            f"{spec.prefix} is not a valid prefix length of an IPv{first.version} network: expected 0 to {longest}"
        )
    return AddressSet.parse([str(ip_network(f"{first}/{spec.prefix}", strict=False))])


def usable(spec: PoolSpec) -> AddressSet:
    """What the pool may give out. ValueError for a spec that admission would refuse."""
    found = AddressSet.parse(spec.addresses)
    if not found:
        raise ValueError("the pool has no addresses")
    network = network_of(spec)
    gone = list(spec.excluded_addresses)
    if spec.gateway:
        gone.append(spec.gateway)
    if not spec.allocate_reserved_addresses:
        gone += _reserved(network)
    return found.without(AddressSet.parse(gone)) if gone else found


def _reserved(network: AddressSet) -> list[str]:
    """The network itself and, of IPv4, its broadcast address. A network of one or two addresses has neither."""
    low, high = network.spans[0]
    if high - low < 2:
        return []
    made = type(parse_span(str(network))[0])
    return [str(made(low)), str(made(high))] if network.version == 4 else [str(made(low))]


def reservations(annotations: Mapping[str, str]) -> Mapping[Address, Reservation]:
    """Text that Homeport did not write is read as no reservations."""
    return _reservations(annotations.get(RESERVED) or "{}")


@functools.lru_cache(maxsize=64)
def _reservations(text: str) -> Mapping[Address, Reservation]:
    """Every claim that waits asks for those of its pool."""
    found: dict[Address, Reservation] = {}
    try:
        for address, owner in json.loads(text).items():
            chosen_at, uid, key = str(owner).split(" ")
            namespace, _, name = key.partition("/")
            found[ip_address(address)] = Reservation(int(chosen_at), uid, Key(namespace, name))
    except (ValueError, AttributeError):
        return {}
    return found


def render_reservations(entries: Mapping[Address, Reservation]) -> str | None:
    """None: there are none, and no annotation."""
    if not entries:
        return None
    return json.dumps(
        {str(each): f"{chosen_at} {uid} {key}" for each, (chosen_at, uid, key) in entries.items()}, sort_keys=True
    )


def parsed(texts: Iterable[str]) -> set[Address]:
    """The addresses among these texts."""
    return {address for text in texts if (address := parse_address(text)) is not None}


@functools.lru_cache(maxsize=65536)
def parse_address(text: str) -> Address | None:
    """None: it is none. The same ones are read over and over."""
    try:
        return ip_address(text)
    except ValueError:
        return None
