"""A request that turns its connection into streams: which protocol, its handshake, its life and its end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import traceback
from collections.abc import Callable
from functools import partial
from typing import Protocol

import structlog
from aiohttp import WSCloseCode
from aiohttp.web import BaseRequest, HTTPException, StreamResponse, WebSocketResponse
from multidict import istr

from homeport.apiserver.http.connection import Connection
from homeport.apiserver.http.exchange import Exchange
from homeport.apiserver.http.stream.carrier import Messages, Switched, Takeover
from homeport.apiserver.http.stream.channel import ChannelSession
from homeport.apiserver.http.stream.spdy import SpdySession
from homeport.apiserver.metrics import Metrics
from homeport.apiserver.registry import Forward
from homeport.client.errors import BadRequest, MethodNotAllowed, TooManyRequests
from homeport.machinery.portforward import CHANNEL, CHANNEL_BASE64, FORWARD, MAX_PORTS, SPDY, TUNNEL, parse_port

log = structlog.get_logger(__name__)

MAX_CONNECTIONS = 1000
IDLE_SECONDS = 4 * 3600.0  # as long as a kubelet bears it
_UPGRADE = istr("Upgrade")
_PROTOCOL = istr("Sec-WebSocket-Protocol")
_CONNECTION = istr("Connection")
_VERSION = istr("X-Stream-Protocol-Version")
_SPOKEN = (TUNNEL, CHANNEL, CHANNEL_BASE64)
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


class Session(Protocol):
    async def run(self) -> None: ...


class Upgrades:
    """All connections of a server that have become streams. Each ends when its client goes, when nothing has moved on
    it for hours, or with `close`."""

    def __init__(self, metrics: Metrics, *, limit: int = MAX_CONNECTIONS, idle_seconds: float = IDLE_SECONDS) -> None:
        self._metrics = metrics
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._open: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def close(self) -> None:
        for task in list(self._open):
            _cancel(task)

    async def serve(self, exchange: Exchange, answer: Forward) -> StreamResponse:
        wanted = exchange.header(_UPGRADE).lower()
        if wanted not in ("websocket", SPDY.lower()) or "upgrade" not in exchange.header(_CONNECTION).lower():
            raise BadRequest(
                f"ports of {answer.subject} are forwarded over an upgraded connection: send Upgrade: websocket with "
                f"Sec-WebSocket-Protocol: {TUNNEL} or {CHANNEL}, or Upgrade: {SPDY}"
            )
        if len(self._open) >= self._limit:
            raise TooManyRequests(f"{self._limit} connections are forwarded already", retry_after=5)
        if wanted == "websocket":
            return await self._websocket(exchange, answer)
        return await self._spdy(exchange, answer)

    async def _websocket(self, exchange: Exchange, answer: Forward) -> StreamResponse:
        if exchange.request.method != "GET":
            raise MethodNotAllowed("a WebSocket is opened with GET")
        offered = listed(exchange.header(_PROTOCOL))
        chosen = next((each for each in offered if each in _SPOKEN), "")
        if offered and not chosen:
            raise BadRequest(f"none of the protocols {', '.join(offered)} is served here: use {' or '.join(_SPOKEN)}")
        ports = [] if chosen == TUNNEL else ports_of(exchange)
        response = WebSocketResponse(protocols=[chosen] if chosen else (), compress=False, timeout=2.0)
        response.headers["Audit-Id"] = exchange.audit_id
        response.headers["Server"] = "homeport"
        try:
            await response.prepare(exchange.request)
        except HTTPException as error:
            raise BadRequest(f"the WebSocket's handshake: {error.text}") from error

        def begin(touch: Callable[[], None]) -> Session:
            if chosen == TUNNEL:
                return SpdySession(Messages(response), answer, touch)
            return ChannelSession(response, ports, answer, touch)

        await self._live(exchange, begin)
        with contextlib.suppress(ConnectionError):
            await response.close(code=WSCloseCode.OK)
        return response

    async def _spdy(self, exchange: Exchange, answer: Forward) -> StreamResponse:
        offered = listed(exchange.header(_VERSION))
        if FORWARD not in offered:
            raise BadRequest(
                f"X-Stream-Protocol-Version: {', '.join(offered) or 'nothing'} is not served here: use {FORWARD}"
            )
        connection = exchange.request.protocol
        assert isinstance(connection, Connection)
        carrier = Takeover(connection)
        head = (
            f"HTTP/1.1 101 Switching Protocols\r\nAudit-Id: {exchange.audit_id}\r\nConnection: Upgrade\r\n"
            f"Upgrade: {SPDY}\r\nX-Stream-Protocol-Version: {FORWARD}\r\n\r\n"
        )
        await carrier.write(head.encode())
        await self._live(exchange, lambda touch: SpdySession(carrier, answer, touch))
        return Switched()

    async def _live(self, exchange: Exchange, make: Callable[[Callable[[], None]], Session]) -> None:
        connection = exchange.request.protocol
        assert isinstance(connection, Connection)
        _watch_peer(exchange.request)
        idle = _Idle(self._idle_seconds)
        task = asyncio.create_task(make(idle.touch).run(), name=f"streams of {exchange.info.path}")
        idle.start(partial(_cancel, task))
        connection.on_lost = partial(_cancel, task)
        self._open.add(task)
        self._metrics.started(exchange.labels)
        try:
            if connection.transport is None:
                task.cancel()
            await asyncio.wait([task])
        finally:
            idle.stop()
            connection.on_lost = None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._open.discard(task)
            self._metrics.ended(exchange.labels, 101)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ConnectionError):
            # Not raised: what would be answered would be no part of the protocol that is spoken now.
            text = "".join(traceback.format_exception(error))
            log.error("streams failed", traceback=text, audit_id=exchange.audit_id, path=exchange.info.path)


class _Idle:
    """Calls back when nothing was touched for so long. Touching costs nothing."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._expire: Callable[[], None] = lambda: None

    def touch(self) -> None:
        self._last = self._loop.time()

    def start(self, expire: Callable[[], None]) -> None:
        self._expire = expire
        self._arm()

    def _arm(self) -> None:
        left = self._last + self._seconds - self._loop.time()
        if left <= 0:
            self._expire()
        else:
            self._timer = self._loop.call_later(left, self._arm)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _cancel(task: asyncio.Task[None]) -> None:
    """Once: what is being ended already is left to end in order."""
    if not task.cancelling():
        task.cancel()


def listed(header: str) -> list[str]:
    return [each.strip() for each in header.split(",") if each.strip()]


def ports_of(exchange: Exchange) -> list[int]:
    """`ports=1,2&ports=3`. Only the channel protocol names them here; SPDY names one with each stream."""
    texts = [text for each in exchange.query.all("ports") for text in each.split(",")]
    if not texts:
        raise BadRequest("the query parameter ports is missing: it names the ports to forward, as in ?ports=2379")
    if len(texts) > MAX_PORTS:
        raise BadRequest(f"{len(texts)} ports are too many for one connection: at most {MAX_PORTS} are forwarded")
    try:
        return [parse_port(text) for text in texts]
    except ValueError as error:
        raise BadRequest(f"ports: {error}") from error


def _watch_peer(request: BaseRequest) -> None:
    """A peer that vanished without a word is noticed after about a minute, however silent the streams are."""
    transport = request.transport
    raw = transport.get_extra_info("socket") if transport is not None else None
    if raw is None or raw.family not in (socket.AF_INET, socket.AF_INET6):
        return
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
