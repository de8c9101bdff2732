"""A network between the browser and the plane that can be cut: a proxy, so that the names of hosts stay as they are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit


class Wire:
    """WebSockets come through tunnels (CONNECT); everything else as requests with whole addresses."""

    def __init__(self) -> None:
        self.port = 0
        self.broken = False
        self.tunnels = 0  # open now
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def switches(self) -> list[str]:
        return [f"--proxy-server=http://127.0.0.1:{self.port}", "--proxy-bypass-list=<-loopback>"]

    def cut(self) -> None:
        """Ends all connections without a word, and takes no new ones until `mend`."""
        self.broken = True
        asyncio.run_coroutine_threadsafe(self._abort(), self._loop).result(30)

    def mend(self) -> None:
        self.broken = False

    async def _abort(self) -> None:
        for each in list(self._open):
            each.transport.abort()

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b" ", 2)
            tunnel = method == b"CONNECT"
            parts = urlsplit(f"//{target.decode()}" if tunnel else target.decode())
            if not self.broken and parts.hostname == "127.0.0.1":  # Chromium itself calls its maker
                await self._join(reader, writer, parts.hostname or "", parts.port or 80, b"" if tunnel else head)
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of both is gone
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _join(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, head: bytes
    ) -> None:
        there, back = await asyncio.open_connection(host, port)
        self.tunnels += not head
        try:
            if head:
                back.write(head)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            out, home = asyncio.create_task(_pass(reader, back)), asyncio.create_task(_pass(there, writer))
            await asyncio.wait([out, home], return_when=asyncio.FIRST_COMPLETED)
            if not out.done() and not writer.is_closing():
                # The plane has closed it: its last words must reach the browser, which a reset could overtake.
                writer.write_eof()
                await asyncio.wait([out], timeout=5)
            for each in (out, home):
                each.cancel()
        finally:
            self.tunnels -= not head
            back.transport.abort()

    def start(self) -> None:
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop)
        self._server = starting.result(30)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        self.cut()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass


@contextmanager
def wire() -> Iterator[Wire]:
    made = Wire()
    made.start()
    try:
        yield made
    finally:
        made.stop()
