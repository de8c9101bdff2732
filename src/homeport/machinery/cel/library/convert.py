"""Conversions between types, `type()` and `size()`."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.compare import type_of_value
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library import clock
from homeport.machinery.cel.library.arithmetic import to_int, to_uint
from homeport.machinery.cel.library.registry import A, B, Function, function, method
from homeport.machinery.cel.parse.lexer import INT_MAX, INT_MIN, UINT_MAX
from homeport.machinery.cel.values import Duration, Timestamp, Uint

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}\Z")
_NATURAL: Final = re.compile(r"[0-9]{1,40}\Z")
_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?|inf(?:inity)?|nan)\Z", re.IGNORECASE
)
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))


def _failed(source: str, to: t.CelType) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{to.name}'")


def string_to_int(text: str) -> int:
    if _INTEGER.match(text) and INT_MIN <= int(text) <= INT_MAX:
        return int(text)
    raise _failed("string", t.INT)


def string_to_uint(text: str) -> Uint:
    if _NATURAL.match(text) and int(text) <= UINT_MAX:
        return Uint(text)
    raise _failed("string", t.UINT)


def string_to_double(text: str) -> float:
    if _FLOAT.match(text) is None:
        raise _failed("string", t.DOUBLE)
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise _failed("string", t.DOUBLE)
    return value


def string_to_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _failed("string", t.BOOL)


def double_to_int(value: float) -> int:
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


def double_to_uint(value: float) -> Uint:
    if math.isnan(value) or not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from error


def double_to_string(value: float) -> str:
    """The shortest digits that read back the same; an exponent below 1e-4 and from 1e6 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    number = Decimal(repr(value)).normalize()
    sign, digits, _ = number.as_tuple()
    point = number.adjusted()
    if -5 < point < 6:
        return f"{number:f}"
    mantissa = str(digits[0]) + ("." + "".join(map(str, digits[1:])) if len(digits) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if point < 0 else '+'}{abs(point):02d}"


def to_string(value: Any) -> str:
    """Any value that `string()` takes."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is float:
        return double_to_string(value)
    if kind is bytes:
        return bytes_to_string(value)
    if kind is Duration:
        return clock.format_duration(value)
    if kind is Timestamp:
        return clock.format_timestamp(value)
    if isinstance(value, t.CelType):
        return value.runtime().name
    return str(value)


def _same(value: Any) -> Any:
    return value


def functions() -> list[Function]:
    s, i, u, d = t.STRING, t.INT, t.UINT, t.DOUBLE
    dur, ts, b = t.DURATION, t.TIMESTAMP, t.BYTES
    result = [
        function("type", "type", (A,), t.type_of(A), type_of_value),
        function("dyn", "to_dyn", (A,), t.DYN, _same),
        function("bool", "bool_to_bool", (t.BOOL,), t.BOOL, _same),
        function("bool", "string_to_bool", (s,), t.BOOL, string_to_bool),
        function("bytes", "bytes_to_bytes", (b,), b, _same),
        function("bytes", "string_to_bytes", (s,), b, lambda a: a.encode("utf-8", "surrogatepass")),
        function("double", "double_to_double", (d,), d, _same),
        function("double", "int64_to_double", (i,), d, float),
        function("double", "string_to_double", (s,), d, string_to_double),
        function("double", "uint64_to_double", (u,), d, float),
        function("duration", "duration_to_duration", (dur,), dur, _same),
        function("duration", "string_to_duration", (s,), dur, clock.parse_duration),
        function("int", "int64_to_int64", (i,), i, _same),
        function("int", "double_to_int64", (d,), i, double_to_int),
        function("int", "duration_to_int64", (dur,), i, lambda a: a.ns),
        function("int", "string_to_int64", (s,), i, string_to_int),
        function("int", "timestamp_to_int64", (ts,), i, lambda a: a.ns // clock.SECOND),
        function("int", "uint64_to_int64", (u,), i, lambda a: to_int(int(a))),
        function("timestamp", "timestamp_to_timestamp", (ts,), ts, _same),
        function("timestamp", "int64_to_timestamp", (i,), ts, lambda a: clock.timestamp(a * clock.SECOND)),
        function("timestamp", "string_to_timestamp", (s,), ts, clock.parse_timestamp),
        function("uint", "uint64_to_uint64", (u,), u, _same),
        function("uint", "double_to_uint64", (d,), u, double_to_uint),
        function("uint", "int64_to_uint64", (i,), u, to_uint),
        function("uint", "string_to_uint64", (s,), u, string_to_uint),
        function("string", "string_to_string", (s,), s, _same),
    ]
    printable = (t.BOOL, b, d, dur, i, ts, u)
    result += [function("string", f"{each.kind}_to_string", (each,), s, to_string) for each in printable]
    for container in (b, t.list_of(A), t.map_of(A, B), s):
        result.append(function("size", f"size_{container.kind}", (container,), i, len))
        result.append(method("size", f"{container.kind}_size", (container,), i, len))
    return result
