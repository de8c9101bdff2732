"""Unary gRPC calls on one HTTP/2 connection, one after the other: all that etcd's members are asked."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from urllib.parse import unquote

from homeport.controlplane.kubeadm.etcd.tunnel import Stream
from homeport.machinery.hpack import Decoder, HpackError, encode

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST, _SETTINGS, _PING, _GOAWAY, _WINDOW, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 1, 1, 4, 8, 32
_FRAME_BYTES = 16_384
_MESSAGE_BYTES = 4 * 1024 * 1024
# Answers are small: so much may be sent to us without our saying that we read it.
_WINDOW_BYTES = 2**31 - 1
_FIRST_WINDOW_BYTES = 65_535


class GrpcError(Exception):
    """A call that was answered with an error. `code` is gRPC's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ProtocolError(ConnectionError):
    """The peer does not speak gRPC, or stopped to."""


@dataclass(slots=True)
class _Answer:
    fields: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    block: bytearray = field(default_factory=bytearray)
    ends: bool = False  # the header block that is being read is the last


class Channel:
    def __init__(self, stream: Stream, authority: str) -> None:
        self._stream = stream
        self._authority = authority
        self._decoder = Decoder()
        self._buffer = bytearray()
        self._next = 1
        self._opened = False

    async def call(self, path: str, request: bytes) -> bytes:
        """Raises GrpcError when etcd refuses, ConnectionError when the connection does not hold."""
        number, self._next = self._next, self._next + 2
        fields = [
            (":method", "POST"),
            (":scheme", "https"),
            (":path", path),
            (":authority", self._authority),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("user-agent", "homeport"),
        ]
        body = struct.pack(">BI", 0, len(request)) + request
        opening = b"" if self._opened else _opening()
        self._opened = True
        head = _frame(_HEADERS, _END_HEADERS, number, encode(fields))
        await self._stream.write(opening + head + _frame(_DATA, _END_STREAM, number, body))
        try:
            return _result(await self._answer(number))
        except HpackError as broken:
            raise ProtocolError(f"the answer to {path} can't be read: {broken}") from broken

    async def close(self) -> None:
        await self._stream.close()

    async def _answer(self, number: int) -> _Answer:
        answer = _Answer()
        while True:
            kind, flags, stream, payload = await self._read_frame()
            if kind == _SETTINGS and not flags & _ACK:
                await self._stream.write(_frame(_SETTINGS, _ACK, 0, b""))
            elif kind == _PING and not flags & _ACK:
                await self._stream.write(_frame(_PING, _ACK, 0, payload))
            elif kind == _GOAWAY:
                raise ProtocolError(f"etcd ends the connection (HTTP/2 error {int.from_bytes(payload[4:8], 'big')})")
            elif stream != number:
                continue
            elif kind == _RST:
                raise ProtocolError(f"etcd ends the call (HTTP/2 error {int.from_bytes(payload[:4], 'big')})")
            elif self._take(answer, kind, flags, payload):
                return answer

    def _take(self, answer: _Answer, kind: int, flags: int, payload: bytes) -> bool:
        """True: that was the last of it."""
        if kind == _DATA:
            answer.body.extend(_unpadded(payload, flags, has_priority=False))
            if len(answer.body) > _MESSAGE_BYTES:
                raise ProtocolError("the answer is too large")
            return bool(flags & _END_STREAM)
        if kind == _HEADERS:
            answer.block = bytearray(_unpadded(payload, flags, has_priority=bool(flags & _PRIORITY)))
            answer.ends = bool(flags & _END_STREAM)
        elif kind == _CONTINUATION:
            answer.block.extend(payload)
        else:
            return False
        if not flags & _END_HEADERS:
            return False
        answer.fields.update(self._decoder.decode(bytes(answer.block)))
        return answer.ends

    async def _read_frame(self) -> tuple[int, int, int, bytes]:
        head = await self._exactly(9)
        size = int.from_bytes(head[:3], "big")
        if size > _FRAME_BYTES:
            raise ProtocolError("a frame is larger than was asked for: that is no HTTP/2")
        return head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF, await self._exactly(size)

    async def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            raw = await self._stream.read()
            if not raw:
                raise ProtocolError("the connection was closed before the answer came")
            self._buffer.extend(raw)
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        return found


def _opening() -> bytes:
    settings = struct.pack(">HIHI", 2, 0, 4, _WINDOW_BYTES)  # no push; a window that no answer fills
    more = struct.pack(">I", _WINDOW_BYTES - _FIRST_WINDOW_BYTES)
    return _PREFACE + _frame(_SETTINGS, 0, 0, settings) + _frame(_WINDOW, 0, 0, more)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _unpadded(payload: bytes, flags: int, *, has_priority: bool) -> bytes:
    start, end = 0, len(payload)
    if flags & _PADDED:
        start, end = 1, end - payload[0]
    if has_priority:
        start += 5
    if start > end:
        raise ProtocolError("a frame has more padding than payload")
    return payload[start:end]


def _result(answer: _Answer) -> bytes:
    status = answer.fields.get(":status", "")
    if status != "200":
        raise ProtocolError(f"etcd answered with HTTP status {status or 'none'}")
    code = answer.fields.get("grpc-status", "")
    if code != "0":
        message = unquote(answer.fields.get("grpc-message", "")) or "no message"
        raise GrpcError(int(code) if code.isdigit() else 2, message)
    body = bytes(answer.body)
    if len(body) < 5 or body[0] or len(body) != 5 + int.from_bytes(body[1:5], "big"):
        raise ProtocolError("the answer is cut short or compressed")
    return body[5:]
