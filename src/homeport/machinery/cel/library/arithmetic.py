"""Operators on numbers, and the operators that strings, lists, times and numbers share."""

from __future__ import annotations

import math
from typing import Any

from homeport.machinery.cel import compare as c
from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library import clock
from homeport.machinery.cel.library.registry import A, B, Function, function
from homeport.machinery.cel.parse.lexer import INT_MAX, INT_MIN, UINT_MAX
from homeport.machinery.cel.values import MapList, SetList, Uint, index, optional_index

MAX_LIST: int = 1_000_000


def overflow() -> int:
    raise EvaluationError("integer overflow")


def to_int(value: int) -> int:
    return value if INT_MIN <= value <= INT_MAX else overflow()


def to_uint(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def divide_int(left: int, right: int) -> int:
    """Towards zero, unlike Python."""
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return to_int(quotient if (left < 0) == (right < 0) else -quotient)


def modulo_int(left: int, right: int) -> int:
    """The sign of the dividend, unlike Python."""
    if right == 0:
        raise EvaluationError("modulus by zero")
    if left == INT_MIN and right == -1:
        return overflow()
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def divide_uint(left: int, right: int) -> Uint:
    if right == 0:
        raise EvaluationError("division by zero")
    return Uint(left // right)


def modulo_uint(left: int, right: int) -> Uint:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return Uint(left % right)


def divide_double(left: float, right: float) -> float:
    if right == 0.0:
        if left == 0.0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


def add_lists(left: list[Any], right: list[Any]) -> list[Any]:
    """Concatenation; for lists that are sets or maps by their schema, a union or a merge."""
    # the cost model takes this for free, memory is not: stop what doubles itself
    if len(left) + len(right) > MAX_LIST:
        raise EvaluationError(f"a list of more than {MAX_LIST} items")
    if isinstance(left, SetList):
        merged = SetList(left)
        merged.extend(item for item in right if not any(c.equals(item, other) for other in left))
        return merged
    if isinstance(left, MapList):
        return _merge(left, right)
    return left + right


def _merge(left: MapList, right: list[Any]) -> MapList:
    replaced = {left.key_of(item): item for item in right}
    merged = MapList(replaced.pop(left.key_of(item), item) for item in left)
    merged.extend(replaced.values())
    merged.keys = left.keys
    return merged


def _sums() -> list[Function]:
    # The order matters here and below: where the type of an argument is still open, the first overload that
    # fits settles it.
    i, u, d, dur, ts, items = t.INT, t.UINT, t.DOUBLE, t.DURATION, t.TIMESTAMP, t.list_of(A)
    return [
        function("_+_", "add_bytes", (t.BYTES, t.BYTES), t.BYTES, lambda a, b: a + b),
        function("_+_", "add_double", (d, d), d, lambda a, b: a + b),
        function("_+_", "add_duration_duration", (dur, dur), dur, lambda a, b: clock.duration(a.ns + b.ns)),
        function("_+_", "add_duration_timestamp", (dur, ts), ts, lambda a, b: clock.shift(b, a.ns)),
        function("_+_", "add_timestamp_duration", (ts, dur), ts, lambda a, b: clock.shift(a, b.ns)),
        function("_+_", "add_int64", (i, i), i, lambda a, b: to_int(a + b)),
        function("_+_", "add_list", (items, items), items, add_lists),
        function("_+_", "add_string", (t.STRING, t.STRING), t.STRING, lambda a, b: a + b),
        function("_+_", "add_uint64", (u, u), u, lambda a, b: to_uint(a + b)),
        function("_-_", "subtract_double", (d, d), d, lambda a, b: a - b),
        function("_-_", "subtract_duration_duration", (dur, dur), dur, lambda a, b: clock.duration(a.ns - b.ns)),
        function("_-_", "subtract_int64", (i, i), i, lambda a, b: to_int(a - b)),
        function("_-_", "subtract_timestamp_duration", (ts, dur), ts, lambda a, b: clock.shift(a, -b.ns)),
        function("_-_", "subtract_timestamp_timestamp", (ts, ts), dur, lambda a, b: clock.duration(a.ns - b.ns)),
        function("_-_", "subtract_uint64", (u, u), u, lambda a, b: to_uint(a - b)),
    ]


def _products() -> list[Function]:
    i, u, d = t.INT, t.UINT, t.DOUBLE
    return [
        function("_*_", "multiply_double", (d, d), d, lambda a, b: a * b),
        function("_*_", "multiply_int64", (i, i), i, lambda a, b: to_int(a * b)),
        function("_*_", "multiply_uint64", (u, u), u, lambda a, b: to_uint(a * b)),
        function("_/_", "divide_double", (d, d), d, divide_double),
        function("_/_", "divide_int64", (i, i), i, divide_int),
        function("_/_", "divide_uint64", (u, u), u, divide_uint),
        function("_%_", "modulo_int64", (i, i), i, modulo_int),
        function("_%_", "modulo_uint64", (u, u), u, modulo_uint),
        function("-_", "negate_double", (d,), d, lambda a: -a),
        function("-_", "negate_int64", (i,), i, lambda a: to_int(-a)),
    ]


def _relations() -> list[Function]:
    result: list[Function] = []
    pairs = [("less", "_<_", c.less), ("less_equals", "_<=_", c.less_equal)]
    pairs += [("greater", "_>_", c.greater), ("greater_equals", "_>=_", c.greater_equal)]
    numbers = {"int64": t.INT, "uint64": t.UINT, "double": t.DOUBLE}
    for word, name, impl in pairs:
        result.append(function(name, f"{word}_bool", (t.BOOL, t.BOOL), t.BOOL, impl))
        for left_name, left in numbers.items():
            result.append(function(name, f"{word}_{left_name}", (left, left), t.BOOL, impl))
            for right_name, right in numbers.items():
                if right is not left:
                    id = f"{word}_{left_name}_{right_name}"
                    result.append(function(name, id, (left, right), t.BOOL, impl))
        others = (t.STRING, t.BYTES, t.TIMESTAMP, t.DURATION)
        result += [function(name, f"{word}_{each.kind}", (each, each), t.BOOL, impl) for each in others]
    return result


def _logic() -> list[Function]:
    items, entries = t.list_of(A), t.map_of(A, B)
    opt_items, opt_entries = t.optional_of(items), t.optional_of(entries)
    maybe, boolean = t.optional_of(A), (t.BOOL, t.BOOL)
    return [
        function("_&&_", "logical_and", boolean, t.BOOL, lambda a, b: a and b),
        function("_||_", "logical_or", boolean, t.BOOL, lambda a, b: a or b),
        function("!_", "logical_not", (t.BOOL,), t.BOOL, lambda a: not a),
        function("_?_:_", "conditional", (t.BOOL, A, A), A, lambda a, b, other: b if a else other),
        function("_==_", "equals", (A, A), t.BOOL, c.equals),
        function("_!=_", "not_equals", (A, A), t.BOOL, lambda a, b: not c.equals(a, b)),
        function("@in", "in_list", (A, items), t.BOOL, c.contains),
        function("@in", "in_map", (A, entries), t.BOOL, c.contains),
        function("_[_]", "index_list", (items, t.INT), A, index),
        function("_[_]", "index_map", (entries, A), B, index),
        function("_[_]", "optional_list_index_int", (opt_items, t.INT), maybe, index),
        function("_[_]", "optional_map_index_value", (opt_entries, A), t.optional_of(B), index),
        function("_[?_]", "list_optindex_optional_int", (items, t.INT), maybe, optional_index),
        function("_[?_]", "optional_list_optindex_optional_int", (opt_items, t.INT), maybe, optional_index),
        function("_[?_]", "map_optindex_optional_value", (entries, A), t.optional_of(B), optional_index),
        function("_[?_]", "optional_map_optindex_optional_value", (opt_entries, A), t.optional_of(B), optional_index),
    ]


def functions() -> list[Function]:
    return [*_logic(), *_relations(), *_sums(), *_products()]
