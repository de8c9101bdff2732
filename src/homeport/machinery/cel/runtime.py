"""What emitted code calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NoReturn

from homeport.machinery.cel.errors import (
    CelError,
    CostLimitExceeded,
    EvaluationError,
    no_such_key,
    no_such_overload,
)
from homeport.machinery.cel.values import NONE, Optional, as_bool, from_key, iterate_pairs, to_key

__all__ = [
    "NONE",
    "CelError",
    "Lazy",
    "Optional",
    "absorb",
    "as_bool",
    "convert_pairs",
    "entry",
    "field",
    "insert",
    "insert_all",
    "is_present",
    "limit",
    "list_item",
    "logical_and",
    "logical_or",
    "make_map",
    "spread",
]

_UNSET: Final = object()


def limit() -> NoReturn:
    raise CostLimitExceeded


def field(raw: dict[str, Any], name: str) -> Any:
    """A property of a raw object; null counts as absent."""
    value = raw.get(name)
    if value is None:
        raise no_such_key(name)
    return value


def entry(raw: dict[str, Any], name: object) -> Any:
    """An entry of a raw map; null is a value here."""
    if name not in raw:
        raise no_such_key(name)
    return raw[name]


def list_item(items: list[Any], index: int) -> Any:
    if not 0 <= index < len(items):
        raise EvaluationError(f"index out of bounds: {index}")
    return items[index]


def convert_pairs(pairs: Iterable[tuple[Any, Any]], convert: Callable[[Any], Any]) -> Iterator[tuple[Any, Any]]:
    for key, value in pairs:
        yield key, convert(value)


def spread(optional: object) -> tuple[Any, ...]:
    """An optional item of a list literal: one item or none."""
    if not isinstance(optional, Optional):
        raise no_such_overload()
    return (optional.value,) if optional.present else ()


def make_map(pairs: Iterable[tuple[Any, Any, bool]]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key, value, optional in pairs:
        for each in spread(value) if optional else (value,):
            made[to_key(key)] = each  # a key that is written twice has its last value
    return made


def insert(target: dict[Any, Any], key: object, value: object) -> None:
    stored = to_key(key)
    if stored in target:
        raise EvaluationError(f"insert failed: key {key} already exists")
    target[stored] = value


def insert_all(target: dict[Any, Any], entries: object) -> None:
    for key, value in iterate_pairs(entries):
        insert(target, from_key(key), value)


def is_present(optional: object) -> bool:
    if not isinstance(optional, Optional):
        raise no_such_overload()
    return optional.present


class Lazy:
    """A bound expression, evaluated once, when first asked for."""

    __slots__ = ("_make", "_value")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._value: Any = _UNSET

    def __call__(self) -> Any:
        if self._value is _UNSET:
            self._value = self._make()
        return self._value


def absorb(error: Exception) -> CelError:
    """An error that a later operand may make irrelevant. Exceeding the cost limit is not such an error."""
    if isinstance(error, CostLimitExceeded):
        raise error
    return error if isinstance(error, CelError) else explained(error)


def explained(error: Exception) -> CelError:
    """What Python raised, in the words of the language."""
    if isinstance(error, CelError):
        return error
    if isinstance(error, RecursionError):
        return EvaluationError("value is nested too deeply")
    if isinstance(error, KeyError):
        return no_such_key(error.args[0] if error.args else "")
    return no_such_overload()


def logical_and(*terms: Callable[[], bool]) -> bool:
    first: CelError | None = None
    for term in terms:
        try:
            if not term():
                return False
        except Exception as error:
            first = first or absorb(error)
    if first is not None:
        raise first
    return True


def logical_or(*terms: Callable[[], bool]) -> bool:
    first: CelError | None = None
    for term in terms:
        try:
            if term():
                return True
        except Exception as error:
            first = first or absorb(error)
    if first is not None:
        raise first
    return False
