"""Pieces that several kinds print alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from homeport.apiserver.kinds.age import age
from homeport.apiserver.resource import Json

NONE = "<none>"
UNSET = "<unset>"
Cell = str | int


def part(obj: Mapping[str, Any], *path: str) -> Any:
    """The value at a path of fields, or None."""
    value: Any = obj
    for field in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(field)
    return value


def name_of(obj: Json) -> str:
    return part(obj, "metadata", "name") or ""


def age_of(obj: Json, now: datetime) -> str:
    return age(part(obj, "metadata", "creationTimestamp"), now)


def text(obj: Json, *path: str, default: str = "") -> str:
    value = part(obj, *path)
    return default if value is None or value == "" else str(value)


def count(obj: Json, *path: str) -> int:
    value = part(obj, *path)
    if isinstance(value, (Mapping, list)):
        return len(value)
    return value if isinstance(value, int) else 0


def condition(obj: Json, kind: str) -> Json | None:
    found: Json
    for found in part(obj, "status", "conditions") or ():
        if found.get("type") == kind:
            return found
    return None


def holds(obj: Json, kind: str) -> bool:
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def labels(value: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value[key]}" for key in sorted(value)) if value else NONE


_OPERATORS = {
    "In": "{key} in ({values})",
    "NotIn": "{key} notin ({values})",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}


def selector(value: Json | None) -> str:
    """A label selector in the form that `-l` takes."""
    if not value:
        return NONE
    parts = [(key, f"{key}={match}") for key, match in (value.get("matchLabels") or {}).items()]
    for rule in value.get("matchExpressions") or ():
        form = _OPERATORS.get(rule.get("operator", ""))
        if form is None:
            return "<error>"
        values = ",".join(sorted(rule.get("values") or ()))
        parts.append((rule.get("key", ""), form.format(key=rule.get("key", ""), values=values)))
    return ",".join(shown for _, shown in sorted(parts)) or NONE


def template(obj: Json, *path: str) -> list[str]:
    """Names and images of the containers of a pod template."""
    containers = part(obj, *path, "spec", "containers") or ()
    names = ",".join(c.get("name", "") for c in containers)
    return [names, ",".join(c.get("image", "") for c in containers)]


def first_few(values: Iterable[str], limit: int = 3) -> str:
    """The first ones, and how many more there are."""
    found = list(values)
    shown = ",".join(found[:limit])
    return f"{shown} + {len(found) - limit} more..." if len(found) > limit else shown
