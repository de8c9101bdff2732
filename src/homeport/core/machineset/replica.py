"""Counts of Machines and what is said about many of them together. Pure; shared with MachineDeployments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from homeport.api.cluster.v1beta2 import Machine, StatusVersion
from homeport.capi import version as versions
from homeport.capi.name import UPDATE_IN_PROGRESS, Condition, Reason
from homeport.capi.object import summary
from homeport.core.machineset.remediation import is_marked, is_unhealthy
from homeport.core.verdict import Verdict
from homeport.machinery import condition
from homeport.runtime.clock import parse_time

LATE_SECONDS = 15 * 60.0  # a deletion that takes longer is worth a word
_NAMES = 3


class Counts(NamedTuple):
    replicas: int
    ready: int
    available: int
    up_to_date: int


def is_available(machine: Machine) -> bool:
    """A Machine that is going away is of no use any more, whatever it said last."""
    if machine.metadata.deletion_timestamp or UPDATE_IN_PROGRESS in machine.metadata.annotations:
        return False
    return condition.is_true(machine.status.conditions, Condition.AVAILABLE)


def count(machines: Sequence[Machine]) -> Counts:
    steady = [m for m in machines if UPDATE_IN_PROGRESS not in m.metadata.annotations]
    return Counts(
        len(machines),
        sum(condition.is_true(m.status.conditions, Condition.READY) for m in steady),
        sum(is_available(m) for m in steady),
        sum(condition.is_true(m.status.conditions, Condition.UP_TO_DATE) for m in steady),
    )


def count_versions(machines: Iterable[Machine]) -> list[StatusVersion]:
    """What the Machines are asked to run, oldest first."""
    counter = Counter(m.spec.version for m in machines if m.spec.version)
    return [
        StatusVersion(version=text, replicas=number)
        for text, number in sorted(counter.items(), key=lambda item: versions.parse(item[0]).build_key)
    ]


def listed(names: Iterable[str]) -> str:
    """`a, b, c, ... (2 more)`"""
    ordered = sorted(names)
    shown = ", ".join(ordered[:_NAMES])
    return f"{shown}, ... ({len(ordered) - _NAMES} more)" if len(ordered) > _NAMES else shown


def late(machines: Iterable[Machine], now: float) -> str:
    """Which Machines take very long to go, and what they say they wait for."""
    stuck = [m for m in machines if _deleting_for(m, now) > LATE_SECONDS]
    if not stuck:
        return ""
    names = listed(m.metadata.name for m in stuck)
    text = f"{names} {'is' if len(stuck) == 1 else 'are'} being deleted for more than 15 minutes"
    found = condition.find(stuck[0].status.conditions, Condition.DELETING)
    if found is not None and found.get("message"):
        text += f"; {stuck[0].metadata.name}: {found['message']}"
    return text


def late_in(machines: Iterable[Machine], now: float) -> float | None:
    """Seconds until `late` says something else; None: it will not by itself."""
    left = [LATE_SECONDS - _deleting_for(m, now) for m in machines if m.metadata.deletion_timestamp]
    waiting = [seconds for seconds in left if seconds >= 0]
    return min(waiting) + 1.0 if waiting else None


def _deleting_for(machine: Machine, now: float) -> float:
    stamp = machine.metadata.deletion_timestamp
    return now - parse_time(stamp) if stamp else -1.0


# -- conditions ------------------------------------------------------------------------------------------------------


def scaling_up(current: int, wanted: int, *, deleting: bool, blocked: Sequence[str]) -> Verdict:
    why = "; ".join(dict.fromkeys(blocked))
    if deleting or current >= wanted:
        text = f"scaling up would be blocked: {why}" if why and not deleting else ""
        return Verdict("False", Reason.NOT_SCALING_UP, text)
    text = f"scaling up from {current} to {wanted} replicas"
    return Verdict("True", Reason.SCALING_UP, f"{text} is blocked: {why}" if why else text)


def scaling_down(current: int, wanted: int, *, deleting: bool, slow: str) -> Verdict:
    goal = 0 if deleting else wanted
    if current <= goal:
        return Verdict("False", Reason.NOT_SCALING_DOWN)
    text = f"scaling down from {current} to {goal} replicas"
    return Verdict("True", Reason.SCALING_DOWN, f"{text}; {slow}" if slow else text)


def machines_ready(machines: Sequence[Machine]) -> Verdict:
    return _together(
        machines,
        Condition.READY,
        Condition.MACHINES_READY,
        summary.READY,
    )


def machines_up_to_date(machines: Sequence[Machine], *, rolled_out: bool = True) -> Verdict:
    """Of those that say it: one that was made a moment ago need not yet. `rolled_out`: there is a MachineDeployment to
    compare them with; without one, Machines are up to date as they are."""
    if machines and not rolled_out:
        return Verdict("True", Reason.UP_TO_DATE)
    telling = [m for m in machines if condition.find(m.status.conditions, Condition.UP_TO_DATE)]
    return _together(
        telling or machines,
        Condition.UP_TO_DATE,
        Condition.MACHINES_UP_TO_DATE,
        summary.UP_TO_DATE,
    )


def remediating(machines: Sequence[Machine], *, by: str) -> Verdict:
    marked = [m for m in machines if is_marked(m)]
    if marked:
        said = _together(marked, Condition.OWNER_REMEDIATED, Condition.REMEDIATING, summary.READY)
        return Verdict("True", Reason.REMEDIATING, said.message)
    sick = [m.metadata.name for m in machines if is_unhealthy(m)]
    if not sick:
        return Verdict("False", Reason.NOT_REMEDIATING)
    text = (
        f"{listed(sick)} {'is' if len(sick) == 1 else 'are'} not healthy, and the {by} does not remediate "
        f"{'it' if len(sick) == 1 else 'them'}"
    )
    return Verdict("False", Reason.NOT_REMEDIATING, text)


def _together(machines: Sequence[Machine], kind: str, target: str, reasons: summary.Reasons) -> Verdict:
    if not machines:
        return Verdict("True", Reason.NO_REPLICAS)
    made = summary.aggregate(machines, kind, target=target, reasons=reasons)
    return Verdict(made["status"], made["reason"], made["message"])
