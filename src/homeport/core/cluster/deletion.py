"""In which order a Cluster goes, and how far that is: workers, control plane, infrastructure. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachinePool, MachineSet
from homeport.capi.contract import conditions
from homeport.capi.name import Condition, Reason
from homeport.capi.object.ownership import controller_of, is_owned_by
from homeport.capi.object.paused import why_not_deleted
from homeport.core.cluster.observed import Descendants
from homeport.core.related import Related
from homeport.machinery.condition import find
from homeport.runtime.outcome import Wait

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Delete:
    """Objects to delete now: typed ones by themselves, foreign ones with where they are served."""

    objects: Sequence[Any] = ()
    related: Related | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What to do, and what to wait for then. No wait: everything is gone."""

    delete: Delete
    wait: Wait | None


def plan(cluster: Cluster, found: Descendants, control_plane: Related, infrastructure: Related, peak: int = 0) -> Step:
    """`peak`: the most machines that were ever seen to wait for."""
    standing = remaining(cluster, found)
    if standing:
        wait = Wait(Reason.WAITING_FOR_WORKERS_DELETION, progress(cluster, found, peak))
        return Step(Delete(_direct(cluster, standing)), wait)
    return (
        _related(control_plane, Reason.WAITING_FOR_CONTROL_PLANE_DELETION, found.control_plane)
        or _left_behind(cluster, found.control_plane)
        or _related(infrastructure, Reason.WAITING_FOR_INFRASTRUCTURE_DELETION)
        or Step(Delete(), None)
    )


def _direct(cluster: Cluster, found: Sequence[Any]) -> list[Any]:
    """What no controller of its own deletes: the Cluster's own, and what names the Cluster and has lost its maker."""
    return [
        obj
        for obj in found
        if (is_owned_by(obj, cluster) or controller_of(obj) is None) and not obj.metadata.deletion_timestamp
    ]


def _related(related: Related, reason: str, machines: Sequence[Machine] = ()) -> Step | None:
    """Objects of another owner stay, and objects of a kind that is not served here do not exist."""
    if related.nothing_to_delete:
        return None
    if related.object is None:
        return Step(Delete(), Wait(reason, f"waiting for {related} to be deleted: {related.trouble}"))
    delete = Delete() if related.deleting else Delete(related=related)
    return Step(delete, Wait(reason, _waiting_for(related, machines)))


def _left_behind(cluster: Cluster, machines: Sequence[Machine]) -> Step | None:
    """Machines whose control plane object is gone without them: the infrastructure waits for them."""
    if not machines:
        return None
    text = f"waiting for {_machine(min(machines, key=_age))}, which the control plane left behind"
    return Step(Delete(_direct(cluster, machines)), Wait(Reason.WAITING_FOR_CONTROL_PLANE_DELETION, text))


def remaining(cluster: Cluster, found: Descendants) -> list[MachinePool | MachineDeployment | MachineSet | Machine]:
    """What has to be gone before the control plane may go. Without a control plane object its machines count, too."""
    machines = _machines(cluster, found)
    return [*found.pools, *found.deployments, *found.sets, *machines]


def _machines(cluster: Cluster, found: Descendants) -> list[Machine]:
    return list(found.machines) if cluster.spec.control_plane_ref is None else found.workers


def count(cluster: Cluster, found: Descendants) -> int:
    """How many machines there are to wait for, those counted that were asked for and are gone already."""
    sets, machines = found.alone(cluster)
    groups: list[Any] = [*found.pools, *found.deployments, *sets]
    wanted = sum(group.spec.replicas or 0 for group in groups) + len(machines)
    return max(wanted, len(_machines(cluster, found)))


def progress(cluster: Cluster, found: Descendants, peak: int = 0) -> str:
    machines = sorted(_machines(cluster, found), key=_age)
    total = max(peak, count(cluster, found))
    what = "machines" if cluster.spec.control_plane_ref is None else "worker machines"
    if machines:
        head = f"{total - len(machines)} of {total} {what} deleted"
        return f"{head}; waiting for {_machine(machines[0])}"
    head = f"all {total} {what} deleted" if total else f"no {what} exist"
    groups = [*found.pools, *found.deployments, *found.sets]
    names = ", ".join(f"{type(g).__resource__.kind} {g.metadata.name}" for g in groups[:_SHOWN])
    more = f" and {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else ""
    return f"{head}; waiting for {names}{more}"


def _age(machine: Machine) -> tuple[str, str]:
    """Who has been going the longest is the one to ask about; those that nobody deleted yet come last."""
    return (machine.metadata.deletion_timestamp or "~", machine.metadata.name)


def _machine(machine: Machine) -> str:
    name = f"machine {machine.metadata.name}"
    if not machine.metadata.deletion_timestamp:
        return f"{name} (not deleted yet)"
    found = find(machine.status.conditions, Condition.DELETING)
    if found is None or found["status"] != "True" or not found["message"]:
        return name
    return f"{name}: {found['message']}"


def _waiting_for(related: Related, machines: Sequence[Machine]) -> str:
    head = f"waiting for {related} to be deleted"
    assert related.object is not None
    going = sorted((m for m in machines if m.metadata.deletion_timestamp), key=_age)
    if going:
        return (
            f"{head}: {len(machines)} machine{'s' if len(machines) > 1 else ''} left; waiting for {_machine(going[0])}"
        )
    paused = why_not_deleted(related.object)
    if paused:
        return f"{head}: {paused}"
    for kind in (Condition.DELETING, "Ready", Condition.AVAILABLE):
        said = find(conditions(related.object), kind)
        good = "False" if kind == Condition.DELETING else "True"
        if said is not None and said["status"] != good and said["message"]:
            return f"{head}: {said['message']}"
    held = related.object.metadata.get("finalizers") or []
    return f"{head} (held by {', '.join(held)})" if held else head
