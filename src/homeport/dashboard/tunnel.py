"""A port of this machine that leads to the dashboard of an installation, through a port-forward of the API server.

TLS ends here: the way to the Pod is encrypted, and the certificate is checked, but the browser needs to trust no CA.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable

import structlog

from homeport.app.kubernetes.dashboard.place import SERVER_NAME
from homeport.capi.remote.tunnel import Stream, Tunnel
from homeport.client.errors import ApiError
from homeport.client.wire.reason import socket_reason
from homeport.runtime.task import cancel

log = structlog.get_logger(__name__)

_BYTES = 65536
Connect = Callable[[], Awaitable[Stream]]


def context_of(ca: str) -> ssl.SSLContext:
    """Trusts `ca` (PEM) alone. Raises ssl.SSLError."""
    made = ssl.create_default_context(cadata=ca)
    made.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    return made


class LocalPort:
    """`connect` opens a connection to the Pod; each connection of a browser gets one of its own."""

    def __init__(self, connect: Connect, ca: str) -> None:
        self._connect = connect
        self._context = context_of(ca)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> int:
        """Gives the port. Raises OSError if it is taken."""
        self._server = await asyncio.start_server(self._serve, host, port)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            await cancel(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            tunnel = Tunnel(await self._connect(), self._context, SERVER_NAME)
            await self._carry(tunnel, reader, writer)
        except (ApiError, OSError) as error:  # ssl.SSLError is one, too
            log.warning("the dashboard can't be reached", error=_why(error))
        finally:
            self._open.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _carry(self, tunnel: Tunnel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await tunnel.open()
            ways = [asyncio.create_task(_up(tunnel, reader)), asyncio.create_task(_down(tunnel, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            await tunnel.close()


async def _up(tunnel: Tunnel, reader: asyncio.StreamReader) -> None:
    while data := await reader.read(_BYTES):
        await tunnel.write(data)


async def _down(tunnel: Tunnel, writer: asyncio.StreamWriter) -> None:
    while data := await tunnel.read():
        writer.write(data)
        await writer.drain()


def _why(error: ApiError | OSError) -> str:
    return error.message if isinstance(error, ApiError) else socket_reason(error)
