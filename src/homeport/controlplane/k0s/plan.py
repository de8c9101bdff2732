"""What to do next with a control plane: one step at a time, and none that could cost the quorum. Pure."""

from __future__ import annotations

from homeport.controlplane.k0s.action import Action, Create, Defer, Delete, Hold, Leave, Release, Upgrade
from homeport.controlplane.k0s.observed import MachineState, Observed, PlanState
from homeport.controlplane.k0s.quorum import etcd_problem

UNSAFE = "UnsafeChange"
UNREADABLE = "UnreadableObjects"
WAITING_FOR_DELETION = "WaitingForMachineDeletion"
WAITING_FOR_LEAVE = "WaitingForEtcdMemberToLeave"
WAITING_FOR_MACHINE = "WaitingForMachine"
QUORUM = "QuorumAtRisk"
UPDATING = "Updating"
PLAN_FAILED = "PlanFailed"

RETRY_SECONDS = 120.0  # after which a plan that failed is tried again
_DELETE_FIRST = "RecreateDeleteFirst"
_COMPLETED = "Completed"
# States of a plan from which k0s does not go on by itself.
FAILED_STATES = frozenset(
    {
        "ApplyFailed",
        "IncompleteTargets",
        "InconsistentTargets",
        "MissingPlatform",
        "MissingSignalNode",
        "Restricted",
        "Warning",
    }
)


def plan(observed: Observed) -> Action | None:
    """None: all is as it should be."""
    if observed.unreadable:
        return Hold(UNREADABLE, observed.unreadable)
    leaving = plan_leaving(observed)
    if leaving is not None:
        return leaving
    if observed.unsafe:
        return Hold(UNSAFE, observed.unsafe)
    healing = plan_remediation(observed)
    if healing is not None:
        return healing
    return plan_useless(observed) or plan_joining(observed) or plan_update(observed) or plan_replicas(observed)


# -- Machines that are being deleted -----------------------------------------------------------------------------


def plan_leaving(observed: Observed) -> Action | None:
    """One after the other: its member leaves etcd, and only when that is observed the Machine may go."""
    if not observed.deleting:
        return None
    released = [each for each in observed.deleting if not each.hook]
    if released:
        return _wait_for(released[0], "its infrastructure is being deleted")
    machine = min(observed.deleting, key=lambda each: (each.deleted, each.name))
    if machine.other_hooks:
        return _wait_for(machine, f"the pre-terminate hook {machine.other_hooks[0]} must be removed first")
    if not machine.awaits_hook:
        return _wait_for(machine, "it is being drained")
    if len(observed.machines) <= 1 or not observed.etcd or not observed.initialized:
        return Release(machine.name)
    if observed.down:
        return Hold(QUORUM, f"Machine {machine.name} can't be deleted now: {observed.down}")
    member = next((each for each in observed.voters if each.name in (machine.member, machine.name)), None)
    if member is None:
        return Release(machine.name) if observed.voters else Hold(QUORUM, _unknown(machine))
    if member.leave:
        said = f": {member.message}" if member.message else ""
        return Hold(WAITING_FOR_LEAVE, f"waiting for member {member.name} to leave etcd{said}")
    problem = etcd_problem(observed, removed=member.name)
    if problem:
        return Hold(QUORUM, f"Machine {machine.name} can't be deleted now: {problem}")
    return Leave(machine.name, member.name)


def _unknown(machine: MachineState) -> str:
    return f"Machine {machine.name} can't be deleted now: k0s reports no members of etcd"


def _wait_for(machine: MachineState, why: str) -> Hold:
    return Hold(WAITING_FOR_DELETION, f"waiting for Machine {machine.name} to be deleted: {why}")


# -- unhealthy Machines ------------------------------------------------------------------------------------------


def plan_remediation(observed: Observed) -> Action | None:
    """One at a time, and only where the others can do without."""
    unhealthy = [each for each in observed.machines if each.unhealthy]
    if not unhealthy:
        return None
    machine = min(unhealthy, key=lambda each: (observed.is_up(each), each.created, each.name))
    problem = _irreplaceable(observed, machine)
    if problem:
        return Defer(machine.name, problem)
    return Delete(machine.name, "it is unhealthy", remediation=True)


def _irreplaceable(observed: Observed, machine: MachineState) -> str:
    """Before the cluster is initialized there is nothing to lose."""
    if not observed.initialized:
        return ""
    others = [each for each in observed.machines if each.name != machine.name]
    if not others:
        return "it is the only control plane Machine"
    if observed.down:
        return observed.down
    joining = next((each for each in others if not observed.is_up(each) and not each.unhealthy), None)
    if joining is not None:
        return f"waiting for Machine {joining.name} to come up first"
    if not machine.member:
        return "" if any(each.healthy for each in others) else "no other Machine is healthy"
    return etcd_problem(observed, removed=machine.member)


# -- Machines that join ------------------------------------------------------------------------------------------


