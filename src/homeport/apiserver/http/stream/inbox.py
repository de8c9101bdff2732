"""Messages between those who put them in and the one who reads them, with an end to how much may wait."""

from __future__ import annotations

import asyncio
from collections import deque

LIMIT_BYTES = 256 * 1024


class Inbox:
    """What a client has sent on one stream. A full one makes the client wait, and with it all its streams."""

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._closed = False
        self._changed = asyncio.Event()

    async def put(self, data: bytes) -> None:
        while self._size >= LIMIT_BYTES and not self._closed:
            await self._wait()
        if data and not self._ended:
            self._parts.append(data)
            self._size += len(data)
            self._changed.set()

    def end(self) -> None:
        """Nothing more will come."""
        self._ended = True
        self._changed.set()

    def close(self) -> None:
        """Reading has ended: drops buffered data and everything that arrives later."""
        self._ended = self._closed = True
        self._parts.clear()
        self._size = 0
        self._changed.set()

    async def read(self) -> bytes:
        """b"" at the end."""
        while not self._parts and not self._ended:
            await self._wait()
        if not self._parts:
            return b""
        found = self._parts.popleft()
        self._size -= len(found)
        self._changed.set()
        return found

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()
