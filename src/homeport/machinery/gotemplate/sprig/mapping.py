"""Maps. set, unset and the merges change the map that they are given, as in Go; the caller's own is a copy by then."""

from __future__ import annotations

from typing import Any, Final

from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import functions
from homeport.machinery.gotemplate.sprig.conversion import text_of
from homeport.machinery.gotemplate.value import NilMap, StringMap, Strings, octets, truth, type_of

Json = dict[str, Any]

CHANGES: Final = frozenset({"set", "unset", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite"})


def make(*values: object) -> Json:
    return {text_of(values[i]): values[i + 1] if i + 1 < len(values) else "" for i in range(0, len(values), 2)}


def put(value: Json, key: str, item: object) -> Json:
    if isinstance(value, NilMap):
        raise CallError("can't set a key: the map is nil")
    value[key] = item
    return value


def unset(value: Json, key: str) -> Json:
    value.pop(key, None)
    return value


def ordered(*values: Json) -> Strings:
    """Go has no order of keys; here it is always the same one."""
    return Strings([key for value in values for key in sorted(value, key=octets)])


def dig(*values: object) -> Any:
    """The value at the end of a way of keys, or the last but one of the arguments if it ends before."""
    if len(values) < 3:
        raise CallError("expected keys, a default and a map")
    *keys, fallback, found = values
    for key in keys:
        if not isinstance(key, str):
            raise CallError(f"keys are strings, not {type_of(key)}")
        if not isinstance(found, dict) or isinstance(found, StringMap):
            raise CallError(f"the path ends before {key!r}: expected a map, found {type_of(found)}")
        if key not in found:
            return fallback
        found = found[key]
    return found


def merge(target: Json, *sources: Json) -> Json:
    target = {} if isinstance(target, NilMap) else target
    for source in sources:
        _merge(target, source, overwrite=False)
    return target


def merge_overwrite(target: Json, *sources: Json) -> Json:
    target = {} if isinstance(target, NilMap) else target
    for source in sources:
        _merge(target, source, overwrite=True)
    return target


def _merge(target: Json, source: Json, *, overwrite: bool) -> None:
    """What is empty counts as absent; maps are merged, lists are not."""
    for key, value in list(source.items()):
        if value is None:
            if overwrite:
                target[key] = None
            continue
        known = target.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            if known is not value:
                _merge(known, value, overwrite=overwrite)
            if known:
                continue
        if overwrite or not truth(known):
            target[key] = value


def copied(value: object) -> Any:
    if isinstance(value, dict):
        return type(value)({key: copied(below) for key, below in value.items()})
    if isinstance(value, list):
        return type(value)([copied(below) for below in value])
    return value


def deep_copy(value: object) -> Any:
    if value is None:
        raise CallError("there is nothing to copy: the value is nil")
    return copied(value)


FUNCTIONS: Final = functions(
    {
        "get": ("map string", lambda value, key: value.get(key, "")),
        "hasKey": ("map string", lambda value, key: key in value),
        "dig": ("...any", dig),
    },
    cheap=True,
) | functions(
    {
        "dict": ("...any", make),
        "set": ("map string any", put),
        "unset": ("map string", unset),
        "pluck": ("string ...map", lambda key, *values: [value[key] for value in values if key in value]),
        "keys": ("...map", ordered),
        "values": ("map", lambda value: [value[key] for key in ordered(value)]),
        "pick": ("map ...string", lambda value, *keys: {key: value[key] for key in keys if key in value}),
        "omit": ("map ...string", lambda value, *keys: {k: v for k, v in value.items() if k not in set(keys)}),
        "merge": ("map ...map", merge),
        "mustMerge": ("map ...map", merge),
        "mergeOverwrite": ("map ...map", merge_overwrite),
        "mustMergeOverwrite": ("map ...map", merge_overwrite),
        "deepCopy": ("any", deep_copy),
        "mustDeepCopy": ("any", deep_copy),
    }
)
