"""What a condition says, before it is one."""

from __future__ import annotations

from typing import NamedTuple

from homeport.capi.name import Reason
from homeport.core.related import Related
from homeport.machinery.condition import Condition, Status


class Verdict(NamedTuple):
    status: Status
    reason: str
    message: str = ""


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
