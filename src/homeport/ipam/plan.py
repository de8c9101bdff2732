"""Which claim gets which address, and what is left. Pure: everything was read before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from homeport.api.ipam.v1alpha2 import PoolUsage
from homeport.capi.addresspool import Reservation
from homeport.client.protocol import Key
from homeport.machinery.address import Address, AddressSet

# Go's largest int: readers of counts must be able to hold them.
LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Ask:
    """A claim without an address. The oldest is served first.

    `wish`: an address of its name exists that lost its claim, through a restore or because the claim was recreated.
    """

    created: str
    key: Key
    uid: str = field(compare=False)
    wish: Address | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Allocation:
    given: Mapping[Key, Address]
    reserved: Mapping[Address, Reservation]  # what the pool has to say before any of `given` is made an object


def plan_allocation(
    usable: AddressSet,
    taken: Set[Address],
    reserved: Mapping[Address, Reservation],
    asking: Sequence[Ask],
    now: int,
) -> Allocation:
    """`reserved` are choices that were made before and are still open: who has one gets that and no other.

    `taken` does not count what is only wished for.
    """
    kept = dict(reserved)
    chosen = {each.uid: address for address, each in kept.items()}
    wishes = {each.key: wish for each in asking if (wish := _grantable(each, taken, kept)) is not None}
    free = usable.free({*taken, *kept, *wishes.values()})
    given: dict[Key, Address] = {}
    for ask in sorted(asking, key=lambda each: (each.created, each.key)):
        address = chosen.get(ask.uid) or wishes.get(ask.key) or next(free, None)
        if address is None or address in given.values():
            continue
        given[ask.key] = address
        kept[address] = Reservation(now, ask.uid, ask.key)
    return Allocation(given, kept)


def _grantable(ask: Ask, taken: Set[Address], reserved: Mapping[Address, Reservation]) -> Address | None:
    """What was chosen for an earlier claim of this name can't become another object: the name is taken by this one."""
    if ask.wish is None or ask.wish in taken:
        return None
    chosen = reserved.get(ask.wish)
    return ask.wish if chosen is None or chosen.key == ask.key else None


def count_usage(usable: AddressSet, taken: Set[Address]) -> PoolUsage:
    inside = sum(1 for each in taken if each in usable)
    return PoolUsage(
        total=min(usable.count, LARGEST),
        used=len(taken),
        free=min(usable.count - inside, LARGEST),
        out_of_range=len(taken) - inside,
    )
