"""Functions on lists and on lists taken as sets."""

from __future__ import annotations

import functools
import itertools
from typing import Any, Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.compare import compare, contains, equals, type_of_value
from homeport.machinery.cel.errors import EvaluationError, no_such_overload
from homeport.machinery.cel.library import clock
from homeport.machinery.cel.library.arithmetic import MAX_LIST, to_int, to_uint
from homeport.machinery.cel.library.registry import A, Function, function, method
from homeport.machinery.cel.values import Duration, Uint

_COMPARABLE: Final = (
    ("int", t.INT),
    ("uint", t.UINT),
    ("double", t.DOUBLE),
    ("bool", t.BOOL),
    ("duration", t.DURATION),
    ("timestamp", t.TIMESTAMP),
    ("string", t.STRING),
    ("bytes", t.BYTES),
)
_by_order = functools.cmp_to_key(compare)


def is_sorted(items: list[Any]) -> bool:
    return all(compare(a, b) <= 0 for a, b in itertools.pairwise(items))


def total(items: list[Any], zero: object = 0) -> Any:
    if not items:
        return zero
    kind = type(items[0])
    if any(type(item) is not kind for item in items):
        raise no_such_overload()
    if kind is Duration:
        return clock.duration(sum(item.ns for item in items))
    if kind is int:
        return to_int(sum(items))
    if kind is Uint:
        return to_uint(sum(items))
    if kind is float:
        return sum(items)
    raise no_such_overload()


def smallest(items: list[Any]) -> Any:
    if not items:
        raise EvaluationError("min called on empty list")
    return min(items, key=_by_order)


def largest(items: list[Any]) -> Any:
    if not items:
        raise EvaluationError("max called on empty list")
    return max(items, key=_by_order)


def index_of(items: list[Any], wanted: object) -> int:
    return next((index for index, item in enumerate(items) if equals(item, wanted)), -1)


def last_index_of(items: list[Any], wanted: object) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if equals(items[index], wanted)), -1)


def includes(target: object, wanted: object) -> bool:
    return contains(wanted, target) if isinstance(target, list) else equals(target, wanted)


def slice_(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    if not isinstance(items, list):
        raise no_such_overload()
    flat = list(items)
    # one level at a time: a level that changes nothing is the last
    while depth and any(isinstance(item, list) for item in flat):
        flat = [each for item in flat for each in (item if isinstance(item, list) else (item,))]
        if len(flat) > MAX_LIST:
            raise EvaluationError(f"a list of more than {MAX_LIST} items")
        depth -= 1
    return flat


def sort_by_keys(items: list[Any], keys: list[Any]) -> list[Any]:
    if len(items) != len(keys):
        raise EvaluationError(f"sortBy: {len(items)} items but {len(keys)} keys")
    if not items:
        return items
    first = type_of_value(keys[0])
    if first not in {each for _, each in _COMPARABLE}:
        raise EvaluationError("list elements must be comparable")
    if any(type_of_value(key) != first for key in keys):
        raise EvaluationError("list elements must have the same type")
    order = sorted(range(len(items)), key=lambda index: _by_order(keys[index]))
    return [items[index] for index in order]


def sort(items: list[Any]) -> list[Any]:
    return sort_by_keys(items, items)


def list_range(count: int) -> list[int]:
    if count < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {count}")
    if count > MAX_LIST:
        raise EvaluationError(f"lists.range: size {count} exceeds maximum allowed ({MAX_LIST})")
    return list(range(count))


def distinct(items: list[Any]) -> list[Any]:
    if all(type(item) is str for item in items):
        return list(dict.fromkeys(items))
    unique: list[Any] = []
    for item in items:
        if not any(equals(item, other) for other in unique):
            unique.append(item)
    return unique


def set_contains(items: list[Any], wanted: list[Any]) -> bool:
    return all(contains(each, items) for each in wanted)


def set_equivalent(left: list[Any], right: list[Any]) -> bool:
    return set_contains(left, right) and set_contains(right, left)


def set_intersects(left: list[Any], right: list[Any]) -> bool:
    return any(contains(each, right) for each in left)


def _typed() -> list[Function]:
    result: list[Function] = []
    zeros = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}
    for name, each in _COMPARABLE:
        items = t.list_of(each)
        result.append(method("isSorted", f"list_{name}_is_sorted_bool", (items,), t.BOOL, is_sorted))
        result.append(method("max", f"list_{name}_max_{name}", (items,), each, largest))
        result.append(method("min", f"list_{name}_min_{name}", (items,), each, smallest))
        result.append(method("sort", f"list_{each.name}_sort", (items,), items, sort))
        result.append(
            method(
                "@sortByAssociatedKeys",
                f"list_{each.name}_sortByAssociatedKeys",
                (t.list_of(A), items),
                t.list_of(A),
                sort_by_keys,
            )
        )
        if name in zeros:
            zero = zeros[name]
            result.append(
                method("sum", f"list_{name}_sum_{name}", (items,), each, lambda items, zero=zero: total(items, zero))
            )
    return result


def functions() -> list[Function]:
    items, nested, anything = t.list_of(A), t.list_of(t.list_of(A)), t.list_of(t.DYN)
    return [
        *_typed(),
        method("indexOf", "list_a_index_of_int", (items, A), t.INT, index_of),
        method("lastIndexOf", "list_a_last_index_of_int", (items, A), t.INT, last_index_of),
        method("includes", "list_includes_dyn_dyn", (t.DYN, t.DYN), t.BOOL, includes),
        method("slice", "list_slice", (items, t.INT, t.INT), items, slice_),
        method("flatten", "list_flatten", (nested,), items, flatten),
        method("flatten", "list_flatten_int", (anything, t.INT), anything, flatten),
        function("lists.range", "lists_range", (t.INT,), t.list_of(t.INT), list_range),
        method("reverse", "list_reverse", (items,), items, lambda items: items[::-1]),
        method("distinct", "list_distinct", (items,), items, distinct),
        function("sets.contains", "list_sets_contains_list", (items, items), t.BOOL, set_contains),
        function("sets.equivalent", "list_sets_equivalent_list", (items, items), t.BOOL, set_equivalent),
        function("sets.intersects", "list_sets_intersects_list", (items, items), t.BOOL, set_intersects),
    ]
