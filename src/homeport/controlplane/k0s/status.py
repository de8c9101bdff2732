"""What a K0sControlPlane says about itself. Pure: from what was observed to conditions and counters."""

from __future__ import annotations

from dataclasses import dataclass, field

from homeport.api.k0s.v1beta2 import K0sControlPlane
from homeport.capi.k0s import version as k0sversion
from homeport.capi.name import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, Condition, Reason
from homeport.controlplane.condition import DesiredCondition, with_desired
from homeport.controlplane.k0s.action import Action, Defer, Delete, Hold, Upgrade
from homeport.controlplane.k0s.observed import MachineState, Observed
from homeport.controlplane.k0s.plan import PLAN_FAILED
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339


@dataclass(slots=True)
class Findings:
    now: float
    cluster: str
    initialized: bool = False
    certificates: str = ""  # what is wrong with them
    observed: Observed | None = None
    action: Action | None = None
    deleting: str = ""  # what a deletion waits for
    outcome: tuple[condition.Status, str, str] = ("True", Reason.AVAILABLE, "")
    made: set[str] = field(default_factory=set)


def fill(plane: K0sControlPlane, findings: Findings) -> None:
    """Sets everything but Paused."""
    status, observed = plane.status, findings.observed
    status.initialization.control_plane_initialized = findings.initialized
    status.external_managed_control_plane = False
    if observed is not None:
        _count(plane, findings, observed)
    now, generation = rfc3339(findings.now), plane.metadata.generation
    desired = _conditions(plane, findings)
    status.conditions = with_desired(status.conditions, desired, now=now, generation=generation)


def _count(plane: K0sControlPlane, findings: Findings, observed: Observed) -> None:
    status, machines = plane.status, observed.machines
    status.selector = f"{CLUSTER_NAME_LABEL}={findings.cluster},{CONTROL_PLANE_LABEL}="
    status.replicas = len(machines) + len(findings.made)
    ready = [each for each in machines if _is_ready(observed, each)]
    status.ready_replicas = status.available_replicas = len(ready)
    current = [each for each in machines if not each.outdated and not each.behind]
    status.up_to_date_replicas = len(current) + len(findings.made)
    versions = sorted(k0sversion.parse(each.version) for each in machines if k0sversion.is_valid(each.version))
    if versions:
        status.version = str(versions[0])


def _is_ready(observed: Observed, machine: MachineState) -> bool:
    return observed.is_up(machine) and machine.healthy and not machine.deleting


def _conditions(plane: K0sControlPlane, findings: Findings) -> list[DesiredCondition]:
    found = [_available(plane, findings), _certificates(findings), _deleting(findings)]
    observed, action = findings.observed, findings.action
    if observed is not None:
        found += [
            _scaling_up(observed),
            _scaling_down(observed),
            _rolling_out(observed),
            _updating(observed, action),
            _remediating(action),
        ]
    return found


def _available(plane: K0sControlPlane, findings: Findings) -> DesiredCondition:
    outcome, reason, message = findings.outcome
    ready = plane.status.ready_replicas or 0
    observed = findings.observed
    if findings.initialized and ready and observed is not None and not observed.down and not findings.deleting:
        lost = len(observed.voters) - sum(1 for each in observed.machines if each.member and each.healthy)
        if not observed.etcd or lost <= (len(observed.voters) - 1) // 2:
            return DesiredCondition(Condition.AVAILABLE, "True", Reason.AVAILABLE, "" if outcome == "True" else message)
    if outcome == "True":
        return DesiredCondition(Condition.AVAILABLE, "False", Reason.NOT_AVAILABLE, "no controller is ready")
    return DesiredCondition(Condition.AVAILABLE, "False", reason, message)


def _certificates(findings: Findings) -> DesiredCondition:
    if findings.certificates:
        return DesiredCondition(Condition.CERTIFICATES_AVAILABLE, "False", Reason.NOT_AVAILABLE, findings.certificates)
    return DesiredCondition(Condition.CERTIFICATES_AVAILABLE, "True", Reason.AVAILABLE)


