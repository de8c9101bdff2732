"""The send queue of one connection, shared by all of its senders."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from homeport.apiserver.http.stream.inbox import Inbox

FLUSH_SECONDS = 5.0


class Outbox:
    """One task writes for all: waiting for a slow client is nothing that several could do at once, nor give up singly.

    `write` raises ConnectionError when the client is gone; what is put then goes nowhere.
    """

    def __init__(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._waiting = Inbox()
        self._write = write
        self._task: asyncio.Task[None] | None = None

    async def put(self, message: bytes) -> None:
        """Waits while much is under way."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="writing to a stream's client")
        await self._waiting.put(message)

    async def finish(self) -> None:
        """Sends what is left, if the client takes it soon."""
        self._waiting.end()
        if self._task is None:
            return
        try:
            await asyncio.wait([self._task], timeout=FLUSH_SECONDS)
        finally:
            self._task.cancel()
            # Seen to its end: nobody else holds it, and a server that closes now would leave it behind.
            await asyncio.wait([self._task], timeout=FLUSH_SECONDS)

    async def _run(self) -> None:
        with contextlib.suppress(ConnectionError):
            while message := await self._waiting.read():
                await self._write(message)
        self._waiting.close()
