"""Single values of built-in kinds: read, brought into their canonical form, or refused in the decoder's words."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from homeport.machinery.quantity import QuantityError, parse_quantity

_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class DecodeError(Exception):
    """A value that the field's type can't hold. Structs on the way up say where."""

    def __init__(self, value: Any, wanted: str, *, text: str = "", literal: bool = False) -> None:
        super().__init__(text)
        self._text = text
        self._kind = _json_kind(value)
        if literal and self._kind == "number":
            self._kind = f"number {value}"
        self._wanted = wanted
        self._struct = ""
        self._path: list[str] = []

    def within(self, struct: str, field: str) -> DecodeError:
        self._struct = self._struct or struct.rsplit(".", 1)[-1]
        self._path.append(field)
        return self

    @property
    def field(self) -> str:
        return ".".join(reversed(self._path))

    def __str__(self) -> str:
        if self._text:
            return self._text
        where = f"struct field {self._struct}.{self.field}" if self._path else "value"
        return f"json: cannot unmarshal {self._kind} into Go {where} of type {self._wanted}"


def _json_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def text(value: object) -> str:
    if type(value) is str:
        return value
    raise DecodeError(value, "string")


def named_text(name: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if type(value) is str:
            return value
        raise DecodeError(value, name)

    return read


def boolean(value: object) -> bool:
    if type(value) is bool:
        return value
    raise DecodeError(value, "bool")


def integer(name: str, bits: int) -> Callable[[object], int]:
    limit = 1 << (bits - 1)

    def read(value: object) -> int:
        if type(value) is int and -limit <= value < limit:
            return value
        raise DecodeError(value, name, literal=True)

    return read


def number(value: object) -> int | float:
    if type(value) is int or type(value) is float:
        return value
    raise DecodeError(value, "float64")


def int_or_string(value: object) -> int | str:
    if type(value) is str:
        return value
    return _int32(value)


_int32 = integer("int32", 32)


def quantity(value: object) -> str:
    if type(value) not in (str, int, float):
        raise DecodeError(value, "", text=_QUANTITY)
    try:
        return _canonical(value) if type(value) is str else str(parse_quantity(value))
    except QuantityError:
        raise DecodeError(value, "", text=_QUANTITY) from None


@lru_cache(512)
def _canonical(value: str) -> str:
    """The same few amounts are asked for again and again."""
    return str(parse_quantity(value))


def base64_text(value: object) -> str:
    if type(value) is not str:
        raise DecodeError(value, "[]uint8")
    plain = value.replace("\n", "").replace("\r", "") if "\n" in value or "\r" in value else value
    try:
        base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError):
        raise DecodeError(value, "", text=f"illegal base64 data at input byte {_illegal_byte(value)}") from None
    return plain


_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _illegal_byte(value: str) -> int:
    """The offset that Go's decoder names: of a foreign byte, or of the group of four that is not complete."""
    group = 0
    raw = value.encode()
    for i, byte in enumerate(raw):
        if byte in b"\r\n":
            continue
        if byte in _ALPHABET:
            group = (group + 1) % 4
            continue
        if byte != ord("=") or group < 2:
            return i
        rest = raw[i + 1 :].translate(None, b"\r\n")
        if group == 2 and rest[:1] != b"=":
            return i + 1 if rest else len(raw)
        return i + (2 if group == 2 else 1)
    return len(raw) - group


# Go's layouts, piece by piece: what is matched, and what a message calls it.
_DATE = ((r"\d{4}", "2006"), ("-", "-"), (r"\d\d", "01"), ("-", "-"), (r"\d\d", "02"), ("T", "T"))
_CLOCK = ((r"\d\d", "15"), (":", ":"), (r"\d\d", "04"), (":", ":"), (r"\d\d(?:[.,]\d+)?", "05"))
_EXACT_CLOCK = (*_CLOCK[:-1], (r"\d\d", "05"), (r"\.\d{6}(?!\d)", ".000000"))
_ZONE = ((r"Z|[+-]\d\d:\d\d", "Z07:00"),)
_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").fullmatch
_MICROS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z").fullmatch


def time(value: object) -> str:
    if _plain(value, _SECONDS):
        return str(value)
    parsed = _parse(value, "2006-01-02T15:04:05Z07:00", (*_DATE, *_CLOCK, *_ZONE))
    return parsed.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def microtime(value: object) -> str:
    if _plain(value, _MICROS):
        return str(value)
    parsed = _parse(value, "2006-01-02T15:04:05.000000Z07:00", (*_DATE, *_EXACT_CLOCK, *_ZONE))
    return parsed.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _plain(value: Any, form: Callable[[str], object]) -> bool:
    """A time as we would write it: nothing to bring into form, nothing to explain."""
    if type(value) is not str or not form(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _parse(value: Any, layout: str, pieces: tuple[tuple[str, str], ...]) -> datetime:
    if type(value) is not str:
        raise DecodeError(value, "string")
    rest = value
    for pattern, name in pieces:
        found = re.match(pattern, rest)
        if found is None:
            raise DecodeError(
                value, "", text=f'parsing time "{value}" as "{layout}": cannot parse "{rest}" as "{name}"'
            )
        rest = rest[found.end() :]
    if rest:
        raise DecodeError(value, "", text=f'parsing time "{value}": extra text: "{rest}"')
    try:
        return datetime.fromisoformat(re.sub(r"([.,]\d{6})\d+", r"\1", value).replace("Z", "+00:00"))
    except ValueError as error:
        part = str(error).split(" ")[0]
        raise DecodeError(value, "", text=f'parsing time "{value}": {part} out of range') from None