def _deleting(findings: Findings) -> DesiredCondition:
    if findings.deleting:
        return DesiredCondition(Condition.DELETING, "True", Reason.DELETING, findings.deleting)
    return DesiredCondition(Condition.DELETING, "False", Reason.NOT_DELETING)


def _scaling_up(observed: Observed) -> DesiredCondition:
    have = len(observed.machines)
    if have < observed.replicas:
        text = f"{have} of {observed.replicas} Machines exist"
        return DesiredCondition(Condition.SCALING_UP, "True", Reason.SCALING_UP, text)
    joining = [each.name for each in observed.machines if not observed.is_up(each) and not each.deleting]
    if joining:
        text = f"waiting for Machine {', '.join(joining)} to join"
        return DesiredCondition(Condition.SCALING_UP, "True", Reason.SCALING_UP, text)
    return DesiredCondition(Condition.SCALING_UP, "False", Reason.NOT_SCALING_UP)


def _scaling_down(observed: Observed) -> DesiredCondition:
    leaving = [each.name for each in observed.deleting]
    if leaving:
        text = f"Machine {', '.join(leaving)} is being deleted"
        return DesiredCondition(Condition.SCALING_DOWN, "True", Reason.SCALING_DOWN, text)
    have = len(observed.machines)
    if have > observed.replicas:
        text = f"{have} Machines exist, {observed.replicas} desired"
        return DesiredCondition(Condition.SCALING_DOWN, "True", Reason.SCALING_DOWN, text)
    return DesiredCondition(Condition.SCALING_DOWN, "False", Reason.NOT_SCALING_DOWN)


def _rolling_out(observed: Observed) -> DesiredCondition:
    replaced = [each for each in observed.machines if observed.replaced(each)]
    if not replaced:
        return DesiredCondition(Condition.ROLLING_OUT, "False", Reason.NOT_ROLLING_OUT)
    reasons = sorted({why for each in replaced for why in (each.outdated or (f"it runs {each.version}",))})
    text = f"{len(replaced)} Machines to replace: {'; '.join(reasons)}"
    return DesiredCondition(Condition.ROLLING_OUT, "True", Reason.ROLLING_OUT, text)


def _updating(observed: Observed, action: Action | None) -> DesiredCondition:
    """Mirrors the autopilot plan."""
    behind = [each.name for each in observed.machines if each.behind]
    ahead = [each.name for each in observed.machines if each.ahead]
    if ahead:
        text = f"{', '.join(ahead)} runs a newer version than {observed.version}, and is not downgraded"
        return DesiredCondition(Condition.UPDATING, "False", "DowngradeRefused", text)
    if not behind or not observed.in_place:
        return DesiredCondition(Condition.UPDATING, "False", Reason.NOT_UPDATING)
    if isinstance(action, Hold):
        reason = action.reason if action.reason == PLAN_FAILED else Reason.UPDATING
        return DesiredCondition(Condition.UPDATING, "True", reason, action.message)
    if isinstance(action, Upgrade):
        text = f"k0s upgrades {', '.join(action.targets)} to {observed.version}"
        return DesiredCondition(Condition.UPDATING, "True", Reason.UPDATING, text)
    return DesiredCondition(Condition.UPDATING, "True", Reason.UPDATING, f"{', '.join(behind)} to {observed.version}")


def _remediating(action: Action | None) -> DesiredCondition:
    if isinstance(action, Delete) and action.remediation:
        text = f"Machine {action.machine} is unhealthy and is replaced"
        return DesiredCondition(Condition.REMEDIATING, "True", Reason.REMEDIATING, text)
    if isinstance(action, Defer):
        text = f"Machine {action.machine} is unhealthy and stays for now: {action.message}"
        return DesiredCondition(Condition.REMEDIATING, "True", "RemediationDeferred", text)
    return DesiredCondition(Condition.REMEDIATING, "False", Reason.NOT_REMEDIATING)
