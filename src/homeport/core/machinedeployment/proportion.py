"""Scaling without rolling out: a paused MachineDeployment keeps the mix of old and new it was stopped at. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Sized(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def created(self) -> str: ...
    @property
    def replicas(self) -> int: ...
    @property
    def desired(self) -> int | None: ...
    @property
    def maximum(self) -> int | None: ...


def spread(sets: Sequence[Sized], wanted: int, surge: int, strategy: str) -> dict[str, int]:
    """The replicas of each set for `wanted` in all; sets that are not named stay as they are."""
    active = [each for each in sets if each.replicas > 0]
    if len(active) <= 1:
        only = active[0] if active else max(sets, key=lambda s: (s.created, s.name), default=None)
        return {only.name: wanted} if only is not None else {}
    if strategy != "RollingUpdate" or all(each.desired == wanted for each in active):
        return {}  # nobody scaled it since it was paused
    goal = wanted + surge if wanted else 0
    before = sum(each.replicas for each in active)
    missing = goal - before
    growing = missing > 0
    # The largest first; of equals the newest grows and the oldest shrinks.
    ordered = sorted(active, key=lambda s: (s.created, s.name), reverse=growing)
    ordered.sort(key=lambda s: -s.replicas)
    result = {each.name: each.replicas for each in active}
    left = missing
    for each in ordered:
        share = _share(each, goal, before)
        share = max(0, min(share, left)) if growing else min(0, max(share, left))
        result[each.name] += share
        left -= share
    result[ordered[0].name] = max(result[ordered[0].name] + left, 0)
    return result


def _share(each: Sized, goal: int, before: int) -> int:
    """How much a set grows or shrinks when all together grow from what they were made for to `goal`."""
    base = each.maximum or before
    return _rounded(each.replicas * goal, base) - each.replicas


def _rounded(number: int, by: int) -> int:
    return (2 * number + by) // (2 * by)
