"""A server of aiohttp over TLS, for tests, that leaves no connection behind."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def tls_peer(answer: Answer, context: ssl.SSLContext, patience: float = 1.0) -> AsyncIterator[int]:
    """Its port on 127.0.0.1."""
    transports: set[asyncio.Transport] = set()

    async def noted(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        transports.add(request.transport)
        return await answer(request)

    runner = web.ServerRunner(web.Server(noted), shutdown_timeout=patience)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
        # aiohttp forgets a connection while the goodbyes of TLS go on; the loop may end before they do.
        for transport in transports:
            transport.abort()
