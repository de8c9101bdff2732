"""Frames of HTTP/2 (RFC 9113), as far as unary gRPC calls need them. docs/decisions says why there is no library."""

from __future__ import annotations

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 32
HEAD_BYTES = 9
FRAME_BYTES = 16_384  # the largest payload, unless the peers agree on more
MESSAGE_BYTES = 4 * 1024 * 1024  # the largest gRPC message


class FrameError(ConnectionError):
    """The peer does not speak HTTP/2."""


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def parse_head(head: bytes) -> tuple[int, int, int, int]:
    """(bytes of payload, kind, flags, stream) of a frame's first nine bytes."""
    size = int.from_bytes(head[:3], "big")
    if size > FRAME_BYTES:
        raise FrameError(f"a frame of {size} bytes is larger than agreed: the peer does not speak HTTP/2")
    return size, head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF


def unpadded(payload: bytes, flags: int, *, headers: bool) -> bytes:
    """The payload of a DATA or HEADERS frame without padding and, for HEADERS, without its priority."""
    start, end = 0, len(payload)
    if flags & PADDED:
        start, end = 1, end - payload[0]
    if headers and flags & PRIORITY:
        start += 5
    if start > end:
        raise FrameError("a frame has more padding than payload")
    return payload[start:end]
