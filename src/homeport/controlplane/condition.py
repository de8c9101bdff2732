"""Conditions that the status of a control plane should have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from homeport.machinery import condition


@dataclass(frozen=True, slots=True)
class DesiredCondition:
    """A condition that the status should have."""

    type: str
    status: condition.Status
    reason: str
    message: str = ""


def with_desired(
    conditions: list[dict[str, Any]], desired: Iterable[DesiredCondition], *, now: str, generation: int
) -> list[dict[str, Any]]:
    for each in desired:
        conditions = condition.put(
            conditions, each.type, each.status, each.reason, each.message, now=now, generation=generation
        )
    return conditions
