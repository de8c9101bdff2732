"""How many Machines may be unhealthy before nothing is replaced any more: then something else is wrong. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from homeport.api.cluster.v1beta2 import MachineHealthCheckRemediationTriggerIf
from homeport.capi.name import Reason
from homeport.core.machineset.share import share_of

_RANGE = re.compile(r"\[([0-9]+)-([0-9]+)\]")
_DEFAULT = "100%"


@dataclass(frozen=True, slots=True)
class Budget:
    allowed: bool
    left: int  # so many more may become unhealthy
    message: str = ""
    reason: str = Reason.TOO_MANY_UNHEALTHY  # why not


def weigh(trigger: MachineHealthCheckRemediationTriggerIf, *, expected: int, healthy: int) -> Budget:
    """What is not known to be healthy counts as unhealthy."""
    unhealthy = max(expected - healthy, 0)
    if trigger.unhealthy_in_range:
        least, most = parse_range(trigger.unhealthy_in_range)
        if least <= unhealthy <= most:
            return Budget(True, most - unhealthy)
        text = f"spec.remediation.triggerIf.unhealthyInRange is {trigger.unhealthy_in_range}"
    else:
        given = trigger.unhealthy_less_than_or_equal_to
        limit = _DEFAULT if given is None else given
        most = share_of(limit, expected, up=False)
        if unhealthy <= most:
            return Budget(True, most - unhealthy)
        text = f"spec.remediation.triggerIf.unhealthyLessThanOrEqualTo is {limit}"
    return Budget(False, 0, f"{unhealthy} of {expected} Machines are not healthy, and {text}: none is replaced")


def parse_range(text: str) -> tuple[int, int]:
    """Raises ValueError."""
    found = _RANGE.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        raise ValueError(f"{text!r} is not a valid range: expected for example [3-5]")
    return int(found[1]), int(found[2])
