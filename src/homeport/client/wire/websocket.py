"""WebSockets to an API server: binary messages, and the reason when it would not open one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

import aiohttp

from homeport.client.wire.failure import BROKEN, reason_of
from homeport.client.wire.rest import Answer


class Refused(Exception):
    """The server answered something else than the protocol that was asked for."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


async def refusal(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keeps the body of a refusal, which says why; aiohttp throws it away."""
    response = await handler(request)
    if response.status == 101:
        return response
    raise Refused(Answer(response.status, response.headers, await response.read()))


class Connection(aiohttp.ClientWebSocketResponse[Literal[True]]):
    """A WebSocket that knows its transport."""

    def __init__(
        self, reader: Any, writer: Any, protocol: str | None, response: aiohttp.ClientResponse, *args: Any, **named: Any
    ) -> None:
        super().__init__(reader, writer, protocol, response, *args, **named)
        self.transport: asyncio.Transport | None = response.connection.transport if response.connection else None

    async def leave(self) -> None:
        """Says goodbye once, as WebSockets do, and not a second time as TLS does: the peer may be gone."""
        try:
            await self.close()
        finally:
            if self.transport is not None:
                self.transport.abort()


class Socket:
    """A WebSocket of binary messages."""

    def __init__(self, inner: Connection, what: str) -> None:
        self._inner = inner
        self._what = what
        self.status = 101
        self.headers: Mapping[str, str] = {}

    async def send(self, message: bytes) -> None:
        try:
            await self._inner.send_bytes(message)
        except BROKEN as error:
            raise ConnectionError(f"{self._what}: the connection was lost: {reason_of(error)}") from error

    async def receive(self) -> bytes | None:
        message = await self._inner.receive()
        if message.type is aiohttp.WSMsgType.BINARY:
            return bytes(message.data)
        if message.type is aiohttp.WSMsgType.ERROR or self._inner.close_code == aiohttp.WSCloseCode.ABNORMAL_CLOSURE:
            error = self._inner.exception()
            raise ConnectionError(f"{self._what}: the connection was lost" + (f": {reason_of(error)}" if error else ""))
        return None

    async def close(self) -> None:
        await self._inner.leave()
