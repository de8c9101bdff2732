"""Conditions (metav1.Condition) as plain dicts: set, find, compare. The transition time moves only with the status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

Condition = dict[str, Any]
Status = Literal["True", "False", "Unknown"]


def find(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> Mapping[str, Any] | None:
    return next((c for c in conditions or () if c.get("type") == kind), None)


def is_true(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> bool:
    found = find(conditions, kind)
    return found is not None and found.get("status") == "True"


def put(
    conditions: Sequence[Condition] | None,
    kind: str,
    status: Status,
    reason: str,
    message: str = "",
    *,
    now: str,
    generation: int | None = None,
) -> list[Condition]:
    """The conditions with this one set: in its old place, or at the end. An equal one is kept as it is."""
    fresh: Condition = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}
    if generation is not None:
        fresh["observedGeneration"] = generation
    result = list(conditions or ())
    for i, old in enumerate(result):
        if old.get("type") == kind:
            if old.get("status") == status and old.get("lastTransitionTime"):
                fresh["lastTransitionTime"] = old["lastTransitionTime"]
            result[i] = fresh
            return result
    result.append(fresh)
    return result


def drop(conditions: Sequence[Condition] | None, kind: str) -> list[Condition]:
    return [c for c in conditions or () if c.get("type") != kind]
