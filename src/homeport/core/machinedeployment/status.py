"""A MachineDeployment's status, computed from what one loop has seen. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.capi.name import Condition, Reason
from homeport.capi.object import summary
from homeport.core.machineset import replica
from homeport.core.machineset.status import deletion
from homeport.core.verdict import Verdict, put_verdict
from homeport.machinery import condition
from homeport.machinery.selector import from_label_selector
from homeport.runtime.outcome import Wait


@dataclass(slots=True)
class Seen:
    """What one loop has found out."""

    machines: list[Machine] | None = None  # None: not looked yet
    current: set[str] | None = None  # names of the Machines of the current set; None: not known
    unavailable: int = 0  # so many may be missing
    blocked: list[str] = field(default_factory=list)  # why no Machine is made, as its sets say
    trouble: str = ""


def report(deployment: MachineDeployment, seen: Seen, now: float) -> Wait | None:
    """Writes the whole status. Gives a timer where it will change by the passing of time."""
    status = deployment.status
    status.selector = str(from_label_selector(deployment.spec.selector))
    timer: Wait | None = None
    if seen.machines is None:
        unknown = Verdict("Unknown", Reason.INTERNAL_ERROR, seen.trouble or "its MachineSets have not been checked yet")
        found = {Condition.AVAILABLE: unknown}
        status.phase = status.phase or "Unknown"
    else:
        _count(deployment, seen.machines, seen.current)
        found = _verdicts(deployment, seen, seen.machines, now)
        after = replica.late_in(seen.machines, now)
        timer = Wait("DeletionTakesLong", after=after, quiet=True) if after is not None else None
    found[Condition.PAUSED] = Verdict("False", Reason.NOT_PAUSED)
    for kind, verdict in found.items():
        put_verdict(deployment, kind, verdict, now)
    status.conditions = summary.ordered(status.conditions)
    if not seen.trouble:
        status.observed_generation = deployment.metadata.generation
    return timer


def _count(deployment: MachineDeployment, machines: Sequence[Machine], current: set[str] | None) -> None:
    status, counts = deployment.status, replica.count(machines)
    status.replicas = counts.replicas
    status.ready_replicas = counts.ready
    status.available_replicas = counts.available
    status.up_to_date_replicas = sum(is_up_to_date(machine, current) for machine in machines)
    old = status.deprecated.v1beta1
    old.conditions = []  # others wrote them, whose cluster we look after now
    old.ready_replicas, old.available_replicas = counts.ready, counts.available
    old.updated_replicas = status.up_to_date_replicas
    old.unavailable_replicas = max(0, (deployment.spec.replicas or 0) - counts.available)
    status.versions = replica.count_versions(machines)
    status.phase = phase(deployment, counts.replicas)


def is_up_to_date(machine: Machine, current: set[str] | None) -> bool:
    """Of an older set none is, also while its own condition does not say so yet: the status never speaks of a
    generation and means the one before."""
    if current is not None and machine.metadata.name not in current:
        return False
    return condition.is_true(machine.status.conditions, Condition.UP_TO_DATE)


def phase(deployment: MachineDeployment, current: int) -> str:
    wanted = deployment.spec.replicas
    if wanted is None:
        return "Unknown"
    if deployment.metadata.deletion_timestamp or current > wanted:
        return "ScalingDown"
    return "ScalingUp" if current < wanted else "Running"


def _verdicts(deployment: MachineDeployment, seen: Seen, machines: Sequence[Machine], now: float) -> dict[str, Verdict]:
    deleting = bool(deployment.metadata.deletion_timestamp)
    slow = replica.late(machines, now)
    blocked = [*seen.blocked, seen.trouble] if seen.trouble else seen.blocked
    wanted = deployment.spec.replicas
    if wanted is None:
        up = down = Verdict("Unknown", Reason.WAITING_FOR_REPLICAS_SET, "spec.replicas is not set")
    else:
        up = replica.scaling_up(len(machines), wanted, deleting=deleting, blocked=blocked)
        down = replica.scaling_down(len(machines), wanted, deleting=deleting, slow=slow)
    return {
        Condition.AVAILABLE: available(deployment, seen),
        Condition.ROLLING_OUT: rolling_out(machines, seen.current),
        Condition.SCALING_UP: up,
        Condition.SCALING_DOWN: down,
        Condition.MACHINES_READY: replica.machines_ready(machines),
        Condition.MACHINES_UP_TO_DATE: replica.machines_up_to_date(machines),
        Condition.REMEDIATING: replica.remediating(machines, by="MachineDeployment"),
        Condition.DELETING: deletion(machines, slow, deleting=deleting),
    }


def available(deployment: MachineDeployment, seen: Seen) -> Verdict:
    wanted, have = deployment.spec.replicas, deployment.status.available_replicas
    if wanted is None:
        return Verdict("Unknown", Reason.WAITING_FOR_REPLICAS_SET, "spec.replicas is not set")
    least = max(wanted - seen.unavailable, 0)
    if have is not None and have >= least:
        return Verdict("True", Reason.AVAILABLE)
    if deployment.metadata.deletion_timestamp:
        return Verdict("False", Reason.NOT_AVAILABLE, "it is being deleted")
    text = f"{have or 0} of {wanted} replicas are available, at least {least} required"
    why = _why(seen)
    return Verdict("False", Reason.NOT_AVAILABLE, f"{text}; {why}" if why else text)


def _why(seen: Seen) -> str:
    """The first thing that is known to be in the way."""
    if seen.blocked:
        return seen.blocked[0]
    for machine in seen.machines or ():
        found = condition.find(machine.status.conditions, Condition.READY)
        if found is not None and found["status"] != "True" and found.get("message"):
            return f"Machine {machine.metadata.name}: {found['message']}"
    return ""


def rolling_out(machines: Sequence[Machine], current: set[str] | None) -> Verdict:
    """Which Machines are still to be replaced, and what for; a change of version is named first."""
    reasons: set[str] = set()
    count = 0
    for machine in machines:
        found = condition.find(machine.status.conditions, Condition.UP_TO_DATE)
        told = found is not None and found["status"] == "False"
        count += told or (current is not None and machine.metadata.name not in current)
        if found is not None and told:
            reasons |= {line for line in str(found.get("message") or "").split("\n") if line}
    if not count:
        return Verdict("False", Reason.NOT_ROLLING_OUT)
    lines = sorted(reasons, key=lambda line: (not line.startswith("* Version"), line))
    head = f"{count} replica{'' if count == 1 else 's'} still to be replaced"
    return Verdict("True", Reason.ROLLING_OUT, "\n".join([head, *lines]))
