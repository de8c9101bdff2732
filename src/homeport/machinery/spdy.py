"""SPDY/3.1 frames, written and read: as much of it as streams of bytes need. Knows nothing of connections.

Frames that our peers don't use are read and ignored: settings, windows, priorities. Every header block has to be
unpacked nevertheless, since all of a connection share one compressor.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MAX_FRAME = 4 * 1024 * 1024
MAX_HEADERS = 16 * 1024  # unpacked
_VERSION = 3
_CONTROL = 0x80000000
FIN = 0x01

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY, HEADERS = 1, 2, 3, 6, 7, 8
PROTOCOL_ERROR, REFUSED_STREAM, CANCEL = 1, 3, 5

# The dictionary that SPDY/3 gives to zlib: names and values of HTTP, each behind its length, then pieces of values.
_NAMES = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
)
_WORDS = [*_NAMES.split(), "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin"]
_PIECES = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = b"".join(struct.pack(">I", len(word)) + word.encode() for word in _WORDS) + _PIECES.encode()


class SpdyError(ValueError):
    """The peer does not speak SPDY/3.1, or more of it than is good."""


@dataclass(frozen=True, slots=True)
class Frame:
    """`kind` 0 is data. `number` is the stream's, a ping's own, or the last good stream of a goodbye."""

    kind: int
    number: int
    fin: bool = False
    data: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 0


class Decoder:
    """`feed` what has come; gives the frames that are whole."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._unpack = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Raises SpdyError, after which nothing more can be read."""
        self._buffer += data
        while len(self._buffer) >= 8:
            first, second = struct.unpack_from(">II", self._buffer)
            size = second & 0xFFFFFF
            if size > MAX_FRAME:
                raise SpdyError(f"a frame of {size} bytes is too large: at most {MAX_FRAME} are taken")
            if len(self._buffer) < 8 + size:
                return
            payload = bytes(self._buffer[8 : 8 + size])
            del self._buffer[: 8 + size]
            flags = second >> 24
            if not first & _CONTROL:
                yield Frame(0, first, bool(flags & FIN), payload)
                continue
            if (first >> 16) & 0x7FFF != _VERSION:
                raise SpdyError(f"version {(first >> 16) & 0x7FFF} of SPDY is not spoken here")
            found = self._control(first & 0xFFFF, flags, payload)
            if found is not None:
                yield found

    def _control(self, kind: int, flags: int, payload: bytes) -> Frame | None:
        try:
            if kind in (SYN_STREAM, SYN_REPLY, HEADERS):
                number = struct.unpack_from(">I", payload)[0] & 0x7FFFFFFF
                headers = self._headers(payload[10 if kind == SYN_STREAM else 4 :])
                return Frame(kind, number, bool(flags & FIN), headers=headers)
            if kind in (RST_STREAM, GOAWAY):
                number, status = struct.unpack_from(">II", payload)
                return Frame(kind, number & 0x7FFFFFFF, status=status)
            if kind == PING:
                return Frame(kind, struct.unpack_from(">I", payload)[0])
        except struct.error as error:
            raise SpdyError(f"a control frame of kind {kind} is cut short") from error
        return None

    def _headers(self, packed: bytes) -> dict[str, str]:
        try:
            block = self._unpack.decompress(packed, MAX_HEADERS + 1)
        except zlib.error as error:
            raise SpdyError(f"the headers can't be unpacked: {error}") from error
        if len(block) > MAX_HEADERS:
            raise SpdyError(f"the headers are larger than {MAX_HEADERS} bytes")
        found, place = {}, 4
        (count,) = struct.unpack_from(">I", block)
        for _ in range(count):
            name, place = _text(block, place)
            found[name.lower()], place = _text(block, place)
        return found


def _text(block: bytes, place: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">I", block, place)
    end = place + 4 + size
    if end > len(block):
        raise SpdyError("a header is cut short")
    return block[place + 4 : end].decode(errors="replace"), end


class Encoder:
    """Frames to send; they must be sent in the order in which they were made."""

    def __init__(self) -> None:
        self._pack = zlib.compressobj(zdict=DICTIONARY)

    def data(self, stream: int, data: bytes, *, fin: bool = False) -> bytes:
        return struct.pack(">II", stream, (FIN << 24 if fin else 0) | len(data)) + data

    def stream(self, stream: int, headers: Mapping[str, str], *, fin: bool = False) -> bytes:
        return _control(SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + self._headers(headers), FIN if fin else 0)

    def reply(self, stream: int, headers: Mapping[str, str]) -> bytes:
        return _control(SYN_REPLY, struct.pack(">I", stream) + self._headers(headers))

    def reset(self, stream: int, status: int) -> bytes:
        return _control(RST_STREAM, struct.pack(">II", stream, status))

    def ping(self, number: int) -> bytes:
        return _control(PING, struct.pack(">I", number))

    def goodbye(self, last: int, status: int = 0) -> bytes:
        return _control(GOAWAY, struct.pack(">II", last, status))

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        parts = [struct.pack(">I", len(headers))]
        for pair in headers.items():
            for text in (pair[0].lower().encode(), pair[1].encode()):
                parts += (struct.pack(">I", len(text)), text)
        return self._pack.compress(b"".join(parts)) + self._pack.flush(zlib.Z_SYNC_FLUSH)


def _control(kind: int, payload: bytes, flags: int = 0) -> bytes:
    return struct.pack(">HHI", 0x8000 | _VERSION, kind, flags << 24 | len(payload)) + payload
