"""Who gets which addresses of a pool. Pure.

The ledger of a pool says which range belongs to which IPAllocation. It is an annotation of the NetworkPool, written
for exactly the state of the pool that was read: of two writers one is refused, so no address ever has two owners. An
allocation that is deleted and created again has the same name and another UID: it must not use what the ledger gave to
the one before, which may be taken back at that moment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any, NamedTuple

from homeport.client.protocol import Key
from homeport.machinery.address import AddressSet, Span, parse_span


class Grant(NamedTuple):
    """Addresses of the IPAllocation with this UID."""

    span: Span
    uid: str


Ledger = Mapping[Key, Grant]
_NOTHING = AddressSet()


@dataclass(frozen=True, slots=True)
class Request:
    """An IPAllocation that waits. The oldest one comes first. `fault`: why it gets nothing, whatever is free."""

    key: Key
    count: int
    pinned: AddressSet | None = None
    created: str = ""
    uid: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    ledger: Ledger
    refused: Mapping[Key, str]  # why, and what to do


def decide(
    addresses: AddressSet, ledger: Ledger, requests: Sequence[Request], elsewhere: AddressSet = _NOTHING
) -> Decision:
    """Keeps what is in the ledger, and gives each request a block of addresses that follow one another. `elsewhere`:
    addresses that other pools gave out, or may give out."""
    held = dict(ledger)
    free = addresses.without(_taken(addresses.version, ledger)).without(elsewhere)
    refused: dict[Key, str] = {}
    for request in sorted(requests, key=lambda each: (each.created, each.key)):
        span = None if request.fault else _found(free, request)
        if span is None:
            refused[request.key] = request.fault or _why_not(addresses, free, held, request)
            continue
        held[request.key] = Grant(span, request.uid)
        free = free.without(AddressSet(free.version, (span,)))
    return Decision(held, refused)


def best_fit(free: AddressSet, count: int) -> Span | None:
    """From the smallest gap that is large enough, so that large ones stay; the lowest of equal ones."""
    fitting = [(high - low + 1, low) for low, high in free.spans if high - low + 1 >= count]
    if not fitting:
        return None
    _, low = min(fitting)
    return low, low + count - 1


def _found(free: AddressSet, request: Request) -> Span | None:
    pinned = request.pinned
    if pinned is None:
        return best_fit(free, request.count)
    return pinned.spans[0] if pinned.version == free.version and free.covers(pinned) else None


def _why_not(addresses: AddressSet, free: AddressSet, held: Ledger, request: Request) -> str:
    wanted = request.pinned
    if wanted is not None:
        if wanted.version != addresses.version or not addresses.covers(wanted):
            return f"spec.pinnedRange: {wanted} is not within what the pool gives out ({addresses})"
        low, high = wanted.spans[0]
        owner = next((key for key, ((first, last), _) in held.items() if first <= high and last >= low), None)
        who = f"IPAllocation {owner}" if owner is not None else "another NetworkPool or a TenantCluster"
        return f"spec.pinnedRange: {wanted} overlaps with {who}: choose other addresses"
    largest = max((high - low + 1 for low, high in free.spans), default=0)
    return (
        f"{request.count} addresses in a row are needed; {free.count} of {addresses.count} are free, at most {largest} "
        "in a row: add addresses to the pool, or delete clusters"
    )


def _taken(version: int, ledger: Ledger) -> AddressSet:
    return AddressSet(version, tuple(sorted(each.span for each in ledger.values())))


def shared(one: AddressSet, other: AddressSet) -> AddressSet:
    return one.without(one.without(other)) if one.version == other.version else AddressSet()


# -- the ledger as text ----------------------------------------------------------------------------------------------


def read_ledger(text: str) -> dict[Key, Grant]:
    """ValueError: somebody else wrote it. Then nothing may be given out, for nobody knows what is taken."""
    try:
        found = {}
        for owner, entry in json.loads(text or "{}").items():
            namespace, _, name = owner.partition("/")
            written, uid = _entry(entry)
            first, last = parse_span(written)
            found[Key(namespace, name)] = Grant((int(first), int(last)), uid)
    except (ValueError, AttributeError, TypeError, KeyError):
        raise ValueError("the annotation with the allocations can't be read: restore it from a backup") from None
    return found


def _entry(entry: Any) -> tuple[str, str]:
    """Range and UID. Ledgers of older versions have no UID."""
    return (entry, "") if isinstance(entry, str) else (entry["range"], str(entry["uid"]))


def ledger_version(text: str) -> int:
    """Of IP: 4 or 6; 0 if nothing is given out. ValueError as `read_ledger`."""
    entries = json.loads(text).values() if read_ledger(text) else ()
    return next((parse_span(_entry(each)[0])[0].version for each in entries), 0)


def given_out(text: str) -> AddressSet:
    """What a ledger gives to whomever. ValueError as `read_ledger`."""
    return _taken(ledger_version(text), read_ledger(text))


def render_ledger(ledger: Ledger, version: int) -> str:
    made = {str(key): {"range": render_span(span, version), "uid": uid} for key, (span, uid) in sorted(ledger.items())}
    return json.dumps(made)


def render_span(span: Span, version: int) -> str:
    made = IPv4Address if version == 4 else IPv6Address
    low, high = made(span[0]), made(span[1])
    return f"{low}-{high}"
