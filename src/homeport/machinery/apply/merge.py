"""An applied configuration into an object, and fields out of it. Inputs are not changed; results share with them."""

from __future__ import annotations

from typing import Any

from homeport.machinery.apply.compare import ShapeError, index_items, item_element
from homeport.machinery.apply.element import show
from homeport.machinery.apply.fieldset import SELF, Trie, is_member
from homeport.machinery.apply.shape import DEDUCED, Shape
from homeport.machinery.schema.node import MISSING

Json = dict[str, Any]


def merge(shape: Shape, live: object, applied: object) -> Any:
    """`applied` wins in leaves; nothing is removed. Both values are there; null is a value."""
    kind = applied if applied is not None else live
    if isinstance(kind, dict) and shape.is_map and not shape.map_atomic:
        old = live if isinstance(live, dict) else {}
        new = applied if isinstance(applied, dict) else {}
        if old or new:
            return _merge_maps(shape, old, new)
    elif isinstance(kind, list) and shape.is_list and not shape.list_atomic:
        before = live if isinstance(live, list) else []
        after = applied if isinstance(applied, list) else []
        if before or after:
            return _merge_lists(shape, before, after)
    return applied


def _merge_maps(shape: Shape, live: Json, applied: Json) -> Json:
    result = dict(live)
    for name, value in applied.items():
        present = live.get(name, MISSING)
        result[name] = value if present is MISSING else merge(shape.field(name) or DEDUCED, present, value)
    return result


def _merge_lists(shape: Shape, live: list[Any], applied: list[Any]) -> list[Any]:
    """Items of both. The order is the applied one; what only the live object has stays beside its neighbours."""
    left = [item_element(shape, item) for item in live]
    right = [item_element(shape, item) for item in applied]
    old, new = index_items(shape, live), index_items(shape, applied)
    shared = [step for step in right if step in old]
    merged: set[str] = set()
    result: list[Any] = []

    def take(step: str) -> None:
        merged.add(step)
        found = old.get(step)
        value = new[step][0]
        # Duplicates in the live list are replaced, not merged with.
        result.append(merge(shape.item, found[0], value) if found and len(found) == 1 else value)

    index, to, wanted = 0, 0, 0
    while index < len(left) or to < len(right):
        if index < len(left) and to < len(right):
            if left[index] == right[to]:
                take(right[to])
                index, to, wanted = index + 1, to + 1, wanted + 1
                continue
            if left[index] in new and wanted < len(shared) and shared[wanted] != left[index]:
                index += 1  # shared, but its turn in the applied order is another
                continue
        if index < len(left):
            if left[index] not in new:
                result.append(live[index])
                index += 1
                continue
            if left[index] in merged:
                index += 1
        if to < len(right):
            step = right[to]
            take(step)
            to += 1
            if wanted < len(shared) and shared[wanted] == step:
                wanted += 1
    return result


def remove(shape: Shape, value: object, fields: Trie) -> Any:
    """The value less `fields`. What a removal leaves empty becomes null, as upstream leaves it."""
    if isinstance(value, dict) and shape.is_map:
        return _remove_from_map(shape, value, fields) if value and not shape.map_atomic else None
    if isinstance(value, list) and shape.is_list:
        return _remove_from_list(shape, value, fields) if value and not shape.list_atomic else None
    return value


def _remove_from_map(shape: Shape, value: Json, fields: Trie) -> Json | None:
    result: Json = {}
    for name, below in value.items():
        node = fields.get("f:" + name)
        if node is None:
            result[name] = below
        elif not is_member(node):
            result[name] = remove(shape.field(name) or DEDUCED, below, node)
    return result or None


def _remove_from_list(shape: Shape, value: list[Any], fields: Trie) -> list[Any] | None:
    result = []
    for item in value:
        node = fields.get(item_element(shape, item))
        if node is None:
            result.append(item)
        elif not is_member(node):
            result.append(remove(shape.item, item, node))
    return result or None


def check(shape: Shape | None, value: object, path: str = "") -> list[str]:
    """What keeps a configuration from being applied: wrong types, undeclared fields, duplicate list items."""
    if shape is None:
        return [f"{path}: field not declared in schema"]
    if value is None:
        return []
    if isinstance(value, dict) and shape.is_map:
        return [error for name, below in value.items() for error in check(shape.field(name), below, f"{path}.{name}")]
    if isinstance(value, list) and shape.is_list:
        return _check_list(shape, value, path)
    return _check_scalar(shape, value, path)


def _check_list(shape: Shape, value: list[Any], path: str) -> list[str]:
    errors: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(value):
        step = f"[{index}]"
        if not shape.list_atomic:
            try:
                written = item_element(shape, item)
            except ShapeError as error:
                return [*errors, f"{path}: element {index}: {error}"]
            step = show(written)
            if written in seen:
                errors.append(f"{path}: duplicate entries for key {step}")
            seen.add(written)
        errors += check(shape.item, item, path + step)
    return errors


def _check_scalar(shape: Shape, value: Any, path: str) -> list[str]:
    if shape.is_map and not shape.scalar:
        return [f"{path}: expected map, got {_go(value)}"]
    if shape.is_list and not shape.scalar:
        return [f"{path}: expected list, got {_go(value)}"]
    kind = shape.scalar
    if kind == "numeric" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return [f"{path}: expected numeric (int or float), got {_go_type(value)}"]
    if kind == "string" and not isinstance(value, str):
        return [f"{path}: expected string, got &value.valueUnstructured{{Value:{_go_literal(value)}}}"]
    if kind == "boolean" and not isinstance(value, bool):
        return [f"{path}: expected boolean, got {_go(value)}"]
    if kind == "untyped" and isinstance(value, dict | list):
        return [f"{path}: expected any scalar, got {_go(value)}"]
    return []


def _go_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "map[string]interface {}"
    return "[]interface {}" if isinstance(value, list) else "string"


def _go(value: Any) -> str:
    """As Go prints a wrapped value."""
    return f"&{{{_go_plain(value)}}}"


def _go_plain(value: Any) -> str:
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go_plain(below)}" for key, below in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_go_plain(below) for below in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def _go_literal(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f'"{key}":{_go_literal(below)}' for key, below in sorted(value.items()))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(_go_literal(below) for below in value) + "}"
    if isinstance(value, str):
        return f'"{value}"'
    return "interface {}(nil)" if value is None else _go_plain(value)


def settle(shape: Shape, trie: Trie) -> Trie:
    """A set written under an older schema: fields below what is atomic by now give way to the atomic field itself."""
    return _settle(shape, trie)


def _settle(shape: Shape, trie: Trie) -> Trie:
    result: Trie = {}
    changed = False
    for step, node in trie.items():
        below = _below(shape, step) if step != SELF and node else None
        settled = node
        if below is not None:
            settled = {} if _became_atomic(below, node) else _settle(below, node)
        changed = changed or settled is not node
        result[step] = settled
    return result if changed else trie


def _below(shape: Shape, step: str) -> Shape | None:
    if step[0] == "f" and shape.is_map:
        return shape.field(step[2:])
    return shape.item if step[0] in "kvi" and shape.is_list else None


def _became_atomic(shape: Shape, node: Trie) -> bool:
    steps = {step[0] for step in node if step != SELF}
    if "f" in steps:
        return shape.is_map and shape.map_atomic
    return shape.is_list and shape.list_atomic and not shape.is_map
