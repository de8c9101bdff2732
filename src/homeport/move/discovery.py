"""Reads everything that could move."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.move.graph import Graph
from homeport.move.kind import MovedKind, moved_kinds
from homeport.move.node import Node
from homeport.move.record import KEY
from homeport.move.side import DEFINITION, Side, listed


async def discover_kinds(source: Side, target: Side | None) -> list[MovedKind]:
    there = await listed(target, DEFINITION) if target is not None else None
    return moved_kinds(await listed(source, DEFINITION), there)


async def discover(side: Side, kinds: Sequence[MovedKind]) -> Graph:
    """All namespaces, also if one of them moves: what the others use must stay."""
    nodes: list[Node] = []
    for kind in kinds:
        nodes += [Node(kind, obj) for obj in await listed(side, kind.resource)]
    return Graph.build(node for node in nodes if node.kind.custom or node.key != KEY)
