"""Why a value is refused, in the words of Kubernetes' field errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

REQUIRED: Final = "FieldValueRequired"
DUPLICATE: Final = "FieldValueDuplicate"
INVALID: Final = "FieldValueInvalid"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
FORBIDDEN: Final = "FieldValueForbidden"
TOO_LONG: Final = "FieldValueTooLong"
TOO_MANY: Final = "FieldValueTooMany"
TYPE_INVALID: Final = "FieldValueTypeInvalid"

# How the server names a place that it can't tell: Go's print of a nil path.
NOWHERE: Final = "<nil>"


class Violation(NamedTuple):
    """One refused value. The three fields and their order are those of a cause in a Status."""

    reason: str
    message: str
    field: str = ""


def required(field: str, detail: str = "") -> Violation:
    return Violation(REQUIRED, f"Required value: {detail}" if detail else "Required value", field)


def forbidden(field: str, detail: str) -> Violation:
    return Violation(FORBIDDEN, f"Forbidden: {detail}", field)


def invalid(field: str, value: object, detail: str) -> Violation:
    return Violation(INVALID, f"Invalid value: {show(value)}: {detail}", field)


def type_invalid(field: str, value: object, detail: str) -> Violation:
    return Violation(TYPE_INVALID, f"Invalid value: {show(value)}: {detail}", field)


def not_supported(field: str, value: object, supported: Iterable[Any]) -> Violation:
    known = ", ".join(quote(v if isinstance(v, str) else encode(v)) for v in supported)
    text = f"Unsupported value: {show(value)}"
    return Violation(NOT_SUPPORTED, f"{text}: supported values: {known}" if known else text, field)


def too_long(field: str, limit: int) -> Violation:
    unit = "byte" if limit == 1 else "bytes"
    return Violation(TOO_LONG, f"Too long: may not be more than {limit} {unit}", field)


def too_many(field: str, actual: int, limit: int) -> Violation:
    unit = "item" if limit == 1 else "items"
    return Violation(TOO_MANY, f"Too many: {actual}: must have at most {limit} {unit}", field)


def duplicate(field: str, value: object) -> Violation:
    return Violation(DUPLICATE, f"Duplicate value: {show(value)}", field)


def broken_rule(field: str, message: str, reason: str, value: object) -> Violation:
    """A CEL rule that does not hold. Objects and lists (value None) are not shown."""
    field = field or NOWHERE
    if reason == FORBIDDEN:
        return forbidden(field, message)
    if reason == REQUIRED:
        return required(field, message)
    if reason == DUPLICATE:
        return Violation(DUPLICATE, "Duplicate value" if value is None else f"Duplicate value: {show(value)}", field)
    if value is None:
        return Violation(INVALID, f"Invalid value: {message}", field)
    return invalid(field, value, message)


class Verbatim(str):
    """Text that stands in a message as it is: what Go prints of a struct, say, with its fields in their own order."""

    __slots__ = ()


def show(value: object) -> str:
    """A value inside a message."""
    if isinstance(value, Verbatim):
        return str(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, float):
        return number(value)
    return encode(value)


def encode(value: object) -> str:
    """Compact JSON with sorted keys, as Go prints maps."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def number(value: float) -> str:
    """As Go's %v prints a float64: the shortest digits, an exponent from 1e+21 on."""
    if isinstance(value, int):
        return str(value)
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    if not e:
        return text
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa.removesuffix('.0')}e{sign}{exponent.lstrip('+-').zfill(2)}"


_ESCAPES: Final = {
    '"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


def quote(text: str) -> str:
    """As Go's %q quotes a string."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escape(c) for c in text) + '"'


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
