"""What a KubeadmConfig says about itself. Pure: from what was observed to conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from homeport.capi.name import Condition, Reason
from homeport.machinery import condition


@dataclass(frozen=True, slots=True)
class Finding:
    """Of one condition."""

    status: condition.Status
    reason: str
    message: str = ""


AVAILABLE = Finding("True", Reason.AVAILABLE)


def missing(message: str) -> Finding:
    return Finding("False", Reason.NOT_AVAILABLE, message)


def unusable(message: str) -> Finding:
    """Of certificates: whether they can be had is not known."""
    return Finding("Unknown", Reason.INTERNAL_ERROR, message)


def put_conditions(
    before: list[dict[str, Any]], *, data: Finding, certificates: Finding | None, now: str, generation: int
) -> list[dict[str, Any]]:
    """`certificates` None: nobody looked yet, and what was said before stays."""
    result = before
    found = {Condition.DATA_SECRET_AVAILABLE: data}
    if certificates is not None:
        found[Condition.CERTIFICATES_AVAILABLE] = certificates
    for kind, finding in found.items():
        result = condition.put(
            result, kind, finding.status, finding.reason, finding.message, now=now, generation=generation
        )
    ready = summarize(result)
    return condition.put(
        result, Condition.READY, ready.status, ready.reason, ready.message, now=now, generation=generation
    )


def summarize(conditions: list[dict[str, Any]]) -> Finding:
    """Ready: what is wrong counts before what is unknown, and both name the condition they come from."""
    parts = [condition.find(conditions, k) for k in (Condition.DATA_SECRET_AVAILABLE, Condition.CERTIFICATES_AVAILABLE)]
    for status, reason in (("False", Reason.NOT_READY), ("Unknown", Reason.READY_UNKNOWN)):
        lines = [f"* {each['type']}: {each['message']}" for each in parts if each and each["status"] == status]
        if lines:
            return Finding("False" if status == "False" else "Unknown", reason, "\n".join(lines))
    return Finding("True", Reason.READY)
