"""Pausing the source, and waiting until its controllers are at rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from homeport.capi.name import CLUSTER_NAME_LABEL, PAUSED, Condition
from homeport.client.errors import NotFound
from homeport.client.protocol import MergePatch
from homeport.move.errors import MoveRefused
from homeport.move.graph import Selection
from homeport.move.node import Node
from homeport.move.preflight import source_problems
from homeport.move.record import Held, Moved, Record, moved
from homeport.move.side import MANAGER, Side
from homeport.runtime.clock import Clock

_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 1.0
_STAYS = "the source stays paused: run this command again to continue, or with --abort to resume the source"

Select = Callable[[], Awaitable[Selection]]


async def pause_source(source: Side, held: Held, select: Select, clock: Clock) -> Selection:
    """Also what appeared meanwhile. The record names an object before it is paused: the next process can resume it."""
    selection = await select()
    while fresh := [moved(node) for node in selection.roots() if not node.paused]:
        known = {each.uid for each in held.record.paused}
        if added := [each for each in fresh if each.uid not in known]:
            await held.write(msgspec.structs.replace(held.record, paused=(*held.record.paused, *added)))
        for each in fresh:
            await _write(source, each, paused=True)
        selection = await select()
    return await _settled(select, selection, clock)


async def resume_source(source: Side, record: Record) -> None:
    for each in reversed(record.paused):
        await _write(source, each, paused=False)


async def _write(source: Side, each: Moved, *, paused: bool) -> None:
    if each.is_cluster:
        body: dict[str, object] = {"spec": {"paused": True if paused else None}}
    else:
        body = {"metadata": {"annotations": {PAUSED: "" if paused else None}}}
    try:
        await source.patch(each.resource, each.key, MergePatch(body), MANAGER)
    except NotFound:
        return


async def _settled(select: Select, selection: Selection, clock: Clock) -> Selection:
    until = clock.monotonic() + _PATIENCE_SECONDS
    while restless := restless_objects(selection):
        if clock.monotonic() > until:
            raise MoveRefused([*restless[:5], _STAYS])
        await asyncio.sleep(_POLL_SECONDS)
        selection = await select()
    if problems := source_problems(selection):
        raise MoveRefused([*problems, _STAYS])
    return selection


def restless_objects(selection: Selection) -> list[str]:
    """Objects that a controller may still be working on."""
    roots = {node.uid for node in selection.roots()}
    found = []
    for node in selection.nodes:
        if node.blocked:
            found.append(f"{node} is not ready to move: its VM is being created")
        elif node.uid not in selection.kept and node.reports(Condition.PAUSED, "False") and _is_paused(node, roots):
            found.append(f"{node}: its controller has not confirmed the pause: check that the source's controllers run")
    return found


def _is_paused(node: Node, roots: set[str]) -> bool:
    return node.uid in roots or CLUSTER_NAME_LABEL in node.labels or "clusterName" in node.spec
