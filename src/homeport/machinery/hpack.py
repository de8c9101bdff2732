"""HPACK: header fields of HTTP/2, read in every form and written in the plainest one."""

from __future__ import annotations

# How many bits each byte's Huffman code has, in base 36. The codes follow: they are handed out in order of length.
_LENGTHS = (
    "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6cad67777777777777777777777878djde6"
    "f56565666577666567655677777fbedskmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn"
    "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq"
)
_STATIC = (
    ":authority :method=GET :method=POST :path=/ :path=/index.html :scheme=http :scheme=https :status=200 "
    ":status=204 :status=206 :status=304 :status=400 :status=404 :status=500 accept-charset "
    "accept-encoding=gzip,~deflate accept-language accept-ranges accept access-control-allow-origin age "
    "allow authorization cache-control content-disposition content-encoding content-language content-length "
    "content-location content-range content-type cookie date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified link location max-forwards "
    "proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie "
    "strict-transport-security transfer-encoding user-agent vary via www-authenticate "
)
_STATIC_TABLE = tuple(
    (name.replace("~", " "), value.replace("~", " "))
    for name, _, value in (each.partition("=") for each in _STATIC.split())
)
_END = 256
_TABLE_BYTES = 4096
_ENTRY_BYTES = 32


class HpackError(ValueError):
    """The data is not a valid header block."""


def _codes() -> dict[tuple[int, int], int]:
    """(bits, code) > byte."""
    found: dict[tuple[int, int], int] = {}
    code = before = 0
    lengths = [int(char, 36) for char in _LENGTHS] + [30]
    for bits, symbol in sorted((bits, symbol) for symbol, bits in enumerate(lengths)):
        code <<= bits - before
        found[bits, code] = symbol
        code += 1
        before = bits
    return found


_CODES = _codes()


def decode_huffman(raw: bytes) -> bytes:
    found = bytearray()
    code = bits = 0
    for byte in raw:
        for shift in range(7, -1, -1):
            code, bits = code << 1 | byte >> shift & 1, bits + 1
            symbol = _CODES.get((bits, code))
            if symbol is not None:
                if symbol == _END:
                    raise HpackError("the end symbol inside a text")
                found.append(symbol)
                code = bits = 0
            elif bits > 30:
                raise HpackError("not a Huffman code")
    if bits > 7 or code != (1 << bits) - 1:
        raise HpackError("a text does not end in padding")
    return bytes(found)


class Decoder:
    """One direction of one connection: blocks refer to what earlier ones said."""

    def __init__(self) -> None:
        self._known: list[tuple[str, str]] = []  # newest first
        self._limit = _TABLE_BYTES

    def decode(self, block: bytes) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        position = 0
        while position < len(block):
            first = block[position]
            if first & 0x80:
                index, position = _integer(block, position, 7)
                found.append(self._at(index))
            elif first & 0x40:
                pair, position = self._literal(block, position, 6)
                self._remember(pair)
                found.append(pair)
            elif first & 0x20:
                self._limit, position = _integer(block, position, 5)
                self._evict()
            else:
                pair, position = self._literal(block, position, 4)
                found.append(pair)
        return found

    def _literal(self, block: bytes, position: int, bits: int) -> tuple[tuple[str, str], int]:
        index, position = _integer(block, position, bits)
        if index:
            name = self._at(index)[0]
        else:
            name, position = _text(block, position)
        value, position = _text(block, position)
        return (name, value), position

    def _at(self, index: int) -> tuple[str, str]:
        if 1 <= index <= len(_STATIC_TABLE):
            return _STATIC_TABLE[index - 1]
        try:
            return self._known[index - len(_STATIC_TABLE) - 1]
        except IndexError as unknown:
            raise HpackError(f"no header field {index}") from unknown

    def _remember(self, pair: tuple[str, str]) -> None:
        self._known.insert(0, pair)
        self._evict()

    def _evict(self) -> None:
        size = sum(len(name) + len(value) + _ENTRY_BYTES for name, value in self._known)
        while self._known and size > self._limit:
            name, value = self._known.pop()
            size -= len(name) + len(value) + _ENTRY_BYTES


def encode(fields: list[tuple[str, str]]) -> bytes:
    """Encodes header fields as literals that the peer need not add to its table."""
    return b"".join(b"\x00" + _encoded(name) + _encoded(value) for name, value in fields)


def _encoded(text: str) -> bytes:
    raw = text.encode("latin-1", "replace")
    size = len(raw)
    if size < 127:
        return bytes((size,)) + raw
    head, size = bytearray((127,)), size - 127
    while size >= 128:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return bytes(head) + raw


def _integer(block: bytes, position: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    try:
        value = block[position] & most
        position += 1
        if value < most:
            return value, position
        shift = 0
        while True:
            byte = block[position]
            position += 1
            value += (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return value, position
            if shift > 28:
                raise HpackError("a number is too large")
    except IndexError as cut:
        raise HpackError("the block is cut short") from cut


def _text(block: bytes, position: int) -> tuple[str, int]:
    packed = position < len(block) and bool(block[position] & 0x80)
    size, position = _integer(block, position, 7)
    raw = block[position : position + size]
    if len(raw) != size:
        raise HpackError("the block is cut short")
    return (decode_huffman(raw) if packed else raw).decode("latin-1"), position + size
