"""The status, reason and message of a condition, and how they get into an object's status."""

from __future__ import annotations

from typing import Any, NamedTuple

from homeport.capi.name import Reason
from homeport.core.related import Related
from homeport.machinery import condition
from homeport.machinery.condition import Condition, Status
from homeport.runtime.clock import rfc3339


class Verdict(NamedTuple):
    status: Status
    reason: str
    message: str = ""


def put_verdict(obj: Any, kind: str, verdict: Verdict, now: float) -> None:
    """Sets one condition of `obj`. `now` becomes its transition time if its status changes."""
    obj.status.conditions = condition.put(
        obj.status.conditions,
        kind,
        verdict.status,
        verdict.reason,
        verdict.message,
        now=rfc3339(now),
        generation=obj.metadata.generation,
    )


def deletion_verdict(obj: Any, seen: Any) -> Verdict:
    """The condition Deleting of a Cluster or Machine, from what its reconcile observed."""
    if not obj.metadata.deletion_timestamp:
        return Verdict("False", Reason.NOT_DELETING)
    if seen.trouble is not None:
        return Verdict("True", Reason.INTERNAL_ERROR, seen.trouble[1])
    if seen.deletion is None:
        return Verdict("True", Reason.DELETION_COMPLETED, "everything has been deleted")
    return Verdict("True", seen.deletion.reason, seen.deletion.message)


def mirrored(
    said: Condition | None,
    related: Related,
    *,
    fallback: bool,
    waiting: str,
    reasons: tuple[str, str] = (Reason.READY, Reason.NOT_READY),
) -> Verdict:
    """What a provider's object says of itself; where it says nothing, whether it is as far as it has to be.

    A message always names the object that it is about.
    """
    if said is None:
        return Verdict("True", reasons[0]) if fallback else Verdict("False", reasons[1], f"{related} {waiting}")
    if said["reason"] == Reason.NO_REASON_REPORTED:
        said = {**said, "reason": reasons[0] if said["status"] == "True" else reasons[1]}
    text = said["message"]
    if said["status"] != "True":
        text = f"{related}: {text}" if text else f"{related} {waiting}"
    return Verdict(said["status"], said["reason"], text)
