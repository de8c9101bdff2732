"""Which replica works on which shard: a table of buckets that all replicas act on together.

Hashing alone leaves replicas with shares that differ by a tenth and more. The table knows how much work each bucket
has, so that the shares are even, and a change moves only as many buckets as it must.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import msgspec

BUCKETS = 1024
_MOST_MEMBERS = 255  # an entry is one byte
_UNEVEN, _LEAST = 0.10, 2.0  # a share that exceeds the mean by more than this part, and this much, is made smaller
_UNEVEN_SETTLED, _LEAST_SETTLED = 0.03, 1.0  # the same, while no work comes or goes
_FINE = 0.02  # of the mean: a new table leaves at most this difference, where the buckets allow it


@dataclass(frozen=True, slots=True)
class Table:
    """`slots[bucket]` is the index of a member. `epoch` grows with every table of a group."""

    epoch: int
    members: tuple[str, ...]
    slots: bytes

    def owner(self, shard: str) -> str:
        return self.members[self.slots[bucket_of(shard)]]

    def buckets(self, member: str) -> frozenset[int]:
        if member not in self.members:
            return frozenset()
        index = self.members.index(member)
        return frozenset(bucket for bucket, slot in enumerate(self.slots) if slot == index)

    def encode(self) -> str:
        body = {"epoch": self.epoch, "members": self.members, "slots": base64.b64encode(self.slots).decode()}
        return msgspec.json.encode(body).decode()

    @property
    def digest(self) -> str:
        return hashlib.blake2b(self.encode().encode(), digest_size=8).hexdigest()


class _Wire(msgspec.Struct):
    epoch: int
    members: list[str]
    slots: str


def parse_table(text: str) -> Table | None:
    """None: it is not a table, or not one of this release."""
    try:
        found = msgspec.json.decode(text, type=_Wire)
        slots = base64.b64decode(found.slots, validate=True)
    except (msgspec.MsgspecError, ValueError):
        return None
    if len(slots) != BUCKETS or not found.members or max(slots) >= len(found.members):
        return None
    return Table(found.epoch, tuple(found.members), slots)


@lru_cache(maxsize=16384)
def bucket_of(shard: str) -> int:
    return int.from_bytes(hashlib.blake2b(shard.encode(), digest_size=8).digest()) % BUCKETS


def weights_of(shards: Iterable[str]) -> list[float]:
    """How much work each bucket has: one for each time that a shard is named."""
    found = [0.0] * BUCKETS
    for shard in shards:
        found[bucket_of(shard)] += 1.0
    return found


def is_even(table: Table, weights: list[float], *, settled: bool = False) -> bool:
    """`settled`: no work has come or gone lately, so that a small difference would stay."""
    mean = sum(weights) / len(table.members)
    part, least = (_UNEVEN_SETTLED, _LEAST_SETTLED) if settled else (_UNEVEN, _LEAST)
    return heaviest(table, weights) - mean <= max(part * mean, least)


def heaviest(table: Table, weights: list[float]) -> float:
    """The largest share of the work."""
    return max(_loads(table, weights).values())


def plan_table(before: Table | None, members: Iterable[str], weights: list[float]) -> Table:
    """What members had they keep as far as the shares get even by it.

    Buckets without work are spread by themselves, so that each member gets its part of the work that comes.
    """
    names = tuple(sorted(members))[:_MOST_MEMBERS]
    slots = bytearray(BUCKETS)
    for busy in (True, False):
        buckets = [bucket for bucket, weight in enumerate(weights) if (weight > 0) is busy]
        for index, held in enumerate(_spread(before, names, buckets, weights if busy else [1.0] * BUCKETS)):
            for bucket in held:
                slots[bucket] = index
    return Table(before.epoch + 1 if before is not None else 1, names, bytes(slots))


def _spread(
    before: Table | None, names: tuple[str, ...], buckets: Iterable[int], weights: list[float]
) -> list[set[int]]:
    """Which of these buckets each member gets."""
    wanted = set(buckets)
    held = {name: wanted & before.buckets(name) if before is not None else set[int]() for name in names}
    loads = {name: sum(weights[bucket] for bucket in held[name]) for name in names}
    free = wanted.difference(*held.values())
    for bucket in sorted(free, key=lambda each: (-weights[each], each)):
        _give(bucket, min(names, key=lambda name: (loads[name], name)), held, loads, weights)
    while move := _next_move(held, loads, weights):
        bucket, poor, rich = move
        held[rich].remove(bucket)
        loads[rich] -= weights[bucket]
        _give(bucket, poor, held, loads, weights)
    return [held[name] for name in names]


def _give(bucket: int, name: str, held: Mapping[str, set[int]], loads: dict[str, float], weights: list[float]) -> None:
    held[name].add(bucket)
    loads[name] += weights[bucket]


def _next_move(
    held: Mapping[str, set[int]], loads: Mapping[str, float], weights: list[float]
) -> tuple[int, str, str] | None:
    """The heaviest bucket that makes the largest and the smallest share more equal; None: there is none."""
    rich = max(loads, key=lambda name: (loads[name], name))
    poor = min(loads, key=lambda name: (loads[name], name))
    gap = loads[rich] - loads[poor]
    if gap <= _FINE * sum(loads.values()) / len(loads):
        return None
    fitting = [bucket for bucket in held[rich] if weights[bucket] <= gap / 2]
    if not fitting:
        return None
    return max(fitting, key=lambda bucket: (weights[bucket], bucket)), poor, rich


def _loads(table: Table, weights: list[float]) -> dict[str, float]:
    found = dict.fromkeys(table.members, 0.0)
    for bucket, slot in enumerate(table.slots):
        found[table.members[slot]] += weights[bucket]
    return found
