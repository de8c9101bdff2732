"""The fields in which two objects differ, and the fields that one object has."""

from __future__ import annotations

from typing import Any, Final

from homeport.machinery.apply.element import key_element, value_element
from homeport.machinery.apply.fieldset import SELF, Trie, marked
from homeport.machinery.apply.shape import DEDUCED, Shape
from homeport.machinery.schema.node import MISSING

Json = dict[str, Any]
_NOTHING: Final = (None, None)
_Difference = tuple[Trie | None, Trie | None]  # (changed or added, removed)


class ShapeError(ValueError):
    """An object doesn't fit its schema so badly that its fields have no names."""


def item_element(shape: Shape, item: object) -> str:
    """The step that names an item of a set or keyed list."""
    if not shape.keys:
        if isinstance(item, dict):
            raise ShapeError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise ShapeError("not supported: associative list with lists as elements")
        if item is None:
            raise ShapeError("associative list without keys has an element that's an explicit null")
        return value_element(item)
    if item is None:
        raise ShapeError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ShapeError("associative list with keys may not have non-map elements")
    fields: Json = {}
    for name in shape.keys:
        value = item.get(name, MISSING)
        if value is MISSING:
            value = shape.item.key_default(name)
        if value is not MISSING:
            fields[name] = value
    if not fields:
        names = " ".join(f'"{name}"' for name in shape.keys)
        raise ShapeError(
            f"associative list with keys has an element that omits all key fields [{names}]"
            " (and doesn't have default values for any key fields)"
        )
    return key_element(fields)


def index_items(shape: Shape, items: list[Any]) -> dict[str, list[Any]]:
    """Items by the step that names them; more than one where the list holds duplicates."""
    found: dict[str, list[Any]] = {}
    for index, item in enumerate(items):
        try:
            step = item_element(shape, item)
        except ShapeError as error:
            raise ShapeError(f"element {index}: {error}") from None
        if step in found:
            found[step].append(item)
        else:
            found[step] = [item]
    return found


def compare(shape: Shape, old: Json, new: Json) -> tuple[Trie, Trie]:
    """What `new` changed or added, and what it removed. Work is in proportion to the difference."""
    changed, removed = _maps(shape, old, new)
    return changed or {}, removed or {}


def _maps(shape: Shape, old: Json, new: Json) -> _Difference:
    changed: Trie = {}
    removed: Trie = {}
    for name, before in old.items():
        after = new.get(name, MISSING)
        if after is before or (after == before and type(after) is type(before)):
            continue
        _field(shape, name, before, after, changed, removed)
    for name, after in new.items():
        if name not in old:
            _field(shape, name, MISSING, after, changed, removed)
    return changed or None, removed or None


def _field(shape: Shape, name: str, before: Any, after: Any, changed: Trie, removed: Trie) -> None:
    below = shape.field(name) or DEDUCED
    if shape.typed:
        before, after = _in_go(below, before, after)
        if before is after or before == after:
            return
    step = "f:" + name
    if before is MISSING:
        changed[step] = all_fields(below, after)
    elif after is MISSING:
        removed[step] = all_fields(below, before)
    else:
        more, less = _values(below, before, after)
        if more is not None:
            changed[step] = more
        if less is not None:
            removed[step] = less


def _in_go(shape: Shape, before: Any, after: Any) -> tuple[Any, Any]:
    """A field of a built-in kind that is left out has its zero value if it can't be absent, or else equals null."""
    if before is MISSING:
        before = None if after is None else shape.zero
    elif after is MISSING:
        after = None if before is None else shape.zero
    return before, after


def _values(shape: Shape, before: Any, after: Any) -> _Difference:
    """Two values that are both there and unequal (null is a value)."""
    if before is not None and after is not None and _kind(before) is not _kind(after):
        return _other_kind(shape, before, after)
    kind = after if after is not None else before
    if isinstance(kind, dict):
        if shape.is_map and not shape.map_atomic and (before or after):
            return _maps(shape, before or {}, after or {})
    elif isinstance(kind, list) and shape.is_list and not shape.list_atomic and (before or after):
        return _lists(shape, before or [], after or [])
    return ({}, None) if before != after or type(before) is not type(after) else _NOTHING


