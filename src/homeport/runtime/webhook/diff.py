"""Before and after as a JSON patch (RFC 6902): the answer of a mutating webhook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.machinery.patch import same

Operation = dict[str, Any]


def json_patch_diff(before: object, after: object) -> list[Operation]:
    """Operations that make `after` of `before`; none when they are equal. Lists: what both begin and end with stays."""
    return list(_diff("", before, after))


def _diff(path: str, before: Any, after: Any) -> Iterator[Operation]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _diff_dict(path, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _diff_list(path, before, after)
    elif not same(before, after):
        yield {"op": "replace", "path": path, "value": after}


def _diff_dict(path: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Operation]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
    for key, value in after.items():
        below = f"{path}/{_escaped(key)}"
        if key in before:
            yield from _diff(below, before[key], value)
        else:
            yield {"op": "add", "path": below, "value": value}


def _diff_list(path: str, before: list[Any], after: list[Any]) -> Iterator[Operation]:
    shorter = min(len(before), len(after))
    head = 0
    while head < shorter and same(before[head], after[head]):
        head += 1
    tail = 0
    while tail < shorter - head and same(before[-1 - tail], after[-1 - tail]):
        tail += 1
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    both = min(len(old), len(new))
    for i in range(both):
        yield from _diff(f"{path}/{head + i}", old[i], new[i])
    for i in reversed(range(both, len(old))):  # from the end, so that the places before it keep their numbers
        yield {"op": "remove", "path": f"{path}/{head + i}"}
    for i in range(both, len(new)):
        yield {"op": "add", "path": f"{path}/{head + i}", "value": new[i]}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
