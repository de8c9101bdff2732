"""Watches: one task each, events written as bytes that all watchers share, bookmarks from one common clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import orjson
from aiohttp.http import HttpVersion11
from aiohttp.web import BaseRequest, StreamResponse
from multidict import CIMultiDict

from homeport.apiserver.http.connection import Connection
from homeport.apiserver.http.exchange import Exchange
from homeport.apiserver.http.negotiate import JSON, YAML, Form
from homeport.apiserver.http.query import watch_options
from homeport.apiserver.http.respond import add_warnings, status_of
from homeport.apiserver.metrics import Labels, Metrics
from homeport.apiserver.registry import Registry
from homeport.apiserver.resource import ServedKind, Version
from homeport.apiserver.table import TableForm, partial_metadata
from homeport.apiserver.verb.watch import WatchEvent, WatchStream
from homeport.client.errors import ApiError, BadRequest, Expired, NotAcceptable, Timeout

BOOKMARK_SECONDS = 60.0
SLOW_SECONDS = 30.0
MIN_TIMEOUT = 1800.0
_HIGH_WATER = 256 * 1024
_SLICE = 100  # events per write: what one slow reader can make us hold
_MAX_TIMEOUT = 7 * 86400.0  # timers further away than that are not kept exactly

Encode = Callable[[WatchEvent], bytes]


def _line(event: WatchEvent) -> bytes:
    return event.line


class _TableEncoder:
    """Each event a Table of one row; the first one carries the header."""

    def __init__(self, form: TableForm) -> None:
        self._form = form
        self._header = True

    def __call__(self, event: WatchEvent) -> bytes:
        body = self._form.render_one(event.object, header=self._header)
        self._header = False
        return b'{"type":"%s","object":%s}\n' % (event.type.encode(), body)


def _encoder(served: ServedKind, version: Version, form: Form, include: str) -> Encode:
    if not form.kind:
        return _line
    if form.kind == "Table":
        return _TableEncoder(TableForm(served, version, include, form.version))
    if form.kind == "PartialObjectMetadataList":
        raise NotAcceptable("you requested PartialObjectMetadataList, but the requested object is not a list (watch)")
    return lambda event: (
        b'{"type":"%s","object":%s}\n'
        % (
            event.type.encode(),
            partial_metadata(event.object, form.version),
        )
    )


class Watcher:
    """One open watch: from the stream to the client's socket."""

    __slots__ = ("_bookmarks", "_encode", "_idle", "_lost", "_request", "_steady", "_stream", "_transport")

    def __init__(
        self, request: BaseRequest, stream: WatchStream, encode: Encode, *, bookmarks: bool, steady: bool
    ) -> None:
        self._request = request
        self._stream = stream
        self._encode = encode
        self._bookmarks = bookmarks
        self._transport = request.transport
        self._lost = False
        # Where a webhook converts, events may be under way inside the stream while we wait for it.
        self._steady = steady
        self._idle = False

    def lose(self) -> None:
        """The client went away."""
        self._lost = True
        self._stream.close()

    def expire(self) -> None:
        """The time is over."""
        self._bookmark()
        self._stream.close()

    def close(self) -> None:
        self._stream.close()

    def tick(self) -> None:
        """A bookmark, unless events are under way: their revisions are not delivered yet."""
        if self._idle:
            self._bookmark()

    def _bookmark(self) -> None:
        if self._bookmarks and self._idle and not self._lost:
            self._write(self._bookmark_line())

    def _bookmark_line(self, *, initial_end: bool = False) -> bytes:
        line = self._stream.bookmark(initial_end=initial_end)
        if self._encode is _line:
            return line
        raw = orjson.loads(line)
        return self._encode(WatchEvent("BOOKMARK", orjson.dumps(raw["object"]), self._stream.revision))

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._lost:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def run(self) -> None:
        """Runs until the stream ends. Errors are sent as an ERROR event."""
        try:
            await self._deliver()
        except ApiError as error:
            self._write(error_line(error))
        except TimeoutError:
            # The client did not read for too long; what waits for it is dropped with the connection.
            self._lost = True
            if self._transport is not None:
                self._transport.abort()
        finally:
            self._idle = False
            self._stream.close()

    async def _deliver(self) -> None:
        end_due = self._stream.initial_end
        self._idle = self._steady and not end_due
        async for events in self._stream:
            self._idle = False
            for start in range(0, len(events), _SLICE):
                self._write(b"".join([self._encode(event) for event in events[start : start + _SLICE]]))
                await self._drain()
            if end_due:
                end_due = False
                if self._bookmarks:
                    self._write(self._bookmark_line(initial_end=True))
            self._idle = self._steady

    async def _drain(self) -> None:
        transport = self._transport
        if transport is None or transport.get_write_buffer_size() <= _HIGH_WATER:
            return
        async with asyncio.timeout(SLOW_SECONDS):
            await self._request.writer.drain()


def error_line(error: ApiError) -> bytes:
    return b'{"type":"ERROR","object":%s}\n' % orjson.dumps(status_of(error))


