"""Frames of HTTP/2."""

from __future__ import annotations

import pytest

from homeport.machinery import http2


def test_a_frame_is_read_as_it_was_written() -> None:
    written = http2.frame(http2.DATA, http2.END_STREAM, 7, b"hello")
    size, kind, flags, stream = http2.parse_head(written[: http2.HEAD_BYTES])
    assert (size, kind, flags, stream) == (5, http2.DATA, http2.END_STREAM, 7)
    assert written[http2.HEAD_BYTES :] == b"hello"


def test_the_reserved_bit_of_the_stream_is_ignored() -> None:
    assert http2.parse_head(bytes.fromhex("000000000080000001"))[3] == 1


def test_a_frame_larger_than_agreed_is_refused() -> None:
    with pytest.raises(http2.FrameError, match="16385 bytes"):
        http2.parse_head((http2.FRAME_BYTES + 1).to_bytes(3, "big") + bytes(6))


@pytest.mark.parametrize(
    ("payload", "flags", "headers", "bare"),
    [
        (b"abc", 0, False, b"abc"),
        (b"\x02abc\0\0", http2.PADDED, False, b"abc"),
        (b"\0\0\0\0\0abc", http2.PRIORITY, True, b"abc"),
        (b"\x01\0\0\0\0\0abc\0", http2.PADDED | http2.PRIORITY, True, b"abc"),
        (b"\0\0\0\0\0abc", http2.PRIORITY, False, b"\0\0\0\0\0abc"),
    ],
)
def test_padding_and_priority_are_removed(payload: bytes, flags: int, headers: bool, bare: bytes) -> None:
    assert http2.unpadded(payload, flags, headers=headers) == bare


def test_more_padding_than_payload_is_refused() -> None:
    with pytest.raises(http2.FrameError, match="more padding"):
        http2.unpadded(b"\x09abc", http2.PADDED, headers=False)
