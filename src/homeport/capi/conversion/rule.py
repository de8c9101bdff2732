"""Rules between an older version of a kind and the newest: where each value stands in either.

Rules are applied in order on the way up and in reverse on the way down, on the object itself. What no rule names stays
where it is; what a version has no field for is taken out afterwards (see `fit`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from homeport.capi import setter
from homeport.capi.conversion.codec import SAME, Codec, Context

Json = dict[str, Any]
ABSENT: Any = object()


class Rule(Protocol):
    def up(self, obj: Json, context: Context) -> None: ...

    def down(self, obj: Json, context: Context) -> None: ...


class Move(NamedTuple):
    """A value stands at another path, or is written in another way."""

    old: str
    new: str
    codec: Codec = SAME

    def up(self, obj: Json, context: Context) -> None:
        _carry(obj, self.old, self.new, self.codec.up, context)

    def down(self, obj: Json, context: Context) -> None:
        _carry(obj, self.new, self.old, self.codec.down, context)


@dataclass(frozen=True, slots=True)
class Within:
    """Rules that apply below a path of the object."""

    path: str
    rules: Sequence[Rule]

    def up(self, obj: Json, context: Context) -> None:
        part = find(obj, self.path)
        if isinstance(part, dict):
            apply_up(self.rules, part, context)

    def down(self, obj: Json, context: Context) -> None:
        part = find(obj, self.path)
        if isinstance(part, dict):
            apply_down(self.rules, part, context)


@dataclass(frozen=True, slots=True)
class Each:
    """Rules for each item of a list."""

    path: str
    rules: Sequence[Rule]

    def up(self, obj: Json, context: Context) -> None:
        for item in _items(obj, self.path):
            apply_up(self.rules, item, context)

    def down(self, obj: Json, context: Context) -> None:
        for item in _items(obj, self.path):
            apply_down(self.rules, item, context)


@dataclass(frozen=True, slots=True)
class Custom:
    """A conversion in code, for fields that a move or rename can't convert."""

    up: Callable[[Json, Context], None]
    down: Callable[[Json, Context], None]
    renamed: Mapping[str, str] = field(default_factory=dict)  # path in the newest version > in the older one


def ready_moved(name: str) -> Custom:
    """`status.ready` of an older version is a field of `status.initialization` in the newest."""

    def carry(obj: Json, source: str, target: str) -> None:
        value = take(obj, source)
        if isinstance(value, bool):
            put(obj, target, value)

    old, new = "status.ready", f"status.initialization.{name}"
    return Custom(lambda obj, _: carry(obj, old, new), lambda obj, _: carry(obj, new, old))


def apply_up(rules: Iterable[Rule], obj: Json, context: Context) -> None:
    for rule in rules:
        rule.up(obj, context)


def apply_down(rules: Sequence[Rule], obj: Json, context: Context) -> None:
    for rule in reversed(rules):
        rule.down(obj, context)


def find(obj: object, path: str) -> Any:
    """The value at a path, or ABSENT."""
    for name in path.split("."):
        if not isinstance(obj, dict) or name not in obj:
            return ABSENT
        obj = obj[name]
    return obj


def take(obj: Json, path: str) -> Any:
    """Removes the value at a path, and parents that are left empty; ABSENT if there is none."""
    name, _, rest = path.partition(".")
    if name not in obj:
        return ABSENT
    if not rest:
        return obj.pop(name)
    inner = obj[name]
    if not isinstance(inner, dict):
        return ABSENT
    value = take(inner, rest)
    if value is not ABSENT and not inner:
        del obj[name]
    return value


def put(obj: Json, path: str, value: object) -> None:
    setter.put(obj, path.split("."), value)


def _carry(obj: Json, source: str, target: str, change: Callable[[Any, Context], Any], context: Context) -> None:
    value = take(obj, source)
    if value is ABSENT or value is None:
        return
    # Objects are converted before a schema is asked: what has the wrong shape stays as it is, and is refused then.
    with contextlib.suppress(AttributeError, KeyError, TypeError):
        value = change(value, context)
    put(obj, target, value)


def _items(obj: Json, path: str) -> Iterable[Json]:
    found = find(obj, path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else ()
