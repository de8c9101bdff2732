"""Keeps the parts of the plane running: one that crashes is started again, after a growing pause."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import structlog

from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.queue import Backoff

log = structlog.get_logger(__name__)

State = Literal["starting", "running", "waiting"]
_STEADY_SECONDS = 60.0  # after that long without a crash the next pause is the shortest again


@dataclass(slots=True)
class Part:
    name: str
    run: Callable[[], Awaitable[None]]
    state: State = "starting"
    crashes: int = 0
    error: str = ""


class Supervisor:
    def __init__(self, *, backoff: Backoff | None = None, clock: Clock | None = None) -> None:
        self.parts: list[Part] = []
        self._backoff = backoff or Backoff(first=0.5, limit=60.0)
        self._clock = clock or SystemClock()

    def add(self, name: str, run: Callable[[], Awaitable[None]]) -> Part:
        """`run` is called anew after each crash: it makes whatever it needs itself."""
        part = Part(name, run)
        self.parts.append(part)
        return part

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for part in self.parts:
                group.create_task(self._keep(part), name=part.name)

    async def _keep(self, part: Part) -> None:
        failures = 0
        while True:
            started = self._clock.monotonic()
            part.state = "running"
            try:
                await part.run()
                why = "it ended by itself"
            except asyncio.CancelledError:
                raise
            except Exception as error:
                why = _say(error)
                log.exception("a part of the plane crashed", part=part.name)
            part.crashes += 1
            part.error = why
            part.state = "waiting"
            failures = 1 if self._clock.monotonic() - started > _STEADY_SECONDS else failures + 1
            delay = self._backoff.delay(failures)
            log.warning("starting it again", part=part.name, error=why, retry_in=round(delay, 1))
            await asyncio.sleep(delay)


def _say(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_say(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"
