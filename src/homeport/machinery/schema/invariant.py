"""What a JSON schema can't say of custom resources: lists that are sets or have keys, and embedded objects.

Most objects touch few such places. A sparse tree of quick checks leads there; only if one objects are the words sought.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from homeport.machinery.schema import violation as v
from homeport.machinery.schema.metadata import embedded_object
from homeport.machinery.schema.node import Schema
from homeport.machinery.schema.violation import Violation

Sound = Callable[[Any], bool]


def compile_invariants(schema: Schema) -> Sound | None:
    """A function that is true for values that keep all invariants; None if the schema has none."""
    return _sound(schema, root=True)


def _sound(schema: Schema, root: bool = False) -> Sound | None:
    if schema.items is not None:
        return _sound_list(schema)
    deep = tuple((name, sound) for name, child in schema.properties.items() if (sound := _sound(child)) is not None)
    rest = _sound(schema.additional) if schema.additional is not None else None
    embedded = schema.embedded and not root
    if not deep and rest is None and not embedded:
        return None
    known = frozenset(schema.properties)

    def check(obj: Any) -> bool:
        if obj.__class__ is not dict:
            return True
        for name, sound in deep:
            if name in obj and not sound(obj[name]):
                return False
        if rest is not None and not all(rest(value) for name, value in obj.items() if name not in known):
            return False
        return not embedded or next(embedded_object(obj, ""), None) is None

    return check


def _sound_list(schema: Schema) -> Sound | None:
    assert schema.items is not None
    sound_item = _sound(schema.items)
    unique = _unique_check(schema)
    if sound_item is None and unique is None:
        return None

    def check(value: Any) -> bool:
        if value.__class__ is not list:
            return True
        if unique is not None and not unique(value):
            return False
        return sound_item is None or all(map(sound_item, value))

    return check


def _unique_check(schema: Schema) -> Callable[[list[Any]], bool] | None:
    """May say no to a list that is fine (odd values), never yes to one that is not."""
    if schema.list_type == "set":

        def distinct(value: list[Any]) -> bool:
            if len(value) < 2:
                return True
            try:
                return len(set(value)) == len(value)
            except TypeError:  # maps and lists
                return False

        return distinct
    if schema.list_type != "map":
        return None
    keys = schema.list_keys
    first = keys[0] if len(keys) == 1 else None

    def keyed(value: list[Any]) -> bool:
        try:
            if first is not None:
                return len({item[first] for item in value}) == len(value)
            return len({tuple(map(item.get, keys)) for item in value}) == len(value)
        except (TypeError, KeyError, AttributeError):
            return False

    return keyed


def embedded_violations(schema: Schema, value: object, path: str = "", root: bool = True) -> Iterator[Violation]:
    if isinstance(value, dict):
        if schema.embedded and not root:
            yield from embedded_object(value, path)
        for name, item in value.items():
            child = schema.properties.get(name)
            if child is not None:
                yield from embedded_violations(child, item, f"{path}.{name}" if path else name, False)
            elif schema.additional is not None:
                yield from embedded_violations(schema.additional, item, f"{path}[{name}]", False)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from embedded_violations(schema.items, item, f"{path}[{index}]", False)


def list_violations(schema: Schema, value: object, path: str = "") -> Iterator[Violation]:
    if isinstance(value, dict):
        for name, item in value.items():
            child = schema.properties.get(name)
            if child is not None:
                yield from list_violations(child, item, f"{path}.{name}" if path else name)
            elif schema.additional is not None:
                yield from list_violations(schema.additional, item, f"{path}[{name}]")
    elif isinstance(value, list):
        if schema.list_type == "set":
            yield from (v.duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value))
        elif schema.list_type == "map":
            yield from _keyed_violations(schema, value, path)
        if schema.items is not None:
            for index, item in enumerate(value):
                yield from list_violations(schema.items, item, f"{path}[{index}]")


def _keyed_violations(schema: Schema, value: list[Any], path: str) -> Iterator[Violation]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            yield v.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    keys = [{key: item[key] for key in schema.list_keys if key in item} if item else {} for item in value]
    for index in _repeated(keys):
        yield v.duplicate(f"{path}[{index}]", keys[index])


def _repeated(values: list[Any]) -> Iterator[int]:
    """Where a value comes the second time (not the third: once is enough to tell)."""
    seen: dict[bytes, int] = {}
    for index, value in enumerate(values):
        key = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            yield index
