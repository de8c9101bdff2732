"""What a health check writes on Machines. Pure."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.capi.name import Condition, Reason
from homeport.core.machinehealthcheck.check import Unhealthy
from homeport.machinery import condition

Conditions = list[condition.Condition]


def healthy(machine: Machine, now: str) -> Conditions:
    """The Machine is healthy. Withdraws a remediation that has not started; one that has started is its owner's."""
    found = _put(machine, machine.status.conditions, Condition.HEALTH_CHECK_SUCCEEDED, "True", _OK, "", now)
    waiting = condition.find(found, Condition.OWNER_REMEDIATED)
    if waiting is not None and waiting["status"] == "False" and waiting["reason"] == Reason.WAITING_FOR_REMEDIATION:
        found = condition.drop(found, Condition.OWNER_REMEDIATED)
    return condition.drop(found, Condition.EXTERNALLY_REMEDIATED)


_OK = Reason.HEALTH_CHECK_SUCCEEDED


def unhealthy(machine: Machine, verdict: Unhealthy, now: str) -> Conditions:
    """What is wrong with it; whether anything is done about it is another question."""
    return _put(
        machine,
        machine.status.conditions,
        Condition.HEALTH_CHECK_SUCCEEDED,
        "False",
        verdict.reason,
        verdict.message,
        now,
    )


def for_owner(machine: Machine, conditions: Conditions, now: str) -> Conditions:
    """Asks its owner to remediate it, unless that is under way."""
    known = condition.find(conditions, Condition.OWNER_REMEDIATED)
    if known is not None and known["status"] != "True":
        return conditions
    text = "waiting for its owner to replace it"
    return _put(machine, conditions, Condition.OWNER_REMEDIATED, "False", Reason.WAITING_FOR_REMEDIATION, text, now)


def for_others(machine: Machine, conditions: Conditions, reason: str, message: str, now: str) -> Conditions:
    return _put(machine, conditions, Condition.EXTERNALLY_REMEDIATED, "False", reason, message, now)


def _put(
    machine: Machine,
    conditions: Conditions,
    kind: str,
    status: condition.Status,
    reason: str,
    message: str,
    now: str,
) -> Conditions:
    """An equal one is kept as it is, so that a Machine is written to only when there is news."""
    known = condition.find(conditions, kind)
    if known is not None and _said(known) == (status, reason, message):
        return conditions
    return condition.put(conditions, kind, status, reason, message, now=now, generation=machine.metadata.generation)


def _said(found: Any) -> tuple[str, str, str]:
    return found["status"], found["reason"], found.get("message", "")