class Watches:
    """All open watches of a server."""

    def __init__(self, registry: Registry, metrics: Metrics, *, bookmark_seconds: float = BOOKMARK_SECONDS) -> None:
        self._registry = registry
        self._metrics = metrics
        self._seconds = bookmark_seconds
        self._open: set[Watcher] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False

    def __len__(self) -> int:
        return len(self._open)

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._tick)

    def _tick(self) -> None:
        for watcher in list(self._open):
            watcher.tick()
        self.start()

    def close(self) -> None:
        """Ends every watch cleanly: clients see the end of the stream and watch again elsewhere."""
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        for watcher in list(self._open):
            watcher.close()

    async def serve(
        self, exchange: Exchange, served: ServedKind, version: Version, namespace: str, name: str
    ) -> StreamResponse:
        """Opens a watch. Its answer is an OpenStream, to be run when everything else is off the stack."""
        seconds = timeout_of(exchange)
        if exchange.header("Upgrade").lower() == "websocket":
            raise BadRequest("watching over a WebSocket is not served: send a plain GET and read the chunked answer")
        if exchange.form.media == YAML:
            raise NotAcceptable(f"only the following media types are accepted for a watch: {JSON}")
        need_chunks(exchange)
        encode = _encoder(served, version, exchange.form, exchange.query.get("includeObject"))
        options = watch_options(exchange.query, name)
        try:
            stream = self._registry.watch(served, version, namespace, options)
        except (Expired, Timeout) as error:
            return await self._refuse(exchange, error)
        response = OpenStream(headers=stream_headers(exchange, JSON))
        response.enable_chunked_encoding()
        await response.prepare(exchange.request)
        steady = served.convert_async is None
        watcher = Watcher(exchange.request, stream, encode, bookmarks=options.bookmarks, steady=steady)
        response.open(self, watcher, exchange.labels, seconds)
        return response

    async def _refuse(self, exchange: Exchange, error: ApiError) -> StreamResponse:
        """History that is gone, or is yet to come, is reported inside the stream: watch clients look for it there."""
        response = await begin_stream(exchange, JSON)
        await response.write(error_line(error))
        await response.write_eof()
        return response

    def enter(self, watcher: Watcher, labels: Labels) -> None:
        self._open.add(watcher)
        self._metrics.started(labels)
        if self._closing:
            watcher.close()

    def leave(self, watcher: Watcher, labels: Labels) -> None:
        self._open.discard(watcher)
        self._metrics.ended(labels, 200)


class OpenStream(StreamResponse):
    """The answer to a watch: its head is sent, and `run` lasts as long as the watch.

    It is run by the outermost handler: what was needed to get here is freed meanwhile, which with thousands of
    watches is megabytes.
    """

    _watch: tuple[Watches, Watcher, Labels, float]

    def open(self, watches: Watches, watcher: Watcher, labels: Labels, seconds: float) -> None:
        self._watch = (watches, watcher, labels, seconds)

    def end(self) -> None:
        """Ends the watch as its timeout would, without a bookmark."""
        self._watch[1].close()

    async def run(self, request: BaseRequest) -> None:
        watches, watcher, labels, seconds = self._watch
        connection = request.protocol
        assert isinstance(connection, Connection)
        timer = asyncio.get_running_loop().call_later(seconds, watcher.expire)
        connection.on_lost = watcher.lose
        watches.enter(watcher, labels)
        if connection.transport is None:
            watcher.lose()
        try:
            await watcher.run()
        finally:
            timer.cancel()
            connection.on_lost = None
            watches.leave(watcher, labels)
        if request.transport is not None:
            await self.write_eof()


def timeout_of(exchange: Exchange) -> float:
    """`timeoutSeconds`, or at random between 30 and 60 minutes, so that clients don't come back all at once."""
    asked = exchange.query.number("timeoutSeconds")
    if asked is not None and asked > 0:
        return min(float(asked), _MAX_TIMEOUT)
    return MIN_TIMEOUT * (1.0 + random.random())  # noqa: S311 - spreads load, keeps no secret


def stream_headers(exchange: Exchange, content_type: str) -> CIMultiDict[str]:
    headers = CIMultiDict(
        (
            ("Audit-Id", exchange.audit_id),
            ("Cache-Control", "no-cache, private"),
            ("Content-Type", content_type),
            ("Server", "homeport"),  # or else it would be the library with its version
        )
    )
    if exchange.ctx is not None and exchange.ctx.warnings:
        add_warnings(headers, exchange.ctx.warnings)
    return headers


def need_chunks(exchange: Exchange) -> None:
    if exchange.request.version < HttpVersion11:
        raise BadRequest("an answer of unknown length needs HTTP/1.1")


async def begin_stream(exchange: Exchange, content_type: str) -> StreamResponse:
    """Sends the head of an answer that stays open."""
    need_chunks(exchange)
    response = StreamResponse(headers=stream_headers(exchange, content_type))
    response.enable_chunked_encoding()
    await response.prepare(exchange.request)
    return response
