"""A MachineSet's status, computed from what one loop has seen. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.cluster.v1beta2 import Machine, MachineSet
from homeport.capi.name import Condition, Reason
from homeport.capi.object import summary
from homeport.capi.object.ownership import controller_of
from homeport.core.machineset import replica
from homeport.core.verdict import Verdict, put_verdict
from homeport.machinery.selector import from_label_selector
from homeport.runtime.outcome import Wait


def report(
    machine_set: MachineSet, machines: Sequence[Machine] | None, *, blocked: Sequence[str], trouble: str, now: float
) -> Wait | None:
    """Writes the whole status; `machines` is None when they could not be looked at.

    Gives a timer where the status will change by the passing of time.
    """
    status = machine_set.status
    status.selector = str(from_label_selector(machine_set.spec.selector))
    timer: Wait | None = None
    if machines is not None:
        _count(machine_set, machines)
        found = _verdicts(machine_set, machines, blocked, trouble, now)
        after = replica.late_in(machines, now)
        timer = Wait("DeletionTakesLong", after=after, quiet=True) if after is not None else None
        # From here on the counts hold for what is asked for: MachineDeployments build on that.
        status.observed_generation = machine_set.metadata.generation
    else:
        found = {Condition.SCALING_UP: Verdict("Unknown", Reason.INTERNAL_ERROR, trouble)}
    found[Condition.PAUSED] = Verdict("False", Reason.NOT_PAUSED)
    for kind, verdict in found.items():
        put_verdict(machine_set, kind, verdict, now)
    status.conditions = summary.ordered(status.conditions)
    return timer


def _count(machine_set: MachineSet, machines: Sequence[Machine]) -> None:
    status, counts = machine_set.status, replica.count(machines)
    status.replicas = counts.replicas
    status.ready_replicas = counts.ready
    status.available_replicas = counts.available
    status.up_to_date_replicas = counts.up_to_date
    old = status.deprecated.v1beta1
    old.conditions = []  # others wrote them, whose cluster we look after now
    old.ready_replicas, old.available_replicas = counts.ready, counts.available
    status.versions = replica.count_versions(machines)


def _verdicts(
    machine_set: MachineSet, machines: Sequence[Machine], blocked: Sequence[str], trouble: str, now: float
) -> dict[str, Verdict]:
    deleting = bool(machine_set.metadata.deletion_timestamp)
    slow = replica.late(machines, now)
    current, wanted = len(machines), machine_set.spec.replicas
    why = [*blocked, trouble] if trouble else list(blocked)
    if wanted is None:
        unknown = Verdict("Unknown", Reason.WAITING_FOR_REPLICAS_SET, "spec.replicas is not set")
        up = down = unknown
    else:
        up = replica.scaling_up(current, wanted, deleting=deleting, blocked=why)
        down = replica.scaling_down(current, wanted, deleting=deleting, slow=slow)
    return {
        Condition.MACHINES_READY: replica.machines_ready(machines),
        Condition.MACHINES_UP_TO_DATE: replica.machines_up_to_date(machines, rolled_out=_rolled_out(machine_set)),
        Condition.SCALING_UP: up,
        Condition.SCALING_DOWN: down,
        Condition.REMEDIATING: replica.remediating(machines, by="MachineSet"),
        Condition.DELETING: deletion(machines, slow, deleting=deleting),
    }


def deletion(machines: Sequence[Machine], slow: str, *, deleting: bool) -> Verdict:
    if not deleting:
        return Verdict("False", Reason.NOT_DELETING)
    if not machines:
        return Verdict("True", Reason.DELETION_COMPLETED, "all Machines have been deleted")
    names = replica.listed(m.metadata.name for m in machines)
    text = f"deleting {len(machines)} Machine{'s' if len(machines) > 1 else ''}: {names}"
    return Verdict("True", Reason.DELETING, f"{text}; {slow}" if slow else text)


def _rolled_out(machine_set: MachineSet) -> bool:
    found = controller_of(machine_set)
    return found is not None and found["kind"] == "MachineDeployment"
