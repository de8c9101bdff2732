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
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        kind = key & 7
        value: Value
        if kind == 0:
            value, at = _varint(raw, at)
        elif kind == 2:
            size, at = _varint(raw, at)
            value = raw[at : at + size]
            at += size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value = raw[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {kind}")
        if at > len(raw):
            raise ValueError("the message is cut short")
        found.setdefault(key >> 3, []).append(value)
    return found


def number_of(fields: dict[int, list[Value]], number: int) -> int:
    value = fields.get(number, [0])[-1]
    return value if isinstance(value, int) else 0


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(raw) or shift > 63:
            raise ValueError("the message is cut short")
        byte = raw[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            return value, at
