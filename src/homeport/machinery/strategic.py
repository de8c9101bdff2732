"""Strategic merge patch: a merge patch that knows which lists merge by key and which are replaced.

The schema says it (`x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`); only built-in kinds have that.
Directives in the patch: `$patch` (replace, delete), `$setElementOrder/<list>`, `$deleteFromPrimitiveList/<list>` and
`$retainKeys`. Inputs are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from homeport.machinery.patch import PatchError, same, without_nulls
from homeport.machinery.schema.node import Schema

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder"
_DELETE: Final = "$deleteFromPrimitiveList"

Json = dict[str, Any]


def strategic_merge(doc: Mapping[str, Any], patch: object, schema: Schema | None) -> Json:
    if schema is None:
        raise PatchError("strategic merge patch format is not supported")
    if not isinstance(patch, dict):
        raise PatchError("a strategic merge patch must be an object")
    try:
        return _merge_map(dict(doc), patch, schema)
    except RecursionError:
        raise PatchError("the patch is nested too deeply") from None


def _merge_map(original: Json, patch: Json, schema: Schema | None) -> Json:
    """`original` is ours to change at its top level; `patch` is read only."""
    if _DIRECTIVE in patch:
        return _directed(patch)
    original = _retained(original, patch)
    ordered = _merge_ordered(original, patch, schema)
    for key, value in patch.items():
        if key in ordered or key == _RETAIN or key.startswith(_ORDER):
            continue
        if key.startswith(_DELETE):
            _delete_items(original, key, value)
        elif value is None:
            original.pop(key, None)
        else:
            _merge_field(original, key, value, schema)
    return original


def _directed(patch: Json) -> Json:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise PatchError(f"unknown patch type: {directive} in map: {_fields(patch)}")


def _retained(original: Json, patch: Json) -> Json:
    """$retainKeys drops every field that it doesn't list. The patch may set only what it lists."""
    if _RETAIN not in patch:
        return original
    kept = patch[_RETAIN]
    if not isinstance(kept, list):
        raise PatchError("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in kept:
            raise PatchError("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in kept}


def _list_name(key: str, prefix: str, what: str) -> str:
    found, slash, name = key.partition("/")
    if found != prefix or not slash:
        raise PatchError(f"invalid patch format of {what}", path=key)
    return name


def _delete_items(original: Json, key: str, values: Any) -> None:
    name = _list_name(key, _DELETE, "primitive list")
    found = original.get(name)
    if not isinstance(found, list) or not isinstance(values, list):
        return
    _element_type(found, values)
    original[name] = [item for item in found if not any(same(item, value) for value in values)]


def _merge_field(original: Json, key: str, value: Any, schema: Schema | None) -> None:
    present = original.get(key)
    child = schema.child(key) if schema else None
    strategy = _strategy(child)
    if isinstance(value, dict) and isinstance(present, dict):
        original[key] = value if strategy == "replace" else _merge_map(dict(present), value, child)
    elif isinstance(value, list) and isinstance(present, list):
        original[key] = _merge_list(present, value, child) if strategy == "merge" else value
    else:
        _take(original, key, without_nulls(value))


def _take(original: Json, key: str, value: Any) -> None:
    """Sets a value that meets none of its kind, less the directives in it."""
    kept, stays = _undirected(value)
    if stays:
        original[key] = kept
    else:
        original.pop(key, None)


def _undirected(value: Any) -> tuple[Any, bool]:
    """The value without directives, and whether it stays at all (an object that is itself a directive doesn't)."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return None, False
        below = {key: _undirected(item) for key, item in value.items()}
        return {key: item for key, (item, stays) in below.items() if stays}, True
    if isinstance(value, list):
        items = [_undirected(item) for item in value]
        return [item for item, stays in items if stays], True
    return value, True


def _strategy(schema: Schema | None) -> str:
    strategies = schema.patch_strategies if schema else ()
    rest = [strategy for strategy in strategies if strategy != "retainKeys"]
    return rest[0] if rest else ""


def _merge_list(original: list[Any], patch: list[Any], schema: Schema | None) -> list[Any]:
    if not original and not patch:
        return original
    key = schema.patch_merge_key if schema else ""
    if _element_type(original, patch) is not dict:
        merged = _distinct([*original, *patch])
        return _arrange(merged, patch, original, _reader(""))
    if not key:
        raise PatchError("cannot merge lists without merge key")
    kept, rest, replaced = _special_elements(original, patch, key)
    if replaced:
        return rest
    merged = list(kept)
    for item in rest:
        value = _merge_value(item, key)
        index = next((i for i, found in enumerate(merged) if _has(found, key, value)), None)
        if index is None:
            merged.append(item)
        else:
            merged[index] = _merge_map(dict(merged[index]), item, schema.items if schema else None)
    return _arrange(merged, rest, kept, _reader(key))


def _special_elements(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any], bool]:
    """Acts on `$patch` items: what is left of the original, the plain items, whether those replace everything."""
    plain: list[Any] = []
    replaced = False
    for item in patch:
        directive = item.get(_DIRECTIVE)
        if _DIRECTIVE not in item:
            plain.append(item)
        elif directive == "delete":
            value = _merge_value(item, key)
            original = [found for found in original if not _has(found, key, value)]
        elif directive == "replace":
            replaced = True
        elif directive == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch")
        else:
            raise PatchError(f"unknown patch type: {directive} in map: {_fields(item)}")
    return original, plain, replaced


def _merge_value(item: Any, key: str) -> Any:
    if not isinstance(item, dict):
        raise PatchError(f"expected an object with merge key {key}, but received a {type(item).__name__}")
    if key not in item:
        raise PatchError(f"map: {_fields(item)} does not contain declared merge key: {key}")
    return item[key]


def _fields(item: Mapping[str, Any]) -> str:
    return "map[" + " ".join(f"{key}:{value}" for key, value in sorted(item.items())) + "]"


def _has(item: Any, key: str, value: Any) -> bool:
    return isinstance(item, dict) and key in item and same(item[key], value)


def _reader(key: str) -> Callable[[Any], Any]:
    """What an item is known by: the value under the merge key, or itself."""
    return (lambda item: _merge_value(item, key)) if key else (lambda item: item)


def _element_type(*lists: list[Any]) -> type:
    kinds = {_kind(item) for items in lists for item in items}
    if list in kinds:
        raise PatchError("lists of lists are not supported")
    if len(kinds) > 1:
        raise PatchError("list element types are not identical")
    return kinds.pop() if kinds else str


def _kind(item: Any) -> type:
    return float if isinstance(item, int) and not isinstance(item, bool) else type(item)


def _distinct(items: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not any(same(item, other) for other in found):
            found.append(item)
    return found


def _merge_ordered(original: Json, patch: Json, schema: Schema | None) -> set[str]:
    """Lists that come with $setElementOrder: merged, then arranged as it says. Returns the lists it took care of."""
    done: set[str] = set()
    for key, order in patch.items():
        if not key.startswith(_ORDER):
            continue
        name = _list_name(key, _ORDER, "setElementOrder list")
        present, given = original.get(name), patch.get(name)
        for value in (order, *([present] if present is not None else ()), *([given] if given is not None else ())):
            if not isinstance(value, list):
                raise PatchError("invalid patch format of setElementOrder list", path=key)
        if name in patch and given is None:
            continue  # null removes the list; the order of what is gone says nothing
        child = schema.child(name) if schema else None
        merge_key = child.patch_merge_key if child else ""
        _check_order(given or [], order, merge_key)
        if present is None and given is None:
            continue
        if present is None:
            merged = _undirected(given)[0]
        elif given is None:
            merged = present
        else:
            merged = _merge_list(present, given, child) if _strategy(child) == "merge" else given
        done.add(name)
        original[name] = _arrange(merged, order, present or [], _reader(merge_key))
    return done


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Items of the patch must stand in the order list, in the same sequence."""
    if not patch or not order:
        return
    read = _reader(key)
    wanted = [read(item) for item in patch if not (isinstance(item, dict) and _DIRECTIVE in item)]
    index = 0
    for item in order:
        if index < len(wanted) and same(wanted[index], read(item)):
            index += 1
    if index < len(wanted):
        raise PatchError(f"The order in patch list:\n{patch}\n doesn't match {_ORDER} list:\n{order}\n")


def _arrange(merged: list[Any], order: list[Any], live: list[Any], read: Callable[[Any], Any]) -> list[Any]:
    """Items named by `order` in its sequence; the others keep their place in `live` as well as that can be."""
    ordered = [read(item) for item in order]
    lived = [read(item) for item in live]
    named = sorted((item for item in merged if _at(ordered, read(item)) >= 0), key=lambda i: _at(ordered, read(i)))
    others = [item for item in merged if _at(ordered, read(item)) < 0]
    others.sort(key=lambda item: _at(lived, read(item)) if _at(lived, read(item)) >= 0 else len(lived))
    result: list[Any] = []
    rest = iter(others)
    waiting = next(rest, None)
    for item in named:
        place = _at(lived, read(item))
        while waiting is not None and 0 <= _at(lived, read(waiting)) < place:
            result.append(waiting)
            waiting = next(rest, None)
        result.append(item)
    if waiting is not None:
        result += [waiting, *rest]
    return result


def _at(values: list[Any], value: Any) -> int:
    return next((i for i, found in enumerate(values) if same(found, value)), -1)
