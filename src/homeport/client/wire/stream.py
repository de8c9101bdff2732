"""Connections that are no HTTP, dialled directly or through the proxy of `DialOptions`."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from homeport.client.dial import DialOptions
from homeport.client.wire.reason import ProxyFailure, body_text

_CHUNK = 65_536
_HEAD_BYTES = 16_384


class SocketStream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        """b"" at the end."""
        return await self._reader.read(_CHUNK)

    async def write(self, data: bytes) -> None:
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def close(self) -> None:
        await _close(self._writer)


async def dial_tls(
    dial: DialOptions, host: str, port: int, context: ssl.SSLContext, server_hostname: str = ""
) -> SocketStream:
    """Raises OSError, ssl.SSLError among them; the caller limits the time."""
    name = server_hostname or host
    if not dial.proxy:
        reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=name)
        return SocketStream(reader, writer)
    proxy = urlsplit(dial.proxy)
    reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port or 80, limit=_HEAD_BYTES)
    try:
        await _ask(reader, writer, _target(host, port), proxy.username)
        await writer.start_tls(context, server_hostname=name)
    except BaseException:
        await _close(writer)
        raise
    return SocketStream(reader, writer)


async def dial_socket(dial: DialOptions, host: str, port: int) -> socket.socket | None:
    """A connected socket through the proxy, for libraries that dial themselves otherwise; None without a proxy.

    Raises OSError; the caller limits the time.
    """
    if not dial.proxy:
        return None
    proxy, loop = urlsplit(dial.proxy), asyncio.get_running_loop()
    [(family, kind, protocol, _, address), *_] = await loop.getaddrinfo(
        proxy.hostname, proxy.port or 80, type=socket.SOCK_STREAM
    )
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)
    try:
        await loop.sock_connect(sock, address)
        await loop.sock_sendall(sock, _request(_target(host, port), proxy.username))
        head = b""
        while b"\r\n\r\n" not in head:
            # One byte at a time: what follows the head is the server's, and belongs to the caller.
            byte = await loop.sock_recv(sock, 1)
            if not byte or len(head) > _HEAD_BYTES:
                raise ProxyFailure("the proxy closed the connection")
            head += byte
        if (status := _status(head))[1:2] != ["200"]:
            raise _refusal(status, await loop.sock_recv(sock, _HEAD_BYTES))
    except BaseException:
        sock.close()
        raise
    return sock


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str, user: str | None) -> None:
    writer.write(_request(target, user))
    await writer.drain()
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as broken:
        raise ProxyFailure("the proxy closed the connection") from broken
    status = _status(answer)
    if status[1:2] != ["200"]:
        raise _refusal(status, await reader.read(_HEAD_BYTES))


def _refusal(status: Sequence[str], body: bytes) -> ProxyFailure:
    return ProxyFailure(body_text(body) or f"the proxy refused the connection: {' '.join(status[1:])}")


def _target(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _request(target: str, user: str | None) -> bytes:
    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if user:
        credential = base64.b64encode(f"{unquote(user)}:".encode()).decode()
        head += f"Proxy-Authorization: Basic {credential}\r\n"
    return f"{head}\r\n".encode()


def _status(head: bytes) -> list[str]:
    return head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        await writer.wait_closed()
    except OSError:
        return
