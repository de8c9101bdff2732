"""Fields that others may change: they keep the value that they have in the workload cluster. Pure functions."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from homeport.api.addon.v1alpha1 import DriftRule

Json = dict[str, Any]
_MISSING = object()


def kept(desired: Json, live: Mapping[str, Any], rules: Iterable[DriftRule]) -> Json:
    """`desired` with the live value of each ignored field. Left out, such a field would be reset to its default."""
    made: Json | None = None
    for rule in rules:
        if not matches(rule, desired, live):
            continue
        made = copy.deepcopy(desired) if made is None else made
        for path in rule.paths:
            _carry(made, live, _steps(path))
    return desired if made is None else made


def matches(rule: DriftRule, obj: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """`live` has the namespace, which objects of charts often leave out."""
    meta = obj.get("metadata") or {}
    namespace = meta.get("namespace") or (live.get("metadata") or {}).get("namespace", "")
    return (
        rule.kind == obj.get("kind")
        and rule.api_version in ("", obj.get("apiVersion"))
        and rule.name in ("", meta.get("name"))
        and rule.namespace in ("", namespace)
    )


def _steps(path: str) -> list[str]:
    return [each.replace("~1", "/").replace("~0", "~") for each in path.split("/")[1:]]


def _carry(target: Any, live: Any, steps: list[str]) -> None:
    """The value of one path, from `live` to `target`; away with it if `live` has none."""
    *parents, last = steps
    for step in parents:
        live = _inner(live, step)
        inside = _inner(target, step)
        if inside is _MISSING:
            if live is _MISSING or not isinstance(target, dict):
                return
            inside = target[step] = {}
        target = inside
    value = _inner(live, last)
    if isinstance(target, dict):
        if value is _MISSING:
            target.pop(last, None)
        else:
            target[last] = copy.deepcopy(value)
    elif isinstance(target, list) and last.isdigit() and int(last) < len(target) and value is not _MISSING:
        target[int(last)] = copy.deepcopy(value)


def _inner(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step, _MISSING)
    if isinstance(value, list) and step.isdigit() and int(step) < len(value):
        return value[int(step)]
    return _MISSING
