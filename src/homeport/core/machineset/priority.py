"""Which Machines go first when there are too many. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from homeport.api.cluster.v1beta2 import Machine
from homeport.capi.name import DELETE_MACHINE, UPDATE_IN_PROGRESS, Condition
from homeport.machinery import condition
from homeport.runtime.clock import parse_time

DELETING = 100.0
ASKED_FOR = 80.0  # the annotation delete-machine
UPDATING = 75.0
UNHEALTHY = 50.0
RANDOM = 20.0
_TEN_DAYS = 10 * 24 * 3600.0


def is_healthy(machine: Machine) -> bool:
    """It has a Node, and nobody says that anything is wrong. A Node that can't be asked is not held against it."""
    if machine.status.node_ref is None:
        return False
    found = [
        condition.find(machine.status.conditions, kind)
        for kind in (Condition.NODE_HEALTHY, Condition.HEALTH_CHECK_SUCCEEDED)
    ]
    return not any(each is not None and each["status"] == "False" for each in found)


def priority(machine: Machine, order: str, now: float) -> float:
    """0 to 100; the highest goes first."""
    if machine.metadata.deletion_timestamp:
        return DELETING
    if DELETE_MACHINE in machine.metadata.annotations:
        return ASKED_FOR
    if UPDATE_IN_PROGRESS in machine.metadata.annotations:
        return UPDATING
    if not is_healthy(machine):
        return UNHEALTHY
    match order:
        case "Oldest":
            return _age(machine, now)
        case "Newest":
            return UNHEALTHY - _age(machine, now)
        case _:
            return RANDOM


def _age(machine: Machine, now: float) -> float:
    """Grows with the age, and never reaches what the unhealthy have."""
    created = machine.metadata.creation_timestamp
    age = now - parse_time(created) if created else 0.0
    return UNHEALTHY * (1.0 - math.exp(-max(age, 0.0) / _TEN_DAYS))


def pick(machines: Iterable[Machine], count: int, order: str, now: float) -> list[Machine]:
    """`count` of them to delete, those that are being deleted already included; names break ties."""
    ranked = sorted(machines, key=lambda m: (-priority(m, order, now), m.metadata.name))
    return ranked[: max(count, 0)]
