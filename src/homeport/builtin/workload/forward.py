"""TCP forwarding: a listener of this machine that hands each connection to one of several backends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

_CHUNK = 64 * 1024
_DIAL_SECONDS = 5.0
_BACKLOG = 256
_PAUSE_SECONDS = 0.05

Backend = tuple[str, int]


class Forward:
    """One listening address. `backends` may change at any time; connections that are open stay with theirs."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.backends: tuple[Backend, ...] = ()
        self._turn = 0
        self._listener: socket.socket | None = None
        self._open: dict[asyncio.Task[None], socket.socket] = {}

    async def start(self) -> None:
        """Raises OSError if it can't listen there."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._listener = socket.create_server((self.host, self.port), family=family, backlog=_BACKLOG)
        self._listener.setblocking(False)
        self._listen()

    def _listen(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def _pause(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        loop.call_later(_PAUSE_SECONDS, self._listen)

    async def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self) -> None:
        """Not a server of asyncio: that one loses connections that come while it is closed."""
        while self._listener is not None:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:  # out of descriptors: those that are open have to end first
                self._pause(self._listener)
                return
            sock.setblocking(False)
            # As asyncio does for its own: an answer in several parts would wait for delayed acknowledgements.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = asyncio.create_task(self._serve(sock), name=f"forward {self.host}:{self.port}")
            self._open[task] = sock
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._open.pop(task).close()  # also that of a task that was cancelled before its first step
        if not task.cancelled():
            task.exception()  # resets and the like: the client has seen them

    async def _serve(self, sock: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=sock)
        async with _ending(writer):
            found = await self._dial()
            if found is not None:
                await _relay((reader, writer), found)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """The next backend that answers. None: the client sees a connection that closes, as behind a load balancer."""
        backends = self.backends
        for _ in backends:
            host, port = backends[self._turn % len(backends)]
            self._turn += 1
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_DIAL_SECONDS):
                    return await asyncio.open_connection(host, port)
        return None


_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _relay(near: _Stream, far: _Stream) -> None:
    async with _ending(far[1]), asyncio.TaskGroup() as group:
        group.create_task(_pump(near[0], far[1]))
        group.create_task(_pump(far[0], near[1]))


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await source.read(_CHUNK):
            sink.write(chunk)
            await sink.drain()
    # One half may end before the other.
    with contextlib.suppress(OSError, RuntimeError):
        if sink.can_write_eof():
            sink.write_eof()


@contextlib.asynccontextmanager
async def _ending(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Sends what is left at the end; whoever is cancelled does not wait for a peer that may not read."""
    try:
        yield
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    except BaseException:
        writer.transport.abort()
        raise
