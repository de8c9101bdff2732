"""Which claim gets which address, and what is left. Pure: everything was read before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from homeport.api.ipam.v1alpha2 import PoolUsage
from homeport.client.protocol import Key
from homeport.machinery.address import Address, AddressSet

# Go's largest int: readers of counts must be able to hold them.
LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Ask:
    """A claim without an address. The oldest is served first."""

    created: str
    key: Key
    uid: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Allocation:
    given: Mapping[Key, Address]
    reserved: Mapping[Address, tuple[str, Key]]  # what the pool has to say before any of `given` is made an object


def plan_allocation(
    usable: AddressSet,
    taken: Iterable[Address],
    reserved: Mapping[Address, tuple[str, Key]],
    asking: Sequence[Ask],
) -> Allocation:
    """`reserved` are choices that were made before and are still open: who has one gets that and no other."""
    kept = dict(reserved)
    chosen = {uid: address for address, (uid, _) in kept.items()}
    free = usable.free({*taken, *kept})
    given: dict[Key, Address] = {}
    for ask in sorted(asking, key=lambda each: (each.created, each.key)):
        address = chosen.get(ask.uid) or next(free, None)
        if address is None:
            continue
        given[ask.key] = address
        kept[address] = (ask.uid, ask.key)
    return Allocation(given, kept)


def count_usage(usable: AddressSet, taken: set[Address]) -> PoolUsage:
    inside = sum(1 for each in taken if each in usable)
    return PoolUsage(
        total=min(usable.count, LARGEST),
        used=len(taken),
        free=min(usable.count - inside, LARGEST),
        out_of_range=len(taken) - inside,
    )
