"""Connections to vendors, one for each endpoint and credentials, shared and renewed when the credentials change."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from homeport.infra.error import Unreachable
from homeport.infra.protocol import Session
from homeport.runtime.clock import Clock

S = TypeVar("S", bound=Session)

log = structlog.get_logger(__name__)

_IDLE_SECONDS = 1800.0


def fingerprint(*parts: str | bytes) -> str:
    """Tells credentials apart without keeping them."""
    made = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        made.update(len(data).to_bytes(8, "big") + data)
    return made.hexdigest()


@dataclass(slots=True)
class _Held(Generic[S]):
    session: S
    used: float


class Sessions(Generic[S]):
    """`await sessions.get(key, connect)`: key from `fingerprint`, so a changed password is another session."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, _Held[S]] = {}
        self._opening: dict[str, asyncio.Task[S]] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._held)

    async def get(self, key: str, connect: Callable[[], Awaitable[S]]) -> S:
        """Raises what `connect` raises; the next call tries again. Several callers share one attempt."""
        if self._closed:  # a reconcile that is just ending: no one would close what it opens
            raise Unreachable("the connections of this manager are closed: it has stopped")
        held = self._held.get(key)
        if held is not None:
            held.used = self._clock.monotonic()
            return held.session
        opening = self._opening.get(key)
        if opening is None:
            opening = asyncio.ensure_future(connect())
            self._opening[key] = opening
            opening.add_done_callback(lambda task: self._opened(key, task))
        session = await asyncio.shield(opening)
        await self._drop_idle()
        return session

    def _opened(self, key: str, task: asyncio.Future[S]) -> None:
        if self._opening.get(key) is not task:
            return
        del self._opening[key]
        if not task.cancelled() and task.exception() is None:
            self._held[key] = _Held(task.result(), self._clock.monotonic())

    async def drop(self, key: str) -> None:
        """The credentials were refused: the next caller opens a new connection."""
        held = self._held.pop(key, None)
        if held is not None:
            await held.session.close()

    async def _drop_idle(self) -> None:
        limit = self._clock.monotonic() - _IDLE_SECONDS
        for key in [key for key, held in self._held.items() if held.used < limit]:
            log.debug("closing an idle session")
            await self.drop(key)

    async def close(self) -> None:
        """Also those that are just being opened. No more are opened afterwards."""
        self._closed = True
        opening = dict(self._opening)
        for task in opening.values():
            task.cancel()
        await asyncio.gather(*opening.values(), return_exceptions=True)
        for key, task in opening.items():
            self._opened(key, task)  # it may have succeeded at the last moment
        await asyncio.gather(*(self.drop(key) for key in list(self._held)))
