"""Whether a Machine is healthy, and if so until when at least. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineHealthCheckChecks
from homeport.capi.name import CONTROL_PLANE_LABEL, REMEDIATE_MACHINE, Condition, Reason
from homeport.capi.object.joined import controller_of_cluster
from homeport.machinery import condition
from homeport.runtime.clock import parse_time

DEFAULT_STARTUP_SECONDS = 600
GRACE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Target:
    """A Machine and what is known of its Node."""

    machine: Machine
    node: Mapping[str, Any] | None = None
    node_known: bool = False  # its cluster can be asked: a Node that is not seen does not exist
    connected: float | None = None  # since when it can be asked


@dataclass(frozen=True, slots=True)
class Unhealthy:
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Healthy:
    pass


@dataclass(frozen=True, slots=True)
class Undecided:
    """Neither: it is not for us to say yet, or it will be unhealthy in `after` seconds unless something changes."""

    after: float | None = None


Verdict = Unhealthy | Healthy | Undecided


class _Check(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def timeout_seconds(self) -> int | None: ...


def check(target: Target, cluster: Cluster, checks: MachineHealthCheckChecks, now: float) -> Verdict:
    machine = target.machine
    if REMEDIATE_MACHINE in machine.metadata.annotations:
        return Unhealthy(Reason.HAS_REMEDIATE_ANNOTATION, f"the annotation {REMEDIATE_MACHINE} requests it")
    if not _judged(machine, cluster):
        return Undecided()
    said, soon = _lasting(
        "Machine", machine.metadata.name, machine.status.conditions, checks.unhealthy_machine_conditions, now
    )
    reason, more, later = _check_node(target, cluster, checks, now)
    if said or more:
        return Unhealthy(Reason.UNHEALTHY_MACHINE if said else reason, "; ".join([*said, *more]))
    left = [seconds for seconds in (soon, later) if seconds is not None]
    if left:
        return Undecided(min(left))
    if machine.metadata.deletion_timestamp or not _is_up(target):
        return Undecided()
    return Healthy()


def _is_up(target: Target) -> bool:
    controller = controller_of_cluster(target.machine.status.conditions)
    return target.node is not None or (controller is not None and controller["status"] == "True")


def _judged(machine: Machine, cluster: Cluster) -> bool:
    """Whether the Machine is checked: before the control plane is initialized, only control plane Machines are."""
    begun = cluster.status.initialization
    if not begun.infrastructure_provisioned:
        return False
    return bool(begun.control_plane_initialized) or CONTROL_PLANE_LABEL in machine.metadata.labels


def _check_node(
    target: Target, cluster: Cluster, checks: MachineHealthCheckChecks, now: float
) -> tuple[str, list[str], float | None]:
    """(reason, what is wrong, seconds until something may be)"""
    ref = target.machine.status.node_ref
    if ref is None and controller_of_cluster(target.machine.status.conditions) is not None:
        return "", [], None  # a controller that never becomes a Node
    if ref is None:
        return _check_startup(target, cluster, checks, now)
    if target.node is None:
        if target.node_known:
            return Reason.NODE_DELETED, [f"Node {ref.name} has been deleted"], None
        return "", [], None  # its cluster can't be asked now: what can't be seen is not held against it
    found: Iterable[Mapping[str, Any]] = (target.node.get("status") or {}).get("conditions") or ()
    said, soon = _lasting("Node", ref.name, found, checks.unhealthy_node_conditions, now)
    return Reason.UNHEALTHY_NODE, said, soon


def _check_startup(
    target: Target, cluster: Cluster, checks: MachineHealthCheckChecks, now: float
) -> tuple[str, list[str], float | None]:
    given = checks.node_startup_timeout_seconds
    timeout = DEFAULT_STARTUP_SECONDS if given is None else given
    if not timeout:
        return "", [], None
    left = _started(target.machine, cluster) + timeout - now
    if cluster.status.initialization.control_plane_initialized:
        if not target.node_known:
            return "", [], None  # its Node may exist but can't be read; a new connection enqueues it again
        # Nodes are found one after the other once a cluster can be asked again.
        left = max(left, (target.connected or 0.0) + GRACE_SECONDS - now)
    if left > 0:
        return "", [], left
    return Reason.NODE_STARTUP_TIMEOUT, [f"no Node has joined within {timeout} s"], None


def _started(machine: Machine, cluster: Cluster) -> float:
    """From when on a Node could be expected."""
    created = machine.metadata.creation_timestamp
    moments = [parse_time(created) if created else 0.0]
    for conditions, kind in (
        (cluster.status.conditions, Condition.CONTROL_PLANE_INITIALIZED),
        (cluster.status.conditions, Condition.INFRASTRUCTURE_READY),
        (machine.status.conditions, Condition.INFRASTRUCTURE_READY),
    ):
        found = condition.find(conditions, kind)
        if found is not None and found["status"] == "True" and found.get("lastTransitionTime"):
            moments.append(parse_time(found["lastTransitionTime"]))
    return max(moments)


def _lasting(
    what: str, name: str, conditions: Iterable[Mapping[str, Any]], checks: Sequence[_Check], now: float
) -> tuple[list[str], float | None]:
    """What has lasted too long, or else the seconds until the first thing will have."""
    said: list[str] = []
    left: list[float] = []
    for each in checks:
        found = condition.find(conditions, each.type)
        if found is None or found.get("status") != each.status or not found.get("lastTransitionTime"):
            continue
        timeout = each.timeout_seconds or 0
        remaining = parse_time(found["lastTransitionTime"]) + timeout - now
        if remaining > 0:
            left.append(remaining)
        else:
            why = f" ({found['reason']})" if found.get("reason") else ""
            said.append(f"condition {each.type} of {what} {name} is {each.status}{why} for more than {timeout} s")
    return said, None if said else min(left, default=None)
