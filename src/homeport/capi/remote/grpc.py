"""Unary gRPC calls on one HTTP/2 connection, one after the other: all that etcd and Talos are asked."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from urllib.parse import unquote

from homeport.capi.remote.tunnel import Stream
from homeport.machinery import http2
from homeport.machinery.hpack import Decoder, HpackError, encode

# Answers are small: so much may be sent to us without our saying that we read it.
_WINDOW_BYTES = 2**31 - 1
_FIRST_WINDOW_BYTES = 65_535
_INITIAL_WINDOW = 4  # the setting


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
    room: int = 0  # bytes of the request that the peer still takes


class Channel:
    def __init__(self, stream: Stream, authority: str, *, max_bytes: int = http2.MESSAGE_BYTES) -> None:
        self._stream = stream
        self._authority = authority
        self._max_bytes = max_bytes  # of one response
        self._decoder = Decoder()
        self._buffer = bytearray()
        self._next = 1
        self._opened = False
        # What may still be sent, as the peer allows it: on the connection, and on each new stream.
        self._room = _FIRST_WINDOW_BYTES
        self._stream_room = _FIRST_WINDOW_BYTES

    async def call(self, path: str, request: bytes) -> bytes:
        """Raises GrpcError when the server refuses, ConnectionError when the connection does not hold."""
        messages = await self.collect(path, request)
        if len(messages) != 1:
            raise ProtocolError(f"the response to {path} has {len(messages)} messages instead of one")
        return messages[0]

    async def collect(self, path: str, request: bytes) -> list[bytes]:
        """All messages of a call that streams its answer. Raises what `call` does."""
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
        answer = _Answer(room=self._stream_room)
        try:
            if not await self._send(answer, number, opening + head, body):
                await self._read_answer(answer, number)
            return _result(answer)
        except (HpackError, http2.FrameError) as broken:
            raise ProtocolError(f"the response to {path} can't be parsed: {broken}") from broken

    async def _send(self, answer: _Answer, number: int, head: bytes, body: bytes) -> bool:
        """Sends as much as the peer has room for, and waits for more room. True: it answered before it had read all."""
        pending, sent = head, 0
        while sent < len(body):
            size = min(len(body) - sent, http2.FRAME_BYTES, self._room, answer.room)
            if size <= 0:
                await self._stream.write(pending)
                pending = b""
                if await self._read_one(answer, number):
                    return True
                continue
            last = http2.END_STREAM if sent + size == len(body) else 0
            pending += http2.frame(http2.DATA, last, number, body[sent : sent + size])
            sent, self._room, answer.room = sent + size, self._room - size, answer.room - size
        await self._stream.write(pending)
        return False

    async def close(self) -> None:
        await self._stream.close()

    async def _read_answer(self, answer: _Answer, number: int) -> None:
        while not await self._read_one(answer, number):
            pass

    async def _read_one(self, answer: _Answer, number: int) -> bool:
        """One frame. True: that was the last of the answer."""
        kind, flags, stream, payload = await self._read_frame()
        if kind == http2.SETTINGS:
            if not flags & http2.ACK:
                self._agree(answer, payload)
                await self._stream.write(http2.frame(http2.SETTINGS, http2.ACK, 0, b""))
        elif kind == http2.PING:
            if not flags & http2.ACK:
                await self._stream.write(http2.frame(http2.PING, http2.ACK, 0, payload))
        elif kind == http2.GOAWAY:
            code = int.from_bytes(payload[4:8], "big")
            raise ProtocolError(f"the server closed the connection (HTTP/2 error {code})")
        elif kind == http2.WINDOW:
            more = int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
            if stream == 0:
                self._room += more
            elif stream == number:
                answer.room += more
        elif stream != number:
            return False
        elif kind == http2.RST:
            raise ProtocolError(f"the server cancelled the call (HTTP/2 error {int.from_bytes(payload[:4], 'big')})")
        else:
            return self._take(answer, kind, flags, payload)
        return False

    def _agree(self, answer: _Answer, payload: bytes) -> None:
        """The peer's settings: how much it takes on a stream before it says that it has read it."""
        for at in range(0, len(payload) - 5, 6):
            if int.from_bytes(payload[at : at + 2], "big") == _INITIAL_WINDOW:
                size = int.from_bytes(payload[at + 2 : at + 6], "big")
                answer.room += size - self._stream_room
                self._stream_room = size

    def _take(self, answer: _Answer, kind: int, flags: int, payload: bytes) -> bool:
        """True: that was the last of it."""
        if kind == http2.DATA:
            answer.body.extend(http2.unpadded(payload, flags, headers=False))
            if len(answer.body) > self._max_bytes:
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


def _result(answer: _Answer) -> list[bytes]:
    status = answer.fields.get(":status", "")
    if status != "200":
        raise ProtocolError(f"the server answered with HTTP status {status or 'none'}")
    code = answer.fields.get("grpc-status", "")
    if code != "0":
        message = unquote(answer.fields.get("grpc-message", "")) or "no message"
        raise GrpcError(int(code) if code.isdigit() else 2, message)
    body, found, position = bytes(answer.body), [], 0
    while position < len(body):
        end = position + 5 + int.from_bytes(body[position + 1 : position + 5], "big")
        if len(body) < position + 5 or body[position] or len(body) < end:
            raise ProtocolError("the response is truncated or compressed")
        found.append(body[position + 5 : end])
        position = end
    return found
