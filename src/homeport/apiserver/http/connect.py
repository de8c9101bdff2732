"""Resources that store nothing: reviews, tokens, evictions, logs, ports. Components answer for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
from aiohttp.web import StreamResponse

from homeport.apiserver.http.connection import Connection
from homeport.apiserver.http.document import parse_options, parse_patch
from homeport.apiserver.http.exchange import ACCEPT, CONTENT_TYPE, Exchange
from homeport.apiserver.http.negotiate import accepted, patch_form
from homeport.apiserver.http.query import write_options
from homeport.apiserver.http.respond import reply, reply_object
from homeport.apiserver.http.stream.upgrade import Upgrades
from homeport.apiserver.http.watch import begin_stream
from homeport.apiserver.metrics import Metrics
from homeport.apiserver.registry import Call, Connector, Forward, Raw
from homeport.apiserver.request import Context
from homeport.apiserver.resource import ServedKind, Version

_WITH_BODY = frozenset(("POST", "PUT", "PATCH", "DELETE"))


class Connectors:
    """`close` ends the streams that are still open."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._open: set[Connection] = set()
        self._upgrades = Upgrades(metrics)

    def close(self) -> None:
        self._upgrades.close()
        for connection in list(self._open):
            if connection.on_lost is not None:
                connection.on_lost()

    async def serve(
        self, exchange: Exchange, ctx: Context, served: ServedKind, version: Version, connector: Connector
    ) -> StreamResponse:
        info, method = exchange.info, exchange.request.method
        options = write_options(exchange.query, "CreateOptions")
        ctx.field_manager, ctx.dry_run = options.field_manager, options.dry_run
        ctx.field_validation = options.field_validation
        body = await self._body(exchange, ctx, method)
        call = Call(ctx, served, version, info.namespace, info.name, method, body, exchange.query)
        answer = await connector(call)
        if isinstance(answer, Raw):
            return await self._raw(exchange, answer)
        if isinstance(answer, Forward):
            return await self._upgrades.serve(exchange, answer)
        exchange.form = accepted(exchange.header(ACCEPT))._replace(kind="")
        return reply_object(exchange, orjson.dumps(answer), 201 if method == "POST" else 200)

    async def _body(self, exchange: Exchange, ctx: Context, method: str) -> Any:
        if method not in _WITH_BODY:
            return None
        body, content_type = await exchange.read(), exchange.header(CONTENT_TYPE)
        if method == "PATCH":
            return await parse_patch(ctx, patch_form(content_type, strategic=True), body)
        return await parse_options(body, content_type)

    async def _raw(self, exchange: Exchange, answer: Raw) -> StreamResponse:
        if isinstance(answer.body, bytes):
            status = 204 if answer.status == 200 and not answer.body else answer.status
            return reply(exchange, answer.body, status, answer.content_type)
        return await self._stream(exchange, answer.body, answer.content_type)

    async def _stream(self, exchange: Exchange, chunks: AsyncIterator[bytes], content_type: str) -> StreamResponse:
        """Until the source ends, or the client leaves, which ends the source."""
        connection = exchange.request.protocol
        assert isinstance(connection, Connection)
        response = await begin_stream(exchange, content_type)
        self._open.add(connection)
        self._metrics.started(exchange.labels)
        try:
            await _copy(chunks, response, connection)
        finally:
            connection.on_lost = None
            self._open.discard(connection)
            self._metrics.ended(exchange.labels, 200)
        if exchange.request.transport is not None:
            await response.write_eof()
        return response


async def _copy(chunks: AsyncIterator[bytes], response: StreamResponse, connection: Connection) -> None:
    source = aiter(chunks)
    try:
        while (chunk := await _next(source, connection)) is not None:
            await response.write(chunk)
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


async def _next(source: AsyncIterator[bytes], connection: Connection) -> bytes | None:
    """The next chunk, or None at the end or when the client went away meanwhile."""
    step = asyncio.ensure_future(anext(source, None))
    gone = False

    def leave() -> None:
        nonlocal gone
        gone = True
        step.cancel()

    connection.on_lost = leave
    if connection.transport is None:
        leave()
    try:
        return await step
    except asyncio.CancelledError:
        if gone:
            return None
        step.cancel()
        raise
