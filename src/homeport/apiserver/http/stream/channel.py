"""The channel protocol: a WebSocket whose messages begin with the number of a channel, two channels for each port."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Sequence

from aiohttp import WSMsgType
from aiohttp.web import WebSocketResponse

from homeport.apiserver.http.stream.inbox import Inbox
from homeport.apiserver.http.stream.outbox import Outbox
from homeport.apiserver.http.stream.pump import forward
from homeport.apiserver.registry import Forward
from homeport.machinery.portforward import CHANNEL_BASE64


class _Pair:
    """The two channels of one port."""

    def __init__(self, session: ChannelSession, number: int, port: int) -> None:
        self.port = port
        self.inbox = Inbox()  # never ended: this protocol has no word for the end of what a client sends
        self._session = session
        self._data = 2 * number

    async def run(self, answer: Forward) -> None:
        try:
            text = await forward(self, self.port, answer)
            if text:
                await self._session.send(self._data + 1, text.encode())
        finally:
            self.inbox.close()

    async def read(self) -> bytes:
        return await self.inbox.read()

    async def write(self, data: bytes) -> None:
        await self._session.send(self._data, data)

    async def announce(self) -> None:
        for channel in (self._data, self._data + 1):
            await self._session.send(channel, self.port.to_bytes(2, "little"))


class ChannelSession:
    def __init__(
        self, socket: WebSocketResponse, ports: Sequence[int], answer: Forward, touch: Callable[[], None]
    ) -> None:
        self._socket = socket
        self._text = socket.ws_protocol == CHANNEL_BASE64
        self._answer = answer
        self._touch = touch
        self._outbox = Outbox(self._write)
        self._pairs = [_Pair(self, number, port) for number, port in enumerate(ports)]

    async def run(self) -> None:
        """Until every connection has ended, or the client is gone."""
        receiving = asyncio.create_task(self._receive())
        working = asyncio.create_task(self._work())
        try:
            await asyncio.wait([receiving, working], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (receiving, working):
                task.cancel()
            try:
                await asyncio.gather(receiving, working, return_exceptions=True)
            finally:
                await self._outbox.finish()

    async def _work(self) -> None:
        for pair in self._pairs:
            await pair.announce()
        async with asyncio.TaskGroup() as group:
            for pair in self._pairs:
                group.create_task(pair.run(self._answer))

    async def _receive(self) -> None:
        async for message in self._socket:
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                return
            self._touch()
            raw = message.data.encode() if isinstance(message.data, str) else message.data
            if not raw:
                continue
            channel, data = self._split(raw)
            # Channels of errors are for us to write alone; what comes on them, or on others, is nothing.
            if channel % 2 == 0 and 0 <= channel // 2 < len(self._pairs):
                await self._pairs[channel // 2].inbox.put(data)

    def _split(self, raw: bytes) -> tuple[int, bytes]:
        if not self._text:
            return raw[0], raw[1:]
        try:
            return raw[0] - 48, base64.b64decode(raw[1:], validate=True)
        except binascii.Error:
            return 255, b""

    async def send(self, channel: int, data: bytes) -> None:
        self._touch()
        if self._text:
            await self._outbox.put(bytes((48 + channel,)) + base64.b64encode(data))
        else:
            await self._outbox.put(bytes((channel,)) + data)

    async def _write(self, message: bytes) -> None:
        if self._text:
            await self._socket.send_str(message.decode())
        else:
            await self._socket.send_bytes(message)
