"""Tasks of Prism Central, waited for by one poller for all machines of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from homeport.infra.error import ProviderError, Unreachable
from homeport.providers.nutanix.prism.record import Prism, Task
from homeport.runtime.clock import Clock

log = structlog.get_logger(__name__)

_FIRST_SECONDS = 0.25
_SLOWEST_SECONDS = 5.0
_FORGET_SECONDS = 600.0


@dataclass(slots=True)
class _Followed:
    since: float
    wakes: dict[str, Callable[[], None]] = field(default_factory=dict)  # by who waits
    task: Task | None = None  # the last that was seen of it
    unknown: int = 0


class Poller:
    """`follow` a task and be woken when it is over; `state` says how it stands. Idle while there is none."""

    def __init__(self, prism: Prism, clock: Clock) -> None:
        self._prism = prism
        self._clock = clock
        self._followed: dict[str, _Followed] = {}
        self._running: asyncio.Task[None] | None = None

    def follow(self, task_id: str, who: str, wake: Callable[[], None]) -> None:
        held = self._followed.setdefault(task_id, _Followed(self._clock.monotonic()))
        held.wakes[who] = wake
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._poll(), name="tasks of Prism Central")

    async def state(self, task_id: str) -> Task | None:
        """The newest that is known, asked for if nobody looks after it. None: Prism Central does not know it."""
        held = self._followed.get(task_id)
        if held is not None and (held.task is not None or held.wakes):
            return held.task or Task(task_id, "queued")
        found = await self._prism.tasks([task_id])
        return found[0] if found else None

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _poll(self) -> None:
        delay = _FIRST_SECONDS
        while True:
            pending = [task_id for task_id, held in self._followed.items() if not _over(held.task)]
            if not pending:
                self._forget()
                return
            finished = await self._look(pending)
            delay = _FIRST_SECONDS if finished else min(delay * 1.5, _SLOWEST_SECONDS)
            if any(not _over(self._followed[each].task) for each in pending if each in self._followed):
                await asyncio.sleep(delay)

    async def _look(self, pending: list[str]) -> bool:
        try:
            found = {task.id: task for task in await self._prism.tasks(pending)}
        except ProviderError as error:
            log.info("tasks of Prism Central could not be read", error=error.message)
            if not isinstance(error, Unreachable):
                self._wake_all(pending)
            await asyncio.sleep(_SLOWEST_SECONDS)
            return False
        finished = False
        for task_id in pending:
            held = self._followed[task_id]
            held.task = found.get(task_id, held.task)
            # One that vanished is over for us: whoever asked for it looks at the machine instead.
            held.unknown = 0 if task_id in found else held.unknown + 1
            if held.unknown >= 3:
                held.task = Task(task_id, "failed", error="Prism Central does not know the task any more")
            if _over(held.task):
                finished = True
                self._wake_all([task_id])
        return finished

    def _wake_all(self, ids: list[str]) -> None:
        for task_id in ids:
            held = self._followed[task_id]
            wakes, held.wakes = held.wakes, {}
            for wake in wakes.values():
                wake()

    def _forget(self) -> None:
        limit = self._clock.monotonic() - _FORGET_SECONDS
        self._followed = {task_id: held for task_id, held in self._followed.items() if held.since > limit}


def _over(task: Task | None) -> bool:
    return task is not None and task.status in ("succeeded", "failed")
