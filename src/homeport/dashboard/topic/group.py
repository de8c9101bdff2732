"""Equal machines of a tree as one: the sick ones stay apart and come first. Pure."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from homeport.app.tree.branch import Branch

ALONE = 6  # as many equal machines are shown one by one


def grouped(branch: Branch) -> Branch:
    children = [grouped(each) for each in branch.children]
    children.sort(key=_sickness)  # stable: the order of the tree otherwise
    return msgspec.structs.replace(branch, children=_folded(children))


def _sickness(branch: Branch) -> int:
    if branch.kind not in ("Machine", "MachineSet", "Node"):
        return 0
    return 0 if branch.problem or branch.healthy is False else 1


def _folded(children: list[Branch]) -> list[Branch]:
    equal: dict[tuple[str, ...], list[Branch]] = defaultdict(list)
    for each in children:
        if each.kind == "Machine":
            equal[each.state, each.version, each.problem, str(each.healthy)].append(each)
    shown: list[Branch] = []
    done: set[tuple[str, ...]] = set()
    for each in children:
        key = (each.state, each.version, each.problem, str(each.healthy))
        if each.kind != "Machine" or len(equal[key]) <= ALONE:
            shown.append(each)
        elif key not in done:
            done.add(key)
            shown.append(_group(equal[key]))
    return shown


def _group(machines: list[Branch]) -> Branch:
    first = machines[0]
    return msgspec.structs.replace(
        first, name=f"{len(machines)} Machines", kind="Group", conditions=[], children=[], age_seconds=None
    )
