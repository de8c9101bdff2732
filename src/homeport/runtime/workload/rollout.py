"""How many Pods of which version, next. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Replicas(NamedTuple):
    """One version: what it is asked to have, has, and has available."""

    name: str
    spec: int
    actual: int = 0
    available: int = 0


def plan_recreate(wanted: int, new: Replicas, old: Sequence[Replicas], *, left: bool) -> dict[str, int]:
    """Everything old goes before anything new comes; `left`: some of it still runs."""
    if left or any(each.actual or each.spec for each in old):
        return {each.name: 0 for each in old}
    return {new.name: wanted}


def plan_rolling(wanted: int, surge: int, unavailable: int, new: Replicas, old: Sequence[Replicas]) -> dict[str, int]:
    """The next step: never more than wanted + surge in all, never fewer than wanted - unavailable available.

    `old` is oldest first.
    """
    plan = {each.name: each.spec for each in (new, *old)}
    total = sum(plan.values())
    if new.spec >= wanted or not any(each.spec for each in old):
        plan[new.name] = wanted
    else:
        plan[new.name] = new.spec + max(min(wanted + surge - total, wanted - new.spec), 0)
    least = wanted - unavailable
    # Of the new ones those that are not available yet count as missing.
    spare = total - least - max(new.spec - new.available, 0)
    for each in old:  # first the Pods that are not available: removing them costs nothing
        down = min(max(each.spec - each.available, 0), max(spare, 0))
        plan[each.name] -= down
        spare -= down
    spare = min(spare, sum(each.available for each in (new, *old)) - least)
    for each in old:
        down = min(plan[each.name], max(spare, 0))
        plan[each.name] -= down
        spare -= down
    return plan
