"""A gRPC server on one HTTP/2 connection: unary calls, which are all that is needed here."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from homeport.machinery.hpack import Decoder, HpackError, encode

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
UNIMPLEMENTED = 12
INTERNAL = 13

_DATA, _HEADERS, _RST, _SETTINGS, _PING, _GOAWAY, _WINDOW, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 1, 1, 4, 8, 32
_FRAME_BYTES = 16_384
_MESSAGE_BYTES = 4 * 1024 * 1024

Call = Callable[[bytes], bytes]


class Status(Exception):
    """A call that ends in an error, with its gRPC code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Broken(Exception):
    """The peer does not speak HTTP/2."""


@dataclass(slots=True)
class _Stream:
    fields: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


class GrpcConnection:
    """`calls` by path, such as /etcdserverpb.Cluster/MemberList."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, calls: dict[str, Call]) -> None:
        self._reader = reader
        self._writer = writer
        self._calls = calls
        self._decoder = Decoder()
        self._streams: dict[int, _Stream] = {}
        self._block: tuple[int, int, bytearray] | None = None  # stream, flags and headers that are not complete

    async def run(self) -> None:
        """Until the peer leaves."""
        try:
            if await self._reader.readexactly(len(PREFACE)) != PREFACE:
                return
            self._send(_SETTINGS, 0, 0, b"")
            while True:
                await self._frame()
                await self._writer.drain()
        except (_Broken, HpackError, ValueError):
            self._send(_GOAWAY, 0, 0, struct.pack(">II", 0, 1))
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def _frame(self) -> None:
        head = await self._reader.readexactly(9)
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        if size > _FRAME_BYTES:
            raise _Broken("a frame is too large")
        payload = await self._reader.readexactly(size)
        if kind == _HEADERS:
            self._block = (stream, flags, bytearray(_unpadded(payload, flags, has_priority=bool(flags & _PRIORITY))))
            self._headers(flags)
        elif kind == _CONTINUATION and self._block is not None and self._block[0] == stream:
            self._block[2].extend(payload)
            self._headers(flags)
        elif kind == _DATA:
            self._data(stream, flags, payload)
        elif kind == _SETTINGS and not flags & _ACK:
            self._send(_SETTINGS, _ACK, 0, b"")
        elif kind == _PING and not flags & _ACK:
            self._send(_PING, _ACK, 0, payload)
        elif kind == _RST:
            self._streams.pop(stream, None)
        elif kind == _GOAWAY:
            raise asyncio.IncompleteReadError(b"", None)

    def _headers(self, flags: int) -> None:
        assert self._block is not None
        if not flags & _END_HEADERS:
            return
        stream, first, block = self._block
        self._block = None
        fields = dict(self._decoder.decode(bytes(block)))
        self._streams.setdefault(stream, _Stream()).fields.update(fields)
        if first & _END_STREAM:
            self._answer(stream)

    def _data(self, stream: int, flags: int, payload: bytes) -> None:
        if payload:  # what was read may be sent again
            for where in (0, stream):
                self._send(_WINDOW, 0, where, struct.pack(">I", len(payload)))
        known = self._streams.get(stream)
        if known is None:
            return
        known.body.extend(_unpadded(payload, flags, has_priority=False))
        if len(known.body) > _MESSAGE_BYTES:
            raise _Broken("a message is too large")
        if flags & _END_STREAM:
            self._answer(stream)

    def _answer(self, stream: int) -> None:
        asked = self._streams.pop(stream)
        path = asked.fields.get(":path", "")
        opening = [(":status", "200"), ("content-type", "application/grpc")]
        try:
            call = self._calls.get(path)
            if call is None:
                raise Status(UNIMPLEMENTED, f"unknown method {path}")
            reply = call(_message(bytes(asked.body)))
        except (Status, ValueError) as error:
            code = error.code if isinstance(error, Status) else INTERNAL
            trailer = [("grpc-status", str(code)), ("grpc-message", quote(str(error), safe=" :;,.-_/()'\""))]
            self._send(_HEADERS, _END_HEADERS | _END_STREAM, stream, encode([*opening, *trailer]))
            return
        self._send(_HEADERS, _END_HEADERS, stream, encode(opening))
        framed = struct.pack(">BI", 0, len(reply)) + reply
        for at in range(0, len(framed), _FRAME_BYTES):
            self._send(_DATA, 0, stream, framed[at : at + _FRAME_BYTES])
        self._send(_HEADERS, _END_HEADERS | _END_STREAM, stream, encode([("grpc-status", "0")]))

    def _send(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self._writer.write(len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload)


def _unpadded(payload: bytes, flags: int, *, has_priority: bool) -> bytes:
    start, end = 0, len(payload)
    if flags & _PADDED:
        start, end = 1, end - payload[0]
    if has_priority:
        start += 5
    if start > end:
        raise _Broken("more padding than payload")
    return payload[start:end]


def _message(body: bytes) -> bytes:
    if len(body) < 5 or body[0]:
        raise Status(INTERNAL, "a message is missing or compressed")
    size = int.from_bytes(body[1:5], "big")
    if len(body) != 5 + size:
        raise Status(INTERNAL, "the message is cut short")
    return body[5:]
