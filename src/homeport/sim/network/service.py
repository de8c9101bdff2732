"""What answers at a port: anything that takes over a connected socket."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from homeport.runtime.task import Tasks

_CHUNK = 64 * 1024


class Service(Protocol):
    async def accept(self, sock: socket.socket, source: str) -> None:
        """Takes over a connection that `source` (a host's name) made. Returns once it is taken over.

        Raises OSError if nobody answers; the socket is then still the caller's to close.
        """


class Loopback:
    """A real listener of this machine, on a loopback address."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._relays = Tasks()

    async def accept(self, sock: socket.socket, source: str) -> None:
        inner = await dial(self.host, self.port)
        self._relays.start(relay(sock, inner), f"relay {source}>{self.host}:{self.port}")


def pair() -> tuple[socket.socket, socket.socket]:
    first, second = socket.socketpair()
    first.setblocking(False)
    second.setblocking(False)
    return first, second


async def connect(hand: Callable[[socket.socket], Awaitable[None]]) -> socket.socket:
    """A new connection whose far end is passed to `hand`."""
    near, far = pair()
    try:
        await hand(far)
    except BaseException:
        near.close()
        far.close()
        raise
    return near


async def connections(listener: socket.socket) -> AsyncIterator[socket.socket]:
    """Those that come to a real listener, without end."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            sock, _ = await loop.sock_accept(listener)
        except OSError:  # out of descriptors: those that are open have to end first
            await asyncio.sleep(0.05)
            continue
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield sock


async def dial(host: str, port: int) -> socket.socket:
    """A connection to a listener of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(made, (host, port))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        made.close()
        raise
    return made


async def relay(a: socket.socket, b: socket.socket) -> None:
    """Carries bytes both ways until both sides have finished, then closes both."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(a, b))
            group.create_task(_pump(b, a))
    finally:
        a.close()
        b.close()


async def _pump(source: socket.socket, sink: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while chunk := await loop.sock_recv(source, _CHUNK):
            await loop.sock_sendall(sink, chunk)
    # One half may end before the other; a broken half ends both.
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
