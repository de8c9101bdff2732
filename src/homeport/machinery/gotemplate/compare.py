"""eq, lt and their like."""

from __future__ import annotations

from typing import Any, Final

from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.value import (
    INTEGERS,
    UNSIGNED,
    NilList,
    NilMap,
    NilStrings,
    Object,
    kind_of,
    octets,
    type_of,
)

_BASIC: Final = frozenset({"bool", "float64", "string"})
_HINT: Final = ": numbers of variables are float64: use 3.0 for 3, or convert with int"


def equal(first: object, *others: object) -> bool:
    if not others:
        raise CallError("a second argument is missing")
    return any(_equal(first, other) for other in others)


def _equal(left: Any, right: Any) -> bool:
    kind, other = _basic(left), _basic(right)
    if kind != other:
        if left is not None and right is not None:
            raise _incompatible(left, right)
        return False
    if kind:
        return bool(left == right)
    if _nil(left) or _nil(right):
        return _nil(left) == _nil(right)
    if kind_of(left) != kind_of(right):
        raise _incompatible(left, right)
    if isinstance(left, Object):
        return left is right
    raise CallError(f"values of type {type_of(left)} can't be compared")


def less(left: Any, right: Any) -> bool:
    kind, other = _basic(left), _basic(right)
    for value, basic in ((left, kind), (right, other)):
        if not basic:
            raise CallError(f"a value of type {type_of(value)} is neither less nor greater than another")
    if kind != other:
        raise _incompatible(left, right)
    if kind == "bool":
        raise CallError("a bool is neither less nor greater than another")
    if kind == "string":
        return octets(left) < octets(right)
    return bool(left < right)


def less_or_equal(left: object, right: object) -> bool:
    return less(left, right) or equal(left, right)


def _basic(value: Any) -> str:
    """Integers of all sizes are alike."""
    kind = kind_of(value)
    if kind in INTEGERS or kind in UNSIGNED:
        return "int"
    return kind if kind in _BASIC else ""


def _nil(value: Any) -> bool:
    return value is None or isinstance(value, NilList | NilStrings | NilMap)


def _incompatible(left: Any, right: Any) -> CallError:
    types = type_of(left), type_of(right)
    hint = _HINT if "float64" in types and any(_basic(value) == "int" for value in (left, right)) else ""
    return CallError(f"{types[0]} and {types[1]} can't be compared{hint}")
