"""A client's connection: its certificate, read once, and word of its end."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

from aiohttp.web import Server
from aiohttp.web_protocol import RequestHandler


class Connection(RequestHandler):
    """`on_lost` is called when the client is gone; a request that stays open sets it for as long as it lasts."""

    __slots__ = ("_peer", "on_lost")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.on_lost: Callable[[], None] | None = None
        self._peer: bytes | None = None

    def connection_made(self, transport: Any) -> None:
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        # The certificate can't change while the connection lasts.
        self._peer = tls.getpeercert(binary_form=True) if tls is not None else None
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self.on_lost is not None:
            self.on_lost()
        super().connection_lost(exc)

    @property
    def peer_certificate(self) -> bytes | None:
        """DER of the client's certificate, which TLS has verified."""
        return self._peer


class ConnectionServer(Server):
    """aiohttp's low-level server, with connections of our own kind."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # aiohttp forgets a connection when it closes it; over TLS that is when the goodbyes begin.
        self._transports: dict[RequestHandler, asyncio.Transport] = {}
        self._changed = asyncio.Event()

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._transports[handler] = transport

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._transports.pop(handler, None)
        self._changed.set()

    async def hang_up(self, seconds: float) -> None:
        """Waits for connections that are being closed to be gone, and cuts off those that take longer."""
        if await self._gone(seconds):
            return
        for transport in list(self._transports.values()):
            transport.abort()
        await self._gone(seconds)

    async def _gone(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                while self._transports:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def __call__(self) -> RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)
