"""What a vendor itself records about machines that do not come up: failed and overdue tasks, quotas, warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

OVERDUE_SECONDS = 900.0
RECENT_SECONDS = 3600.0  # what failed earlier was probably tried again


@dataclass(frozen=True, slots=True)
class Trouble:
    """`about`: the machine, project or namespace. `message`: a sentence for the user."""

    reason: Literal["TaskFailed", "TaskOverdue", "QuotaUsedUp", "QuotaNearlyUsedUp", "VendorWarning"]
    about: str
    message: str


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit that the vendor enforces. Numbers are in `unit`."""

    resource: str
    limit: float
    used: float
    unit: str = ""


_NEARLY = 0.9


def judge(owner: str, quotas: Sequence[Quota], cure: str) -> list[Trouble]:
    """`owner`: whose quota it is, as in `project prod`. `cure`: what to do about it."""
    found: list[Trouble] = []
    for each in quotas:
        if each.limit <= 0 or each.used < each.limit * _NEARLY:
            continue
        full = each.used >= each.limit
        amount = f"{each.used:g} of {each.limit:g} {each.unit}".rstrip()
        text = f"{owner}: {amount} {each.resource} are used: {cure}"
        found.append(Trouble("QuotaUsedUp" if full else "QuotaNearlyUsedUp", owner, text))
    return found
