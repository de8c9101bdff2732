"""HTTP over connections of the simulated network, as much of it as stand-ins need: small messages, no streams."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from homeport.runtime.task import Tasks

_HEAD_BYTES = 64 * 1024
_BODY_BYTES = 16 * 1024 * 1024
_IDLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Message:
    """A request or a response: `start` is its first line."""

    start: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def path(self) -> str:
        return self.start.split(" ")[1].partition("?")[0]

    @property
    def status(self) -> int:
        return int(self.start.split(" ")[1])


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[Message], Awaitable[tuple[int, bytes] | Reply]]


class HttpsService:
    """A `Service` of the network: takes connections over and answers requests on them. `close` it."""

    def __init__(self, tls: ssl.SSLContext, answer: Answer) -> None:
        self._tls = tls
        self._answer = answer
        self._tasks = Tasks()

    async def accept(self, sock: socket.socket, source: str) -> None:
        self._tasks.start(self._serve(sock), f"connection of {source}")

    async def close(self) -> None:
        await self._tasks.close()

    async def _serve(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_HEAD_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock, ssl=self._tls)
        except (OSError, ssl.SSLError):
            sock.close()
            return
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError, TimeoutError):
                while True:
                    async with asyncio.timeout(_IDLE_SECONDS):
                        request = await read_message(reader)
                    found = await self._answer(request)
                    reply = found if isinstance(found, Reply) else Reply(*found)
                    start = f"HTTP/1.1 {reply.status} {'OK' if reply.status < 400 else 'Error'}"
                    whole = _render(start, reply.headers, reply.body)
                    writer.write(whole[: len(whole) - len(reply.body)] if request.start.startswith("HEAD ") else whole)
                    await writer.drain()
        finally:
            transport.abort()


async def ask(
    sock: socket.socket,
    tls: ssl.SSLContext,
    host: str,
    start: str,
    headers: Mapping[str, str],
    body: bytes = b"",
    seconds: float = 30.0,
) -> Message:
    """One request over a new connection. Raises OSError, ValueError."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(sock=sock, ssl=tls, server_hostname=host, limit=_HEAD_BYTES)
            try:
                writer.write(_render(f"{start} HTTP/1.1", {"host": host, "connection": "close", **headers}, body))
                await writer.drain()
                return await read_message(reader)
            finally:
                writer.transport.abort()
    except (ssl.SSLError, asyncio.IncompleteReadError) as error:
        raise ConnectionError(str(error)) from error
    finally:
        sock.close()


def _render(start: str, headers: Mapping[str, str], body: bytes) -> bytes:
    named = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"{start}\r\n{head}\r\n".encode() + body


async def read_message(reader: asyncio.StreamReader) -> Message:
    """Raises asyncio.IncompleteReadError at the end of the connection, ValueError for what is not HTTP."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise ValueError("the head of a message is too large") from error
    lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in filter(None, lines[1:]):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if len(lines[0].split(" ")) < 2:
        raise ValueError(f"not HTTP: {lines[0]!r}")
    return Message(lines[0], headers, await _read_body(reader, headers))


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
            if len(body) > _BODY_BYTES:
                raise ValueError("the body of a message is too large")
        await reader.readline()
        return body
    length = int(headers.get("content-length", "0"))
    if length > _BODY_BYTES:
        raise ValueError("the body of a message is too large")
    return await reader.readexactly(length)
