"""A client's connection: its certificate, read once, word of its end, and how long it may stay without a request."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp.web import Server
from aiohttp.web_protocol import RequestHandler


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Idle connections must not block others. `most` 0: as many as the process can open."""

    handshake_seconds: float = 10.0  # for TLS
    header_seconds: float = 30.0  # for the whole header of the first request
    anonymous_seconds: float = 30.0  # between requests of clients that we don't know
    idle_seconds: float = 180.0  # between requests of clients that we know
    most: int = 0


class Connection(RequestHandler):
    """`on_lost` is called when the client is gone; a request that stays open sets it for as long as it lasts.

    `known`: the client has shown who it is. `quiet_since` is when its last request ended, or it came.
    """

    __slots__ = ("_peer", "known", "on_lost", "quiet_since")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.on_lost: Callable[[], None] | None = None
        self._peer: bytes | None = None
        self.known = False
        self.quiet_since = self._loop.time()

    @property
    def idle(self) -> bool:
        return not self._request_in_progress and not self._messages

    def overdue(self, now: float, limits: ConnectionLimits) -> bool:
        """Whether it has had its time. Those of known clients are ended by aiohttp, when they are idle for long."""
        if not self.idle or (self.known and self._request_count):
            return False
        allowed = limits.anonymous_seconds if self._request_count else limits.header_seconds
        return now - self.quiet_since > allowed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        # The certificate can't change while the connection lasts.
        self._peer = tls.getpeercert(binary_form=True) if tls is not None else None
        self.known = self._peer is not None
        self.quiet_since = self._loop.time()
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

    def __init__(self, *args: Any, limits: ConnectionLimits, **kwargs: Any) -> None:
        super().__init__(*args, keepalive_timeout=limits.idle_seconds, **kwargs)
        self._limits = limits
        self._sweeping: asyncio.TimerHandle | None = None
        # aiohttp forgets a connection when it closes it; over TLS that is when the goodbyes begin.
        self._transports: dict[RequestHandler, asyncio.Transport] = {}
        self._changed = asyncio.Event()

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._transports[handler] = transport
        if self._sweeping is None:
            self._sweep()
        if self._limits.most and len(self._transports) > self._limits.most:
            self._make_room()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._transports.pop(handler, None)
        self._changed.set()

    def _sweep(self) -> None:
        """Ends what is overdue, and comes back as long as there are connections."""
        now = self._loop.time()
        for handler, transport in list(self._transports.items()):
            if isinstance(handler, Connection) and handler.overdue(now, self._limits):
                transport.abort()
        often = min(self._limits.header_seconds, self._limits.anonymous_seconds) / 4
        self._sweeping = self._loop.call_later(often, self._sweep) if self._transports else None

    def _make_room(self) -> None:
        """The oldest idle connection of an unknown client goes, or else the oldest idle one: a new client may be one
        who comes to help."""
        idle = [each for each in self._transports if isinstance(each, Connection) and each.idle]
        unknown = next((each for each in idle[:-1] if not each.known), None)
        leaving = unknown or (idle[0] if len(idle) > 1 else None)
        if leaving is not None:
            self._transports[leaving].abort()

    def stop_sweeping(self) -> None:
        """No more looks at connections."""
        if self._sweeping is not None:
            self._sweeping.cancel()

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
