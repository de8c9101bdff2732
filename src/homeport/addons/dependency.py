"""In which order the add-ons of one Cluster are installed and removed. Pure functions on names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

Graph = Mapping[str, Sequence[str]]  # the names that each name depends on


@dataclass(frozen=True, slots=True)
class Peer:
    """Another add-on of the same Cluster, by the name under which others depend on it."""

    name: str
    ready: bool = False
    deleting: bool = False
    depends_on: tuple[str, ...] = ()
    addon: str = ""  # of the catalogue
    reason: str = ""  # why it is not Ready


def find_cycle(graph: Graph, start: str) -> tuple[str, ...]:
    """The shortest way from `start` back to it: (a, b, a). Empty: there is none."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for name in graph.get(way[-1], ()):
            if name == start:
                return (*way, name)
            if name not in seen:
                seen.add(name)
                ways.append((*way, name))
    return ()


def reaches(graph: Graph, start: str, goal: str) -> bool:
    """Whether `start` depends on `goal`, directly or through others."""
    seen, left = {start}, [start]
    while left:
        for name in graph.get(left.pop(), ()):
            if name == goal:
                return True
            if name not in seen:
                seen.add(name)
                left.append(name)
    return False


def graph_of(peers: Iterable[Peer]) -> dict[str, tuple[str, ...]]:
    return {each.name: each.depends_on for each in peers}


def expected_first(me: Peer, peers: Sequence[Peer], after: frozenset[str]) -> list[Peer]:
    """Add-ons of the catalogue that usually come before `me`, if this Cluster has them: a network before its users.

    An add-on that depends on `me` is not waited for: what a user writes goes before what is usual.
    """
    graph = graph_of(peers)
    return [
        each
        for each in peers
        if each.addon in after
        and each.name != me.name
        and not each.ready
        and not each.deleting
        and each.name not in me.depends_on
        and not reaches(graph, each.name, me.name)
    ]


def dependents(
    me: Peer, peers: Sequence[Peer], before: Callable[[str], frozenset[str]]
) -> tuple[list[Peer], list[Peer]]:
    """Those that must be removed before `me`: those whose users wrote so, and those that usually come later and are
    being removed as well."""
    graph = graph_of(peers)
    # Those of a circle would wait for each other without end once all of them are being removed.
    written = [
        each
        for each in peers
        if me.name in each.depends_on
        and each.name != me.name
        and not (each.deleting and reaches(graph, me.name, each.name))
    ]
    usual = [
        each
        for each in peers
        if each.deleting
        and each not in written
        and each.name != me.name
        and me.addon in before(each.addon)
        and not reaches(graph, me.name, each.name)
    ]
    return written, usual
