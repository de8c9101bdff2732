"""Equality and order across types, and the type and the size of a value."""

from __future__ import annotations

import math
from typing import Any, Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import EvaluationError, no_such_overload
from homeport.machinery.cel.values import (
    NOT_FOUND,
    Duration,
    MapList,
    ObjectValue,
    Optional,
    SetList,
    Timestamp,
    Uint,
    Unknown,
    find,
    from_key,
)

_NUMBERS: Final = frozenset({int, float, Uint})
_PLAIN: Final = frozenset({str, bytes, bool, Duration, Timestamp, type(None)})


def equals(left: object, right: object) -> bool:
    """`left == right` whatever the types: values of unrelated types are not equal, numbers compare by value."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS:
        return other in _NUMBERS and bool(left == right)
    if kind in _PLAIN:
        return kind is other and bool(left == right)
    if isinstance(left, list):
        return isinstance(right, list) and _equal_lists(left, right)
    if isinstance(left, (dict, ObjectValue)):
        return isinstance(right, (dict, ObjectValue)) and _equal_maps(left, right)
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.present != right.present:
            return False
        return not left.present or equals(left.value, right.value)
    if isinstance(left, Unknown):
        return bool(left.raw == (right.raw if isinstance(right, Unknown) else right))
    if isinstance(left, t.CelType):
        return isinstance(right, t.CelType) and left.runtime() == right.runtime()
    return bool(left == right)


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, SetList) or (isinstance(right, SetList) and not isinstance(left, MapList)):
        return _equal_sets(left, right)
    if isinstance(left, MapList):
        return _equal_by_key(left, right)
    if isinstance(right, MapList):
        return _equal_by_key(right, left)
    return all(map(equals, left, right))


def _equal_sets(left: list[Any], right: list[Any]) -> bool:
    if all(type(item) is str for item in left) and all(type(item) is str for item in right):
        return set(left) == set(right)
    return all(any(equals(a, b) for b in right) for a in left) and all(any(equals(a, b) for a in left) for b in right)


def _equal_by_key(left: MapList, right: list[Any]) -> bool:
    by_key = {left.key_of(item): item for item in left}
    seen = set()
    for item in right:
        key = left.key_of(item)
        if key not in by_key or not equals(by_key[key], item):
            return False
        seen.add(key)
    return len(seen) == len(by_key)


def _equal_maps(left: Any, right: Any) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, ObjectValue):
        return _equal_objects(left, right)
    for key, value in left.items():
        other = find(right, from_key(key))
        if other is NOT_FOUND or not equals(value, other):
            return False
    return True


def _equal_objects(left: ObjectValue, right: Any) -> bool:
    other_raw = right.raw if isinstance(right, ObjectValue) else right
    for name, raw in left.raw.items():
        field = left.declared.property(name)
        if field is None:
            # preserved unknown data has no type to compare by
            if name in other_raw and raw != other_raw[name]:
                return False
            continue
        if raw is None:
            if other_raw.get(name) is not None:
                return False
            continue
        other = other_raw.get(name)
        if other is None:
            return False
        converted = field.convert(other) if isinstance(right, ObjectValue) else other
        if not equals(field.convert(raw), converted):
            return False
    return True


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1; an error for types without an order."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        if (kind is float and math.isnan(left)) or (other is float and math.isnan(right)):
            raise EvaluationError("NaN values cannot be ordered")
    elif kind is not other or kind not in (str, bytes, bool, Duration, Timestamp):
        raise no_such_overload()
    if left == right:
        return 0
    return -1 if left < right else 1


def less(left: object, right: object) -> bool:
    return compare(left, right) < 0


def less_equal(left: object, right: object) -> bool:
    return compare(left, right) <= 0


def greater(left: object, right: object) -> bool:
    return compare(left, right) > 0


def greater_equal(left: object, right: object) -> bool:
    return compare(left, right) >= 0


def contains(needle: object, container: object) -> bool:
    """`needle in container`"""
    if isinstance(container, list):
        return any(equals(needle, item) for item in container)
    if isinstance(container, (dict, ObjectValue)):
        return find(container, needle) is not NOT_FOUND
    raise no_such_overload()


def size_of(value: Any) -> int:
    """The size that costs are computed from; 1 for everything that has none."""
    kind = type(value)
    if kind is str or kind is list or kind is dict or kind is bytes:
        return len(value)
    if isinstance(value, (list, dict, ObjectValue)):
        return len(value)
    if isinstance(value, Optional):
        return size_of(value.value) if value.present else 1
    return int(getattr(value, "size", 1))


_TYPES: Final[dict[type, t.CelType]] = {
    type(None): t.NULL,
    bool: t.BOOL,
    int: t.INT,
    Uint: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    Duration: t.DURATION,
    Timestamp: t.TIMESTAMP,
    list: t.LIST,
    SetList: t.LIST,
    MapList: t.LIST,
    dict: t.MAP,
    ObjectValue: t.MAP,
    Optional: t.OPTIONAL,
}


def type_of_value(value: object) -> t.CelType:
    known = _TYPES.get(type(value))
    if known is not None:
        return known
    if isinstance(value, t.CelType):
        return t.TYPE
    declared = getattr(value, "cel_type", None)
    if isinstance(declared, t.CelType):
        return declared
    raise EvaluationError(f"a value of {type(value).__name__} has no type in an expression")
