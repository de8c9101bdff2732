"""A gRPC server on one HTTP/2 connection: unary calls, which are all that is needed here."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from homeport.machinery import http2
from homeport.machinery.hpack import Decoder, HpackError, encode

UNIMPLEMENTED = 12
INTERNAL = 13

Call = Callable[[bytes], bytes]


class Status(Exception):
    """A call that ends in an error, with its gRPC code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class _Stream:
    fields: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


class GrpcConnection:
    """`calls` by path, such as /etcdserverpb.Cluster/MemberList."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        calls: dict[str, Call],
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        """`settled` is awaited after each call and before its answer."""
        self._reader = reader
        self._writer = writer
        self._calls = calls
        self._settled = settled
        self._decoder = Decoder()
        self._streams: dict[int, _Stream] = {}
        self._block: tuple[int, int, bytearray] | None = None  # stream, flags and headers that are not complete

    async def run(self) -> None:
        """Until the peer leaves. Whoever is cancelled does not wait for a peer that may not read."""
        try:
            await self._answer_calls()
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
        except BaseException:
            self._writer.transport.abort()
            raise

    async def _answer_calls(self) -> None:
        try:
            if await self._reader.readexactly(len(http2.PREFACE)) != http2.PREFACE:
                return
            self._send(http2.SETTINGS, 0, 0, b"")
            while True:
                await self._frame()
                await self._writer.drain()
        except (http2.FrameError, HpackError, ValueError):
            self._send(http2.GOAWAY, 0, 0, struct.pack(">II", 0, 1))
        except (asyncio.IncompleteReadError, OSError):
            pass

    async def _frame(self) -> None:
        head = await self._reader.readexactly(http2.HEAD_BYTES)
        size, kind, flags, stream = http2.parse_head(head)
        payload = await self._reader.readexactly(size)
        if kind == http2.HEADERS:
            self._block = (stream, flags, bytearray(http2.unpadded(payload, flags, headers=True)))
            await self._headers(flags)
        elif kind == http2.CONTINUATION and self._block is not None and self._block[0] == stream:
            self._block[2].extend(payload)
            await self._headers(flags)
        elif kind == http2.DATA:
            await self._data(stream, flags, payload)
        elif kind == http2.SETTINGS and not flags & http2.ACK:
            self._send(http2.SETTINGS, http2.ACK, 0, b"")
        elif kind == http2.PING and not flags & http2.ACK:
            self._send(http2.PING, http2.ACK, 0, payload)
        elif kind == http2.RST:
            self._streams.pop(stream, None)
        elif kind == http2.GOAWAY:
            raise asyncio.IncompleteReadError(b"", None)

    async def _headers(self, flags: int) -> None:
        assert self._block is not None
        if not flags & http2.END_HEADERS:
            return
        stream, first, block = self._block
        self._block = None
        fields = dict(self._decoder.decode(bytes(block)))
        self._streams.setdefault(stream, _Stream()).fields.update(fields)
        if first & http2.END_STREAM:
            await self._answer(stream)

    async def _data(self, stream: int, flags: int, payload: bytes) -> None:
        if payload:  # what was read may be sent again
            for where in (0, stream):
                self._send(http2.WINDOW, 0, where, struct.pack(">I", len(payload)))
        known = self._streams.get(stream)
        if known is None:
            return
        known.body.extend(http2.unpadded(payload, flags, headers=False))
        if len(known.body) > http2.MESSAGE_BYTES:
            raise http2.FrameError("a message is too large")
        if flags & http2.END_STREAM:
            await self._answer(stream)

    async def _answer(self, stream: int) -> None:
        asked = self._streams.pop(stream)
        path = asked.fields.get(":path", "")
        opening = [(":status", "200"), ("content-type", "application/grpc")]
        try:
            call = self._calls.get(path)
            if call is None:
                raise Status(UNIMPLEMENTED, f"unknown method {path}")
            reply = call(_message(bytes(asked.body)))
            await self._settled()
        except (Status, ValueError) as error:
            code = error.code if isinstance(error, Status) else INTERNAL
            trailer = [("grpc-status", str(code)), ("grpc-message", quote(str(error), safe=" :;,.-_/()'\""))]
            self._send(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, stream, encode([*opening, *trailer]))
            return
        self._send(http2.HEADERS, http2.END_HEADERS, stream, encode(opening))
        framed = struct.pack(">BI", 0, len(reply)) + reply
        for position in range(0, len(framed), http2.FRAME_BYTES):
            self._send(http2.DATA, 0, stream, framed[position : position + http2.FRAME_BYTES])
        self._send(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, stream, encode([("grpc-status", "0")]))

    def _send(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self._writer.write(http2.frame(kind, flags, stream, payload))


def _message(body: bytes) -> bytes:
    if len(body) < 5 or body[0]:
        raise Status(INTERNAL, "a message is missing or compressed")
    size = int.from_bytes(body[1:5], "big")
    if len(body) != 5 + size:
        raise Status(INTERNAL, "the message is cut short")
    return body[5:]
