"""Protocol buffers, by hand: for the few messages that are numbers, texts and lists of messages."""

from __future__ import annotations

Value = int | bytes


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def field(number: int, value: int | bool | str | bytes) -> bytes:
    """One field; zero, false and empty texts are left out, as proto3 has it."""
    if isinstance(value, int):
        return varint(number << 3) + varint(int(value)) if value else b""
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw if raw else b""


def nested(number: int, message: bytes) -> bytes:
    """A message within a message, also an empty one."""
    return varint(number << 3 | 2) + varint(len(message)) + message


def parse(raw: bytes) -> dict[int, list[Value]]:
    """Fields by number. Raises ValueError."""
    found: dict[int, list[Value]] = {}
    position = 0
    while position < len(raw):
        key, position = _varint(raw, position)
        kind = key & 7
        value: Value
        if kind == 0:
            value, position = _varint(raw, position)
        elif kind == 2:
            size, position = _varint(raw, position)
            value = raw[position : position + size]
            position += size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value = raw[position : position + size]
            position += size
        else:
            raise ValueError(f"wire type {kind}")
        if position > len(raw):
            raise ValueError("the message is cut short")
        found.setdefault(key >> 3, []).append(value)
    return found


def number_of(fields: dict[int, list[Value]], number: int) -> int:
    value = fields.get(number, [0])[-1]
    return value if isinstance(value, int) else 0


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(raw) or shift > 63:
            raise ValueError("the message is cut short")
        byte = raw[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            return value, position