def plan_useless(observed: Observed) -> Action | None:
    """A Machine that is to be replaced and has not joined may never do so, and everything else waits for it."""
    if not observed.initialized or observed.down or len(observed.machines) < 2:
        return None
    waiting = [each for each in observed.machines if not observed.is_up(each) and observed.replaced(each)]
    useless = [each for each in waiting if not each.member and not each.node]
    if not useless or not any(observed.is_up(each) for each in observed.machines):
        return None
    machine = max(useless, key=lambda each: (each.created, each.name))
    return Delete(machine.name, "it has not joined, and would be replaced")


def plan_joining(observed: Observed) -> Action | None:
    """Nothing else is begun while a Machine comes up."""
    if not observed.machines:
        return None
    if observed.initialized and observed.down:
        return Hold("WorkloadClusterUnreachable", observed.down)
    waiting = [each for each in observed.machines if not observed.is_up(each)]
    if waiting:
        names = ", ".join(each.name for each in waiting)
        verb = "join" if observed.initialized else "initialize the cluster"
        return Hold(WAITING_FOR_MACHINE, f"waiting for Machine {names} to {verb}")
    return None


# -- rollout and upgrade -----------------------------------------------------------------------------------------


def plan_update(observed: Observed) -> Action | None:
    replaced = [each for each in observed.machines if observed.replaced(each)]
    if replaced:
        return _replace(observed, replaced)
    behind = tuple(sorted(each.name for each in observed.machines if each.behind))
    if not behind:
        return None
    ill = next((each for each in observed.machines if not each.healthy), None)
    if ill is not None:
        return Hold(QUORUM, f"controllers are upgraded when all are healthy: Machine {ill.name}: {ill.problem}")
    return _upgrade(observed, behind)


def _replace(observed: Observed, replaced: list[MachineState]) -> Action:
    surge = 0 if observed.strategy == _DELETE_FIRST and observed.replicas > 2 else 1
    if len(observed.machines) < observed.replicas + surge:
        return _create(observed)
    machine = min(replaced, key=lambda each: (not each.marked_for_deletion, each.healthy, each.created, each.name))
    return _delete(observed, machine, "it is replaced by another")


def _upgrade(observed: Observed, behind: tuple[str, ...]) -> Action:
    found = observed.plan
    if found is None:
        return Upgrade(behind)
    if not found.ours:
        text = f"somebody else's autopilot plan to {found.version} is in the cluster: delete it"
        return Hold(PLAN_FAILED, text)
    if found.version != observed.version:
        return Upgrade(behind, replace=True)
    if found.state in FAILED_STATES or found.state == _COMPLETED:
        return _again(observed, found, behind)
    return Hold(UPDATING, _progress(found))


def _again(observed: Observed, found: PlanState, behind: tuple[str, ...]) -> Action:
    if observed.now - found.created >= RETRY_SECONDS:
        return Upgrade(behind, replace=True)
    if found.state == _COMPLETED:
        return Hold(UPDATING, f"waiting for {', '.join(behind)} to report version {found.version}")
    seconds = int(RETRY_SECONDS - (observed.now - found.created))
    return Hold(PLAN_FAILED, f"{_progress(found)}; it is tried again in {seconds} s")


def _progress(found: PlanState) -> str:
    details = f" ({found.details})" if found.details else ""
    return f"the autopilot plan to {found.version} is {found.state or 'new'}{details}"


# -- scale -------------------------------------------------------------------------------------------------------


def plan_replicas(observed: Observed) -> Action | None:
    have = len(observed.machines)
    if have < observed.replicas:
        return _create(observed)
    if have > observed.replicas:
        machine = min(
            observed.machines,
            key=lambda each: (
                not each.marked_for_deletion,
                each.healthy,
                -_load(observed, each),
                each.created,
                each.name,
            ),
        )
        return _delete(observed, machine, "the control plane is scaled down")
    return None


def _create(observed: Observed) -> Action:
    domain = _pick_domain(observed)
    if not observed.machines:
        if not observed.initialized:
            return Create(domain, first=True)
        return Hold(
            "AllMachinesLost",
            "all control plane Machines and their etcd data are lost: restore an etcd backup in a new cluster, or "
            "delete this one",
        )
    problem = etcd_problem(observed, added=True)
    return Hold(QUORUM, f"no Machine can be added now: {problem}") if problem else Create(domain)


def _delete(observed: Observed, machine: MachineState, why: str) -> Action:
    problem = etcd_problem(observed, removed=machine.member) if machine.member else ""
    if problem:
        return Hold(QUORUM, f"Machine {machine.name} can't be deleted now: {problem}")
    return Delete(machine.name, why)


def _pick_domain(observed: Observed) -> str:
    """The failure domain with the fewest Machines."""
    there = [each.failure_domain for each in observed.machines]
    return min(observed.domains, key=lambda domain: (there.count(domain), domain), default="")


def _load(observed: Observed, machine: MachineState) -> int:
    return sum(1 for each in observed.machines if each.failure_domain == machine.failure_domain)