def _kind(value: Any) -> type | None:
    return value.__class__ if value.__class__ in _DEEP else None


def _other_kind(shape: Shape, before: Any, after: Any) -> _Difference:
    """A value where anything is allowed became another kind: its fields go, the fields of the new one come."""
    gone = {step: node for step, node in all_fields(shape, before).items() if step != SELF}
    return all_fields(shape, after), gone or None


def _lists(shape: Shape, old: list[Any], new: list[Any]) -> _Difference:
    left, right = index_items(shape, old), index_items(shape, new)
    changed: Trie = {}
    removed: Trie = {}
    for step, before in left.items():
        after = right.get(step, [])
        if before == after:
            continue
        if len(before) == 1 and len(after) == 1:
            more, less = _values(shape.item, before[0], after[0])
            if more is not None:
                changed[step] = more
            if less is not None:
                removed[step] = less
        elif len(before) > 1 and len(after) > 1:
            changed[step] = {}  # duplicates are one field, as if atomic
        else:
            if len(before) > 1:
                removed[step] = {}
                if after:
                    changed[step] = all_fields(shape.item, after[0])
            else:
                removed[step] = all_fields(shape.item, before[0])
                if after:
                    changed[step] = {}
    for step, after in right.items():
        if step not in left:
            changed[step] = {} if len(after) > 1 else all_fields(shape.item, after[0])
    return changed or None, removed or None


def all_fields(shape: Shape, value: object) -> Trie:
    """Every field of a value that one side lacks, the containers among them."""
    if isinstance(value, dict):
        if value and shape.is_map and not shape.map_atomic:
            fields: Trie = {SELF: {}}
            for name, below in value.items():
                fields["f:" + name] = (
                    all_fields(shape.field(name) or DEDUCED, below) if below.__class__ in _DEEP else {}
                )
            return fields
    elif isinstance(value, list) and value and shape.is_list and not shape.list_atomic:
        items: Trie = {SELF: {}}
        for step, found in index_items(shape, value).items():
            items[step] = {} if len(found) > 1 else all_fields(shape.item, found[0])
        return items
    return {}


_DEEP: Final = (dict, list)


def fields_of(shape: Shape, value: object) -> Trie:
    """The set that an applied configuration owns: its leaves, map and list items, not the structs on the way."""
    return _fields(shape, value) or {}


def _fields(shape: Shape, value: Any) -> Trie | None:
    if isinstance(value, dict) and shape.is_map:
        return {} if shape.map_atomic else _map_fields(shape, value)
    if isinstance(value, list) and shape.is_list:
        return {} if shape.list_atomic else _list_fields(shape, value)
    if value is None and not shape.scalar and not (shape.is_map and shape.map_atomic):
        return {} if shape.is_list and shape.list_atomic else None
    return {}


def _map_fields(shape: Shape, value: Json) -> Trie | None:
    found: Trie = {}
    for name, below in value.items():
        node = _fields(shape.field(name) or DEDUCED, below)
        if below is None or below == {} or name not in shape.declared:
            node = marked(node)
        if node is not None:
            found["f:" + name] = node
    return found or None


def _list_fields(shape: Shape, value: list[Any]) -> Trie | None:
    found: Trie = {}
    for step, items in index_items(shape, value).items():
        found[step] = {} if len(items) > 1 else marked(_fields(shape.item, items[0]))
    return found or None


def named_fields(shape: Shape | None, trie: Trie) -> Trie:
    """The set with the declared fields on the way to its members made members too."""
    found: Trie = {}
    for step, node in trie.items():
        if step == SELF:
            found[SELF] = {}
            continue
        if not node:
            found[step] = node
            continue
        below: Shape | None = None
        named = False
        if shape is not None and step[0] == "f" and shape.is_map:
            below = shape.field(step[2:])
            named = step[2:] in shape.declared
        elif shape is not None and step[0] == "k" and shape.is_list:
            below = shape.item
        inner = named_fields(below, node)
        found[step] = marked(inner) if named else inner
    return found
