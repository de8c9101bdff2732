"""A page that a probe asks for again and again.

A probe each second with a connection of its own is a TLS handshake each second, on both sides: with hundreds of control
planes in one process nothing else would get done. So a connection is used again for a while, and then replaced: a
program that answers on old connections and accepts no new ones is not healthy.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass

_BODY_LIMIT = 10_240
_LIFE_SECONDS = 30.0


@dataclass(slots=True)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    opened: float

    def close(self) -> None:
        self.writer.close()


class Page:
    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._held: _Connection | None = None

    async def get(self, path: str, headers: dict[str, str]) -> int:
        """The status code. Raises OSError, EOFError or ValueError."""
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        request = "\r\n".join(lines).encode()
        held = self._take()
        if held is not None:
            try:
                return await self._ask(held, request)
            except (OSError, EOFError):
                pass  # the other side had closed it, which proves nothing
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        return await self._ask(_Connection(reader, writer, asyncio.get_running_loop().time()), request)

    def close(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None

    def _take(self) -> _Connection | None:
        held, self._held = self._held, None
        if held is None:
            return None
        old = asyncio.get_running_loop().time() - held.opened >= _LIFE_SECONDS
        if old or held.reader.at_eof() or held.writer.is_closing():
            held.close()
            return None
        return held

    async def _ask(self, connection: _Connection, request: bytes) -> int:
        kept = False
        try:
            connection.writer.write(request)
            try:
                head = await connection.reader.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError as error:
                raise ValueError("the header of the answer is too long") from error
            first, *lines = head.decode("latin-1").split("\r\n")
            _, code, *_ = first.split()
            length = _length(first, lines)
            if 0 <= length <= _BODY_LIMIT:
                await connection.reader.readexactly(length)
                self._held, kept = connection, True
            return int(code)
        finally:
            if not kept:
                connection.close()


def _length(first: str, lines: list[str]) -> int:
    """Of the body; -1: the connection can't be used again."""
    found = {name.strip().lower(): value.strip().lower() for name, _, value in (line.partition(":") for line in lines)}
    if not first.startswith("HTTP/1.1") or "close" in found.get("connection", "") or "transfer-encoding" in found:
        return -1
    text = found.get("content-length", "")
    return int(text) if text.isdigit() else -1
