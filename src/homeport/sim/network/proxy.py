"""A proxy on loopback that serves the book: kubectl and our own clients reach simulated addresses through it.

    proxy-url: http://127.0.0.1:PORT            the outside: a user, the management plane
    proxy-url: http://NAME@127.0.0.1:PORT       as the host NAME of the network would

CONNECT for TLS; plain http:// requests are sent on as they are. TLS is end to end, so that certificates are verified
against the name in the manifest.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import socket
from collections import Counter
from collections.abc import Iterator
from typing import Protocol
from urllib.parse import quote, unquote, urlsplit

from homeport.sim.network.address import split_endpoint
from homeport.sim.network.book import OUTSIDE, Host
from homeport.sim.network.service import connections, relay

_HEAD_BYTES = 64 * 1024
_HEAD_SECONDS = 30.0
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class _Refused(Exception):
    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


class Book(Protocol):
    """What a proxy serves: a network, or a part of one."""

    def host(self, name: str) -> Host | None: ...

    async def locate(self, source: str, host: str, port: int) -> object: ...

    async def hand(self, sock: socket.socket, source: str, host: str, port: int) -> None: ...

    async def connect(self, source: str, host: str, port: int) -> socket.socket: ...


class Proxy:
    """`start` it, give `url` to clients, `close` it."""

    def __init__(self, network: Book) -> None:
        self._network = network
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._heads: set[asyncio.Task[None]] = set()
        self.dialled: Counter[tuple[str, str]] = Counter()  # attempts, by the host that dials and the address
        self.port = 0

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        listener = socket.create_server((host, port), backlog=1024)
        listener.setblocking(False)
        self._listener = listener
        self.port = listener.getsockname()[1]
        self._accepting = asyncio.create_task(self._accept(listener), name="sim proxy")
        return self.url()

    def url(self, source: str = "") -> str:
        """With `source`, whoever dials through it does so from that host of the network."""
        user = f"{quote(source, safe='')}@" if source else ""
        return f"http://{user}127.0.0.1:{self.port}"

    async def close(self) -> None:
        tasks = [*self._heads, *((self._accepting,) if self._accepting else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()

    async def _accept(self, listener: socket.socket) -> None:
        async for sock in connections(listener):
            task = asyncio.create_task(self._serve(sock), name="sim proxy request")
            self._heads.add(task)
            task.add_done_callback(self._heads.discard)

    async def _serve(self, sock: socket.socket) -> None:
        """Until the connection is handed on; from then on it is its service's."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head, rest = await _read_head(sock)
            await self._hand_on(sock, head, rest)
        except _Refused as refused:
            body = f"{refused}\n".encode()
            answer = f"HTTP/1.1 {refused.status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            with contextlib.suppress(OSError):
                await loop.sock_sendall(sock, answer + body)
            sock.close()
        except (OSError, TimeoutError):
            sock.close()
        except BaseException:
            sock.close()
            raise

    async def _hand_on(self, sock: socket.socket, head: bytes, rest: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3:
            raise _Refused("400 Bad Request", "not an HTTP request")
        method, target, _ = words
        source = _source(lines[1:])
        if source != OUTSIDE and self._network.host(source) is None:
            raise _Refused("407 Proxy Authentication Required", f"the network has no host {source!r}")
        try:
            host, port = split_endpoint(target, 443) if method == "CONNECT" else split_endpoint(target, 80)
        except ValueError as broken:
            raise _Refused("400 Bad Request", str(broken)) from broken
        self.dialled[source, f"{host}:{port}"] += 1
        loop = asyncio.get_running_loop()
        if method == "CONNECT" and not rest:
            with _dialling(host, port):
                await self._network.locate(source, host, port)
            await loop.sock_sendall(sock, _ESTABLISHED)
            await self._network.hand(sock, source, host, port)
            return
        with _dialling(host, port):
            near = await self._network.connect(source, host, port)
        if method == "CONNECT":
            await loop.sock_sendall(sock, _ESTABLISHED)
        else:
            rest = _origin_form(lines, target) + rest
        await loop.sock_sendall(near, rest)
        await relay(sock, near)


@contextlib.contextmanager
def _dialling(host: str, port: int) -> Iterator[None]:
    """Errors in the words of programs that dial, such as 'connection refused'."""
    try:
        yield
    except socket.gaierror as unknown:
        raise _Refused("502 Bad Gateway", f"dial tcp: lookup {host}: no such host") from unknown
    except TimeoutError as silent:
        raise _Refused("504 Gateway Timeout", f"dial tcp {host}:{port}: i/o timeout") from silent
    except OSError as error:
        raise _Refused("502 Bad Gateway", f"dial tcp {host}:{port}: {error.strerror or error}") from error


async def _read_head(sock: socket.socket) -> tuple[bytes, bytes]:
    loop = asyncio.get_running_loop()
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = await loop.sock_recv(sock, 8192)
        if not chunk:
            raise ConnectionResetError("the client left")
        received += chunk
        if len(received) > _HEAD_BYTES:
            raise _Refused("431 Request Header Fields Too Large", "the request's head is too large")
    head, _, rest = received.partition(b"\r\n\r\n")
    return head, rest


def _source(headers: list[str]) -> str:
    """Who asks, by the user name of the proxy's URL."""
    for line in headers:
        name, _, value = line.partition(":")
        scheme, _, encoded = value.strip().partition(" ")
        if name.lower() == "proxy-authorization" and scheme.lower() == "basic":
            try:
                return unquote(base64.b64decode(encoded, validate=True).decode().partition(":")[0]) or OUTSIDE
            except (binascii.Error, UnicodeDecodeError) as broken:
                raise _Refused("400 Bad Request", "Proxy-Authorization can't be read") from broken
    return OUTSIDE


def _origin_form(lines: list[str], target: str) -> bytes:
    """The request as the server itself expects it. One request per connection: the next may be for somebody else."""
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    method, _, version = lines[0].split(" ")
    kept = [line for line in lines[1:] if line and not line.lower().startswith(("proxy-", "connection:"))]
    return "\r\n".join([f"{method} {path} {version}", *kept, "Connection: close", "", ""]).encode("latin-1")
