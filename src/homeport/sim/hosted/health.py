"""Small HTTP servers that answer every request with `ok`: what probes of the companions ask."""

from __future__ import annotations

import asyncio
import datetime
import socket
import ssl

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.certificate import Issuer
from homeport.runtime.task import Tasks

_SECONDS = 10.0
_IDLE_SECONDS = 60.0


class HealthPort:
    """`tls` None: plain HTTP."""

    def __init__(self, tls: ssl.SSLContext | None = None, body: bytes = b"ok") -> None:
        self._tls = tls
        self._body = body
        self._tasks = Tasks()

    async def accept(self, sock: socket.socket, source: str) -> None:
        self._tasks.start(self._serve(sock), f"health of a program for {source}")

    async def _serve(self, sock: socket.socket) -> None:
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(_SECONDS):
                reader, writer = await _streams(sock, self._tls)
            while await self._answer(reader, writer):
                pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            sock.close()
        finally:
            if writer is not None:
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the client may ask again."""
        async with asyncio.timeout(_IDLE_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        last = b"connection: close" in head.lower()
        connection = "close" if last else "keep-alive"
        answer = f"HTTP/1.1 200 OK\r\nContent-Length: {len(self._body)}\r\nConnection: {connection}\r\n\r\n"
        writer.write(answer.encode() + self._body)
        await writer.drain()
        return not last


async def _streams(
    sock: socket.socket, tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock, ssl=tls)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def self_signed(now: datetime.datetime) -> ssl.SSLContext:
    """As programs make one for themselves if none is given."""
    key = certs.make_key()
    issued = Issuer(certs.sign_ca(key, now), key).server(["localhost", "127.0.0.1"], now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certs.load_pair(context, issued.pem)
    return context
