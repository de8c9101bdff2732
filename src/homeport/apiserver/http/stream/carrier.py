"""What carries SPDY: the connection itself once HTTP has left it, or the messages of a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Protocol

from aiohttp import WSMsgType
from aiohttp.web import StreamResponse, WebSocketResponse

from homeport.apiserver.http.connection import Connection

_HIGH_WATER = 256 * 1024


class Carrier(Protocol):
    async def read(self) -> bytes:
        """b"" when the peer has ended."""

    async def write(self, data: bytes) -> None:
        """Takes the bytes at once, then waits while the peer is slow. Raises ConnectionError when it is gone."""


class Messages:
    def __init__(self, socket: WebSocketResponse) -> None:
        self._socket = socket

    async def read(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is not WSMsgType.BINARY:
                return b""
            if message.data:
                return bytes(message.data)

    async def write(self, data: bytes) -> None:
        await self._socket.send_bytes(data)


class Takeover:
    """A connection that speaks HTTP no more. aiohttp hands what comes to `feed_data`, as to its own WebSockets."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._buffer = bytearray()
        self._paused = False
        self._ended = False
        self._arrived = asyncio.Event()
        parser: Any = self
        connection.set_parser(parser)

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._buffer += data
        self._arrived.set()
        if len(self._buffer) > _HIGH_WATER and not self._paused and self._connection.transport is not None:
            self._paused = True
            self._connection.transport.pause_reading()
        return False, b""

    def feed_eof(self) -> None:
        self._ended = True
        self._arrived.set()

    def set_exception(self, *_: object) -> None:
        self.feed_eof()

    async def read(self) -> bytes:
        while not self._buffer and not self._ended:
            self._arrived.clear()
            await self._arrived.wait()
        found = bytes(self._buffer)
        self._buffer.clear()
        if self._paused and self._connection.transport is not None:
            self._paused = False
            with contextlib.suppress(RuntimeError):  # it is closing
                self._connection.transport.resume_reading()
        return found

    async def write(self, data: bytes) -> None:
        transport = self._connection.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        transport.write(data)
        await self._connection._drain_helper()


class Switched(StreamResponse):
    """The answer after which the connection is another's: everything of it is sent already."""

    def __init__(self) -> None:
        super().__init__(status=101)
        self._eof_sent = True
        self.force_close()
