"""Makes the tree of what was read. Pure."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Unstructured
from homeport.app.tree.branch import Branch, Reference, Tree
from homeport.app.tree.read import Found
from homeport.app.tree.structure import DEEPEST, Item, Structure, role
from homeport.capi.object.cause import Part, ReportedProblem, blamed, complaint, unreachable
from homeport.runtime.clock import parse_time


def grow(found: Found, now: float | None, *, everything: bool = False) -> list[Tree]:
    """One tree for each root. `everything`: with templates, bootstrap configurations and empty MachineSets.

    Without `now`, nothing has an age.
    """
    structure = Structure(everything=everything)
    for each in (*found.roots, *found.objects):
        structure.put(each)
    made = []
    for root in found.roots:
        item = structure.get(root.uid)
        assert item is not None
        text, at, since = _sentence(item, _part(structure, item, frozenset()))
        made.append(Tree(_Grown(structure, now).branch(item), text, at, found.unreadable, since))
    return made


def _part(structure: Structure, item: Item, above: frozenset[str]) -> Part:
    seen = above | {item.uid}
    return Part(item.object, children=[_part(structure, each, seen) for each in _below(structure, item, seen)])


def _below(structure: Structure, item: Item, seen: frozenset[str]) -> list[Item]:
    """`seen`: the UIDs from the root to the item."""
    return [each for each in structure.children(item) if each.uid not in seen] if len(seen) < DEEPEST else []


def _sentence(item: Item, part: Part) -> tuple[str, Reference | None, str]:
    """A root that is healthy has no cause, though one of its parts may be under way, unless it can't be managed."""
    if item.facts.runs:
        lost = _first_unreachable(part)
        return ("", None, "") if lost is None else (lost[1].message, reference(lost[0]), lost[1].since)
    blame = blamed(part)
    if blame is None:
        return "", None, ""
    found: Any = blame[1]
    said = complaint(found)
    return blame[0], reference(found), "" if said is None else said.since


def _first_unreachable(part: Part) -> tuple[Any, ReportedProblem] | None:
    """What is above it only repeats it."""
    below = next((lost for each in part.children if (lost := _first_unreachable(each)) is not None), None)
    said = unreachable(part.object) if below is None else None
    return below if said is None else (part.object, said)


def reference(obj: Unstructured) -> Reference:
    return Reference(str(obj.get("kind")), obj.namespace, obj.name, str(obj.get("apiVersion")))


class _Grown:
    def __init__(self, structure: Structure, now: float | None) -> None:
        self._structure = structure
        self._now = now

    def branch(self, item: Item, above: Item | None = None, seen: frozenset[str] = frozenset()) -> Branch:
        seen |= {item.uid}
        children = [self.branch(each, item, seen) for each in _below(self._structure, item, seen)]
        facts = item.facts
        problem = facts.problem
        if problem and facts.waits and any(child.problem for each in children for child in each.walk()):
            problem = ""  # something below it reports more
        if problem and any(each.problem and problem.endswith(f": {each.problem}") for each in children):
            problem = ""  # it only repeats what the one below it reports
        place = "" if above is None else role(item.object, above.object)
        return facts.branch(place, problem, [*children, *facts.nodes], self._age(item.object))

    def _age(self, obj: Unstructured) -> float | None:
        created = obj.metadata.get("creationTimestamp")
        return max(0.0, self._now - parse_time(created)) if created and self._now is not None else None
