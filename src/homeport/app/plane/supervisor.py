"""Keeps the parts of the plane running: one that crashes is started again, after a growing pause."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from homeport.app.report.part import Gate, ManagerPart, Part
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.manager import Manager
from homeport.runtime.queue import Backoff

log = structlog.get_logger(__name__)

_STEADY_SECONDS = 60.0  # after that long without a crash the next pause is the shortest again


class Supervisor:
    """`changed` is called whenever a part changes its state."""

    def __init__(
        self,
        *,
        changed: Callable[[Part], None] = lambda part: None,
        backoff: Backoff | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.parts: list[Part] = []
        self._managers: list[ManagerPart] = []
        self._changed = changed
        self._backoff = backoff or Backoff(first=0.5, limit=60.0)
        self._clock = clock or SystemClock()

    def add(self, name: str, run: Callable[[], Awaitable[None]]) -> Part:
        """`run` is called again after each crash, so it must create everything that it needs."""
        part = Part(name, run, changed=self._changed)
        self.parts.append(part)
        return part

    def add_manager(self, name: str, make: Callable[[], Manager], gate: Gate | None = None) -> Part:
        """Adds a manager. After a crash, a new one is created. With `gate`, it works while that is open."""
        kept = ManagerPart(make, gate)
        part = kept.part = self.add(name, kept.run)
        self._managers.append(kept)
        return part

    @property
    def managers(self) -> list[Manager]:
        """Those that run now, or ran last."""
        return [kept.manager for kept in self._managers if kept.manager is not None]

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for part in self.parts:
                    group.create_task(self._keep(part), name=part.name)
        finally:
            for part in self.parts:
                part.become("stopped")

    async def _keep(self, part: Part) -> None:
        reporting = any(kept.part is part for kept in self._managers)
        failures = 0
        while True:
            started = self._clock.monotonic()
            part.become("starting" if reporting else "running")
            why = await self._attempt(part)
            failures = 1 if self._clock.monotonic() - started > _STEADY_SECONDS else failures + 1
            part.crashes += 1
            part.error = why
            part.retry_in = self._backoff.delay(failures)
            part.become("waiting")
            log.warning("restarting it", part=part.name, error=why, retry_in=round(part.retry_in, 1))
            await asyncio.sleep(part.retry_in)

    async def _attempt(self, part: Part) -> str:
        """Why it ended."""
        try:
            await part.run()
        except Exception as error:
            log.exception("a component of the plane crashed", part=part.name)
            return _say(error)
        return "it exited unexpectedly"


def _say(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_say(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"
