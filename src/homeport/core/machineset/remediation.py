"""What becomes of Machines that a health check has marked. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeport.api.cluster.v1beta2 import Machine
from homeport.capi.name import REMEDIATE_MACHINE, Condition, Reason
from homeport.machinery import condition


@dataclass(frozen=True, slots=True)
class _OfMachine:
    machine: Machine


@dataclass(frozen=True, slots=True)
class Clear(_OfMachine):
    """The Machine is healthy again: no remediation is needed."""


@dataclass(frozen=True, slots=True)
class Defer(_OfMachine):
    """The Machine is not replaced now, or not by this controller."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Replace(_OfMachine):
    """The Machine is deleted; a new one replaces it as any deleted Machine."""


Action = Clear | Defer | Replace


def _status(machine: Machine, kind: str) -> str:
    found = condition.find(machine.status.conditions, kind)
    return str(found["status"]) if found is not None else ""


def is_unhealthy(machine: Machine) -> bool:
    return _status(machine, Condition.HEALTH_CHECK_SUCCEEDED) == "False"


def is_marked(machine: Machine) -> bool:
    """Unhealthy, and it is on its owner to do something about it."""
    return is_unhealthy(machine) and _status(machine, Condition.OWNER_REMEDIATED) == "False"


def in_flight(machines: Sequence[Machine]) -> int:
    """Remediations by this MachineSet that have not finished."""
    count = 0
    for machine in machines:
        found = condition.find(machine.status.conditions, Condition.OWNER_REMEDIATED)
        if machine.metadata.deletion_timestamp and found is not None:
            count += found["status"] == "False" and found["reason"] == Reason.MACHINE_DELETING
    return count


def candidates(machines: Sequence[Machine]) -> list[Machine]:
    """Those to be replaced: asked for by people first, then the newest, which have the least to lose."""
    found = [m for m in machines if is_marked(m) and not m.metadata.deletion_timestamp]
    found.sort(key=lambda m: m.metadata.name)
    found.sort(key=lambda m: m.metadata.creation_timestamp or "", reverse=True)
    return sorted(found, key=lambda m: REMEDIATE_MACHINE not in m.metadata.annotations)


def recovered(machines: Sequence[Machine]) -> list[Machine]:
    return [
        m
        for m in machines
        if not m.metadata.deletion_timestamp
        and _status(m, Condition.HEALTH_CHECK_SUCCEEDED) == "True"
        and _status(m, Condition.OWNER_REMEDIATED) == "False"
    ]


def plan(
    machines: Sequence[Machine], *, outdated: bool, limit: int | None, limit_text: str, blocked: Sequence[str]
) -> list[Action]:
    """`outdated`: a rollout is about to delete all of them. `blocked`: why no Machine could be made now."""
    actions: list[Action] = [Clear(machine) for machine in recovered(machines)]
    marked = candidates(machines)
    if outdated:
        text = "the rollout of a newer template will replace it"
        return actions + [Defer(machine, Reason.CANNOT_BE_REMEDIATED, text) for machine in marked]
    room = len(marked) if limit is None else max(limit - in_flight(machines), 0)
    if blocked:
        text = "waiting, because a new Machine could not be created: " + "; ".join(blocked)
        actions += [Defer(machine, Reason.REMEDIATION_DEFERRED, text) for machine in marked[:room]]
    else:
        actions += [Replace(machine) for machine in marked[:room]]
    text = f"waiting for other remediations to finish: spec.remediation.maxInFlight is {limit_text}"
    return actions + [Defer(machine, Reason.REMEDIATION_DEFERRED, text) for machine in marked[room:]]
