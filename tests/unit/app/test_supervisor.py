"""The supervisor: parts crash, are started again after growing pauses, and leave the others alone."""

from __future__ import annotations

import asyncio
import contextlib

from homeport.app.plane.supervisor import Supervisor
from homeport.app.report.part import Part
from homeport.runtime.clock import LoopClock
from homeport.runtime.queue import Backoff
from homeport.runtime.testing import virtual


class Fragile:
    """Ends as it is told to, one ending per start; then it runs."""

    def __init__(self, *endings: float | Exception) -> None:
        self.endings = list(endings)
        self.started: list[float] = []

    async def run(self) -> None:
        self.started.append(asyncio.get_running_loop().time())
        if not self.endings:
            await asyncio.Event().wait()
        ending = self.endings.pop(0)
        if isinstance(ending, Exception):
            raise ending
        await asyncio.sleep(ending)


def supervise(*parts: Fragile) -> tuple[Supervisor, list[tuple[str, str, str]]]:
    told: list[tuple[str, str, str]] = []

    def changed(part: Part) -> None:
        told.append((part.name, part.state, part.error))

    made = Supervisor(changed=changed, backoff=Backoff(first=1.0, limit=60.0, jitter=0.0), clock=LoopClock())
    for number, part in enumerate(parts):
        made.add(f"part {number}", part.run)
    return made, told


async def run_for(supervisor: Supervisor, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await supervisor.run()


@virtual
async def test_pauses_grow_with_each_crash_in_a_row() -> None:
    part = Fragile(*(ValueError("broken") for _ in range(4)))
    supervisor, _ = supervise(part)
    await run_for(supervisor, 100)
    assert part.started == [0, 1, 3, 7, 15]
    assert supervisor.parts[0].crashes == 4


@virtual
async def test_after_a_long_steady_time_the_pause_is_the_shortest_again() -> None:
    part = Fragile(ValueError("a"), ValueError("b"), 61.0, ValueError("c"))
    supervisor, _ = supervise(part)
    await run_for(supervisor, 100)
    assert part.started == [0, 1, 3, 65, 67]


@virtual
async def test_a_crash_does_not_affect_other_parts_and_is_reported() -> None:
    steady, fragile = Fragile(), Fragile(ExceptionGroup("two", [ValueError("one"), KeyError("other")]))
    supervisor, told = supervise(steady, fragile)
    await run_for(supervisor, 10)
    assert steady.started == [0]
    why = "ValueError: one; KeyError: 'other'"
    assert [line for line in told if line[0] == "part 1"] == [
        ("part 1", "running", ""),
        ("part 1", "waiting", why),
        ("part 1", "running", why),
        ("part 1", "stopped", why),
    ]


@virtual
async def test_a_part_that_ends_by_itself_is_started_again() -> None:
    part = Fragile(0.0)
    supervisor, told = supervise(part)
    await run_for(supervisor, 10)
    assert part.started == [0, 1]
    assert ("part 0", "waiting", "it exited unexpectedly") in told
