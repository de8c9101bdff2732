"""Unary gRPC calls on one HTTP/2 connection, one after the other: all that etcd's members are asked."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from urllib.parse import unquote

from homeport.controlplane.kubeadm.etcd.tunnel import Stream
from homeport.machinery import http2
from homeport.machinery.hpack import Decoder, HpackError, encode

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
        head = http2.frame(http2.HEADERS, http2.END_HEADERS, number, encode(fields))
        await self._stream.write(opening + head + http2.frame(http2.DATA, http2.END_STREAM, number, body))
        try:
            return _result(await self._answer(number))
        except (HpackError, http2.FrameError) as broken:
            raise ProtocolError(f"the response to {path} can't be parsed: {broken}") from broken

    async def close(self) -> None:
        await self._stream.close()

    async def _answer(self, number: int) -> _Answer:
        answer = _Answer()
        while True:
            kind, flags, stream, payload = await self._read_frame()
            if kind == http2.SETTINGS and not flags & http2.ACK:
                await self._stream.write(http2.frame(http2.SETTINGS, http2.ACK, 0, b""))
            elif kind == http2.PING and not flags & http2.ACK:
                await self._stream.write(http2.frame(http2.PING, http2.ACK, 0, payload))
            elif kind == http2.GOAWAY:
                raise ProtocolError(f"etcd closed the connection (HTTP/2 error {int.from_bytes(payload[4:8], 'big')})")
            elif stream != number:
                continue
            elif kind == http2.RST:
                raise ProtocolError(f"etcd cancelled the call (HTTP/2 error {int.from_bytes(payload[:4], 'big')})")
            elif self._take(answer, kind, flags, payload):
                return answer

    def _take(self, answer: _Answer, kind: int, flags: int, payload: bytes) -> bool:
        """True: that was the last of it."""
        if kind == http2.DATA:
            answer.body.extend(http2.unpadded(payload, flags, headers=False))
            if len(answer.body) > http2.MESSAGE_BYTES:
                raise ProtocolError("the response is too large")
            return bool(flags & http2.END_STREAM)
        if kind == http2.HEADERS:
            answer.block = bytearray(http2.unpadded(payload, flags, headers=True))
            answer.ends = bool(flags & http2.END_STREAM)
        elif kind == http2.CONTINUATION:
            answer.block.extend(payload)
        else:
            return False
        if not flags & http2.END_HEADERS:
            return False
        answer.fields.update(self._decoder.decode(bytes(answer.block)))
        return answer.ends

    async def _read_frame(self) -> tuple[int, int, int, bytes]:
        size, kind, flags, stream = http2.parse_head(await self._exactly(http2.HEAD_BYTES))
        return kind, flags, stream, await self._exactly(size)

    async def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            raw = await self._stream.read()
            if not raw:
                raise ProtocolError("the connection was closed before the response arrived")
            self._buffer.extend(raw)
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        return found


def _opening() -> bytes:
    settings = struct.pack(">HIHI", 2, 0, 4, _WINDOW_BYTES)  # no push; a window that no answer fills
    more = struct.pack(">I", _WINDOW_BYTES - _FIRST_WINDOW_BYTES)
    return http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0, settings) + http2.frame(http2.WINDOW, 0, 0, more)


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
        raise ProtocolError("the response is truncated or compressed")
    return body[5:]
