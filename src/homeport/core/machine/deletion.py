"""How a Machine goes: hooks, drain, volumes, hooks, infrastructure, bootstrap data, Node. Each step says what it waits
for; that becomes the Deleting condition word by word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.capi import contract
from homeport.capi.name import (
    CONTROL_PLANE_LABEL,
    EXCLUDE_NODE_DRAINING,
    EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH,
    PRE_DRAIN_HOOK_PREFIX,
    PRE_TERMINATE_HOOK_PREFIX,
    PRE_TERMINATE_KCP_CLEANUP,
    Reason,
)
from homeport.capi.object.ownership import controller_of
from homeport.core.machine.observed import Observed
from homeport.core.related import Related
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.outcome import Wait

if TYPE_CHECKING:
    from collections.abc import Mapping


def why_node_stays(machine: Machine, cluster: Cluster | None, control_plane: Related, others: Sequence[Machine]) -> str:
    """Why nothing is done about the Node; "": it is drained and deleted. `others`: the Cluster's Machines that stay."""
    if cluster is None:
        return "its Cluster no longer exists"
    if cluster.metadata.deletion_timestamp:
        return "its Cluster is being deleted"
    if machine.status.node_ref is None:
        return "it never had a Node"
    if control_plane.deleting:
        return "its control plane is being deleted"
    if control_plane.object is not None and contract.control_plane.external(control_plane.object):
        return ""
    if not any(CONTROL_PLANE_LABEL in each.metadata.labels for each in others):
        return "no control plane machine would remain"
    return ""


def hooks(machine: Machine, prefix: str) -> list[str]:
    return sorted(name for name in machine.metadata.annotations if name.startswith(prefix))


def await_hooks(machine: Machine, prefix: str, now: float, cluster: Cluster | None) -> Wait | None:
    """Somebody else has something to do first, and removes the annotation when it is done: that wakes us."""
    found = [each for each in hooks(machine, prefix) if not _abandoned(each, machine, cluster)]
    if not found:
        return None
    times = machine.status.deletion
    if prefix == PRE_DRAIN_HOOK_PREFIX:
        reason = Reason.WAITING_FOR_PRE_DRAIN_HOOK
        times.wait_for_pre_drain_hook_start_time = times.wait_for_pre_drain_hook_start_time or rfc3339(now)
        since = times.wait_for_pre_drain_hook_start_time
    else:
        assert prefix == PRE_TERMINATE_HOOK_PREFIX
        reason = Reason.WAITING_FOR_PRE_TERMINATE_HOOK
        times.wait_for_pre_terminate_hook_start_time = times.wait_for_pre_terminate_hook_start_time or rfc3339(now)
        since = times.wait_for_pre_terminate_hook_start_time
    owners = ", ".join(_hook(machine.metadata.annotations, name) for name in found)
    return Wait(reason, f"waiting since {since} for the annotation to be removed by its owner: {owners}")


def _abandoned(hook: str, machine: Machine, cluster: Cluster | None) -> bool:
    """A control plane leaves etcd in good order before its machine goes. Of a cluster that goes as a whole, a machine
    that has lost its control plane has nobody to wait for."""
    going = cluster is None or bool(cluster.metadata.deletion_timestamp)
    return hook == PRE_TERMINATE_KCP_CLEANUP and going and controller_of(machine) is None


def _hook(annotations: Mapping[str, str], name: str) -> str:
    return f"{name} (of {annotations[name]})" if annotations[name] else name


def drains(machine: Machine, seen: Observed, now: float) -> bool:
    """Whether Pods are still to be moved away."""
    return (
        EXCLUDE_NODE_DRAINING not in machine.metadata.annotations
        and _before_termination(machine, seen)
        and left(machine.status.deletion.node_drain_start_time, machine.spec.deletion.node_drain_timeout_seconds, now)
        != 0.0
    )


def awaits_volumes(machine: Machine, seen: Observed, now: float) -> bool:
    return (
        EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH not in machine.metadata.annotations
        and _before_termination(machine, seen)
        and left(
            machine.status.deletion.wait_for_node_volume_detach_start_time,
            machine.spec.deletion.node_volume_detach_timeout_seconds,
            now,
        )
        != 0.0
    )


def _before_termination(machine: Machine, seen: Observed) -> bool:
    """Once the machine itself goes, nothing on it can be saved any more."""
    if machine.status.deletion.wait_for_pre_terminate_hook_start_time:
        return False
    return seen.infrastructure.object is not None and not seen.infrastructure.deleting


def left(since: str | None, timeout: int | None, now: float) -> float | None:
    """Seconds until a time-out; 0.0: it is over. None: there is none (unset or 0 means for ever)."""
    if not timeout:
        return None
    if not since:
        return float(timeout)
    return max(0.0, parse_time(since) + timeout - now)


def node_deletion_left(machine: Machine, now: float) -> float | None:
    """How much longer the deletion of the Node is tried; counted from when the Machine was deleted."""
    return left(machine.metadata.deletion_timestamp, machine.spec.deletion.node_deletion_timeout_seconds, now)


def soonest(*seconds: float | None) -> float | None:
    known = [each for each in seconds if each is not None]
    return min(known) if known else None
