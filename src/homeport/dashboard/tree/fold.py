"""Equal machines of a tree as one: the sick ones stay apart and come first. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from homeport.app.tree.branch import Branch

ALONE = 6  # as many equal machines are shown one by one
MOST_APART = 40  # of the machines of one owner: a browser draws no thousands

Look = tuple[str, str, str, bool | None]  # state, version, problem, healthy: machines that share it look equal


class Shown(NamedTuple):
    """`place` of the object that is drawn, and for how many it stands. `mixed`: their problems differ."""

    place: int
    number: int = 1
    mixed: bool = False


def fold(kinds: Sequence[str], looks: Sequence[Look]) -> list[Shown]:
    """What is drawn of the objects below another one, which are in order."""
    shown = [Shown(place) for place, kind in enumerate(kinds) if kind != "Machine"]
    equal: dict[Look, list[int]] = defaultdict(list)
    for place, look in enumerate(looks):
        if kinds[place] == "Machine":
            equal[look].append(place)
    for places in equal.values():
        shown += map(Shown, places) if len(places) <= ALONE else [Shown(places[0], len(places))]
    shown.sort(key=lambda each: (_is_well(kinds[each.place], looks[each.place]), each.place))
    return shown if len(shown) <= MOST_APART else _limited(shown, kinds, looks)


def _limited(shown: Sequence[Shown], kinds: Sequence[str], looks: Sequence[Look]) -> list[Shown]:
    """The first machines apart, the others as one group for each state."""
    kept: list[Shown] = []
    rest: dict[tuple[str, bool | None], Shown] = {}
    apart = 0
    for each in shown:
        apart += kinds[each.place] == "Machine"
        if kinds[each.place] != "Machine" or apart <= MOST_APART:
            kept.append(each)
            continue
        state, _, _, healthy = looks[each.place]
        before = rest.get((state, healthy))
        rest[state, healthy] = each if before is None else Shown(before.place, before.number + each.number, True)
    return [*kept, *rest.values()]


def _is_well(kind: str, look: Look) -> bool:
    if kind not in ("Machine", "MachineSet", "Node"):
        return False
    return not look[2] and look[3] is not False


def is_well(branch: Branch) -> bool:
    return _is_well(branch.kind, (branch.state, branch.version, branch.problem, branch.healthy))


def group(first: Branch, shown: Shown) -> Branch:
    """`first` stands for all machines of the group."""
    return Branch(
        kind="Group",
        name=f"{shown.number} Machines",
        namespace=first.namespace,
        api_version=first.api_version,
        role=first.role,
        healthy=first.healthy,
        state=first.state,
        version=first.version,
        replicas=first.replicas,
        problem=f"for example: {first.problem}" if shown.mixed and first.problem else first.problem,
    )
