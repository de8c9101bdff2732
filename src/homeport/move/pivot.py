"""The pivot: a plane moves everything to another one, and steps back.

A plane that has stepped back keeps serving its API, and its controllers are off: nothing that is created there by
mistake is worked on by two planes. Moving clusters back to it turns its controllers on again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from homeport.client.protocol import Client
from homeport.move.mover import Mover, Options
from homeport.move.standby import step_back
from homeport.runtime.clock import Clock, SystemClock, rfc3339


async def pivot(
    source: Client,
    target: Client,
    progress: Callable[[str], None],
    *,
    target_name: str = "the new management cluster",
    clock: Clock | None = None,
    arrived: Callable[[], Awaitable[None]] | None = None,
) -> int:
    """Call it again after any failure: it continues. Gives the number of objects that this call moved.

    `arrived` is called when everything has moved, while the controllers of the source still run.

    Raises MoveRefused, whose text lists every problem with its cure, and ApiError.
    """
    clock = clock or SystemClock()
    count = await Mover(source, target, Options(target_name=target_name), progress, clock).run()
    if arrived is not None:
        await arrived()
    progress("stepping back: the controllers of the source stop")
    await step_back(source, target_name, rfc3339(clock.now()))
    return count
