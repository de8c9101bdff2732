from __future__ import annotations

import struct
import zlib

import pytest

from homeport.machinery.portforward import parse_port
from homeport.machinery.spdy import DICTIONARY, MAX_FRAME, Decoder, Encoder, Frame, SpdyError


def test_the_dictionary_is_that_of_the_standard() -> None:
    assert len(DICTIONARY) == 1423
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2


def test_frames_are_read_as_they_were_written_however_they_are_cut() -> None:
    encoder = Encoder()
    raw = b"".join(
        (
            encoder.stream(1, {"streamType": "error", "port": "2379"}, fin=True),
            encoder.stream(3, {"streamType": "data", "port": "2379"}),
            encoder.data(3, b"x" * 300),
            encoder.data(3, b"", fin=True),
            encoder.reply(3, {}),
            encoder.reset(1, 5),
            encoder.ping(7),
            encoder.goodbye(3),
        )
    )
    expected = [
        Frame(1, 1, True, headers={"streamtype": "error", "port": "2379"}),
        Frame(1, 3, headers={"streamtype": "data", "port": "2379"}),
        Frame(0, 3, data=b"x" * 300),
        Frame(0, 3, True),
        Frame(2, 3),
        Frame(3, 1, status=5),
        Frame(6, 7),
        Frame(7, 3),
    ]
    assert list(Decoder().feed(raw)) == expected
    decoder = Decoder()
    assert [frame for place in range(len(raw)) for frame in decoder.feed(raw[place : place + 1])] == expected


def test_a_frame_of_the_format_is_read() -> None:
    """A SYN_STREAM as the standard draws it: control bit, version 3, type 1, flags, length, stream, priority."""
    pack = zlib.compressobj(zdict=DICTIONARY)
    block = struct.pack(">I", 1) + struct.pack(">I", 4) + b"port" + struct.pack(">I", 2) + b"80"
    packed = pack.compress(block) + pack.flush(zlib.Z_SYNC_FLUSH)
    raw = bytes.fromhex("80030001") + bytes((1,)) + (10 + len(packed)).to_bytes(3, "big")
    raw += bytes.fromhex("00000005 00000000 0000") + packed
    assert list(Decoder().feed(raw)) == [Frame(1, 5, True, headers={"port": "80"})]


def test_settings_and_windows_are_passed_over() -> None:
    settings = bytes.fromhex("80030004 0000000c 00000001 00000007 00010000")
    window = bytes.fromhex("80030009 00000008 00000001 00010000")
    assert list(Decoder().feed(settings + window + Encoder().ping(1))) == [Frame(6, 1)]


def _bomb() -> bytes:
    pack = zlib.compressobj(zdict=DICTIONARY)
    packed = pack.compress(b"\x00" * 10_000_000) + pack.flush(zlib.Z_SYNC_FLUSH)
    return struct.pack(">HHIIIH", 0x8003, 1, 10 + len(packed), 1, 0, 0) + packed


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (bytes.fromhex("80020006 00000004 00000001"), "version 2"),
        (struct.pack(">II", 1, MAX_FRAME + 1), "too large"),
        (bytes.fromhex("80030006 00000002 0001"), "cut short"),
        (bytes.fromhex("80030001 0000000e 00000001 00000000 0000 01020304"), "can't be unpacked"),
        (_bomb(), "larger than"),
    ],
)
def test_an_invalid_spdy_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(SpdyError, match=message):
        list(Decoder().feed(raw))


@pytest.mark.parametrize("block", [struct.pack(">II", 1, 9) + b"port", struct.pack(">I", 3), b"\x00"])
def test_headers_that_are_cut_short_are_refused(block: bytes) -> None:
    pack = zlib.compressobj(zdict=DICTIONARY)
    packed = pack.compress(block) + pack.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(SpdyError, match="cut short"):
        list(Decoder().feed(struct.pack(">HHII", 0x8003, 2, 4 + len(packed), 1) + packed))


def test_ports_are_numbers_of_sixteen_bits() -> None:
    assert (parse_port("1"), parse_port("65535")) == (1, 65535)
    for text in ("", "0", "65536", "-1", "http", "٣", "1e3", "000000001"):
        with pytest.raises(ValueError, match="is not a valid port"):
            parse_port(text)
