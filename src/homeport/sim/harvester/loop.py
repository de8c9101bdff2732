"""Runs one controller: keys come in as objects change, `settle` brings one object forward."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from homeport.client.errors import AlreadyExists, ApiError, Conflict, NotFound
from homeport.runtime.queue import Backoff, ShutDown, WorkQueue
from homeport.store import StoreUnavailable

log = structlog.get_logger(__name__)

# Brings the object of a key forward; the result is in how many seconds to look again if nothing changes before.
Settle = Callable[[str], Awaitable[float | None]]
_WORKERS = 16  # writes that are under way together share a commit
_PASSING = (Conflict, NotFound, AlreadyExists)  # somebody else was faster: look again


class Loop:
    def __init__(self, name: str, settle: Settle) -> None:
        self.name = name
        self._settle = settle
        self._queue: WorkQueue[str] = WorkQueue(backoff=Backoff(first=0.01, limit=30.0))
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    def add(self, key: str, after: float = 0.0) -> None:
        self._queue.add(key, after=after)

    @property
    def idle(self) -> bool:
        """Nothing to do now; something may be due later."""
        return self._queue.idle

    def start(self) -> None:
        self._tasks = [
            asyncio.get_running_loop().create_task(self._work(), name=f"harvester {self.name}") for _ in range(_WORKERS)
        ]

    async def close(self) -> None:
        self._closed = True
        self._queue.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except ShutDown:
                return
            try:
                await self._bring(key)
            finally:
                self._queue.done(key)

    async def _bring(self, key: str) -> None:
        try:
            after = await self._settle(key)
        except _PASSING:
            self._queue.retry(key)
        except ApiError as error:
            log.warning("a controller of the simulated Harvester was refused", loop=self.name, key=key, why=str(error))
            self._queue.retry(key, at_least=1.0)
        except StoreUnavailable as error:
            if not self._closed:  # a commit failed: the object must not wait for a change that may never come
                log.warning("the simulated Harvester can't store a change", loop=self.name, key=key, why=str(error))
                self._queue.retry(key, at_least=1.0)
        except Exception:  # a mistake about one object must not end the work on all others
            log.exception("a controller of the simulated Harvester failed", loop=self.name, key=key)
            self._queue.retry(key, at_least=5.0)
        else:
            self._queue.forget(key)
            if after is not None:
                self._queue.add(key, after=max(after, 0.001))
