"""Removes objects for good without their controllers noticing: finalizers first, so that nothing cleans up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from homeport.capi.name import DELETE_FOR_MOVE
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import MergePatch
from homeport.move.errors import MoveRefused
from homeport.move.record import Moved
from homeport.move.side import MANAGER, Side, find

_ATTEMPTS = 30
_PAUSE_SECONDS = 0.5


async def remove(side: Side, objects: Sequence[Moved]) -> None:
    """In the reverse order of creation. An object that has another UID by now is another one, and stays."""
    for each in reversed(objects):
        if not each.kept:
            await _remove(side, each)


async def _remove(side: Side, each: Moved) -> None:
    for attempt in range(_ATTEMPTS):
        found = await find(side, each.resource, each.key)
        if found is None or found.uid != each.uid:
            return
        if attempt:
            await asyncio.sleep(_PAUSE_SECONDS)
        try:
            meta = {"uid": each.uid, "finalizers": None, "annotations": {DELETE_FOR_MOVE: ""}}
            await side.patch(each.resource, each.key, MergePatch({"metadata": meta}), MANAGER)
            await side.delete(each.resource, each.key, uid=each.uid)
        except NotFound:
            return
        except Conflict:
            continue  # of another UID, or written at this moment: look again
    held = ", ".join(found.metadata.get("finalizers") or ()) if found is not None else ""
    text = f"{each} is not deleted, because its finalizers come back ({held})"
    raise MoveRefused([f"{text}: stop the controller that sets them, and run this command again"])
