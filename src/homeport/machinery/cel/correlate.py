"""Which part of an old object a part of the new one replaces, and whether anything changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def map_keys(schema: Schema) -> tuple[str, ...]:
    """The keys that identify the items of a list, or none if it has no keys."""
    if schema.get("type") != "array" or schema.get("x-kubernetes-list-type") != "map":
        return ()
    return tuple(schema.get("x-kubernetes-list-map-keys") or ())


def item_key(item: object, keys: tuple[str, ...]) -> tuple[Any, ...] | None:
    """What identifies an item; None when a key is missing or no scalar."""
    if not isinstance(item, dict):
        return None
    found: list[Any] = []
    for key in keys:
        value = item.get(key)
        if not isinstance(value, (bool, int, float, str)):
            return None
        found.append((type(value), value))
    return tuple(found)


class OldItems:
    """The items of an old list by their keys; empty for lists without keys."""

    __slots__ = ("_by_key", "_keys")

    def __init__(self, keys: tuple[str, ...], old: Any) -> None:
        self._keys = keys
        self._by_key: dict[tuple[Any, ...], Any] = {}
        if not keys or not isinstance(old, list):
            return
        for item in old:
            key = item_key(item, keys)
            if key is not None:
                self._by_key.setdefault(key, item)

    def get(self, item: object) -> Any:
        if not self._by_key:
            return None
        key = item_key(item, self._keys)
        return None if key is None else self._by_key.get(key)


def unchanged(schema: Schema, new: object, old: object) -> bool:
    """Whether two values are the same, as far as their schema can tell.

    The order of keyed items is no part of a value. What the schema does not describe, such as most of the
    metadata, can't be told to be the same: whatever holds it counts as changed.
    """
    if isinstance(new, dict):
        return isinstance(old, dict) and _unchanged_object(schema, new, old)
    keys = map_keys(schema)
    if not keys or not isinstance(new, list) or not isinstance(old, list):
        return bool(new == old)
    if len(new) != len(old):
        return False
    items, previous = schema.get("items") or {}, OldItems(keys, old)
    return all((was := previous.get(item)) is not None and unchanged(items, item, was) for item in new)


def _unchanged_object(schema: Schema, new: dict[str, Any], old: dict[str, Any]) -> bool:
    if len(new) != len(old):
        return False
    properties = schema.get("properties") or {}
    values = schema.get("additionalProperties")
    for name, value in new.items():
        child = properties.get(name, values if isinstance(values, Mapping) else None)
        if child is None or name not in old or not unchanged(child, value, old[name]):
            return False
    return True


def describes_all(schema: Schema) -> bool:
    """Whether the schema leaves nothing in its objects undescribed, so that the same object is unchanged."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
        return False
    items, values = schema.get("items"), schema.get("additionalProperties")
    within = [*(schema.get("properties") or {}).values()]
    within += [each for each in (items, values) if isinstance(each, Mapping)]
    return values is not True and all(map(describes_all, within))
