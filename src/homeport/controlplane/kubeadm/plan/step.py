"""What to do next with a control plane: one step at a time, and none that could cost the quorum."""

from __future__ import annotations

from homeport.controlplane.kubeadm.etcd.client import Member
from homeport.controlplane.kubeadm.observe.state import MachineState, Observed
from homeport.controlplane.kubeadm.plan.action import Action, Create, Delete, Hold, ReleaseHook, RemoveMember
from homeport.controlplane.kubeadm.plan.pick import pick_domain, pick_machine
from homeport.controlplane.kubeadm.plan.preflight import preflight
from homeport.controlplane.kubeadm.plan.quorum import components_problem, etcd_problem
from homeport.controlplane.kubeadm.plan.remediation import plan_remediation

UNSAFE = "UnsafeChange"
UNREADABLE = "UnreadableObjects"
WAITING_FOR_DELETION = "WaitingForMachineDeletion"
QUORUM = "QuorumAtRisk"


def plan(observed: Observed) -> list[Action]:
    """At most one of the actions changes Machines or members. Empty: all is as it should be."""
    if observed.unreadable:
        return [Hold(UNREADABLE, observed.unreadable)]
    stray = plan_stray_member(observed)
    if stray is not None:
        return [stray]
    leaving = plan_leaving(observed)
    if leaving is not None:
        return [leaving]
    if observed.unsafe:
        return [Hold(UNSAFE, observed.unsafe)]
    healed, go_on = plan_remediation(observed)
    if not go_on:
        return healed
    step = plan_update(observed) or plan_replicas(observed)
    return [*healed, step] if step is not None else healed


def may_change(actions: list[Action]) -> bool:
    """Whether another look at etcd could lead to a change, or must come before one. Nothing but the end of a deletion
    is waited for as long as nothing can be done about it."""
    return any(not (isinstance(each, Hold) and each.reason == WAITING_FOR_DELETION) for each in actions)


# -- members without a Machine -----------------------------------------------------------------------------------


def plan_stray_member(observed: Observed) -> Action | None:
    """A member whose machine is gone counts for the quorum, and can't come back. One whose machine may still run stays:
    its objects may be missing because this state is older than the member."""
    member = next((each for each in observed.strays if each.id in observed.gone), None)
    if member is None:
        return None
    if member.name:
        problem = etcd_problem(observed, removed=member.name)
        if problem:
            return Hold(QUORUM, f"etcd member {member.name} has no Machine, but can't be removed: {problem}")
    return RemoveMember(member.id, member.name)


# -- Machines that are being deleted -----------------------------------------------------------------------------


def plan_leaving(observed: Observed) -> Action | None:
    """One after the other: the next may go when the one before is gone."""
    if not observed.deleting:
        return None
    released = [machine for machine in observed.deleting if not machine.hook]
    if released:
        return _wait_for(released[0], "its infrastructure is being deleted")
    machine = min(observed.deleting, key=lambda each: (each.deleted, each.name))
    if observed.hooks_in_order and machine.other_hooks:
        return _wait_for(machine, f"the pre-terminate hook {machine.other_hooks[0]} must be removed first")
    if not machine.awaits_hook:
        return _wait_for(machine, "it is being drained")
    if len(observed.machines) <= 1:
        return ReleaseHook(machine.name)
    problem = components_problem(observed, removed=machine.name)
    if problem:
        return Hold(QUORUM, f"Machine {machine.name} can't be deleted now: {problem}")
    member = _member_of(observed, machine)
    if not observed.etcd_managed or (not machine.member and member is None and observed.members):
        return ReleaseHook(machine.name)
    name = member.name if member is not None else machine.member
    # One that never started has no name, and no vote that counts.
    problem = etcd_problem(observed, removed=name) if name or member is None else ""
    if problem:
        return Hold(QUORUM, f"Machine {machine.name} can't be deleted now: {problem}")
    return ReleaseHook(machine.name, member.id if member is not None else 0)


def _member_of(observed: Observed, machine: MachineState) -> Member | None:
    """Also of a Machine that has no Node yet: then the one member that is nobody else's."""
    members = observed.members or ()
    if machine.member:
        return next((each for each in members if each.name == machine.member), None)
    known = {each.member for each in observed.machines if each.member}
    stray = [each for each in members if each.name not in known]
    alone = all(each.node for each in observed.machines if each.name != machine.name)
    return stray[0] if alone and len(stray) == 1 else None


def _wait_for(machine: MachineState, why: str) -> Hold:
    return Hold(
        WAITING_FOR_DELETION, f"waiting for Machine {machine.name} to be deleted: {why}", frozenset({"deleting"})
    )


# -- rollout and scale -------------------------------------------------------------------------------------------


def plan_update(observed: Observed) -> Action | None:
    outdated = observed.outdated
    if not outdated:
        return None
    useless = plan_useless(observed)
    if useless is not None:
        return useless
    if len(observed.machines) < observed.replicas + observed.max_surge:
        return _create(observed, rollout=True)
    return _delete(observed, rollout=True)


def plan_useless(observed: Observed) -> Action | None:
    """An outdated Machine that has not joined may never do so, and everything else waits for it: it goes first.

    Only where all members of etcd are those of other Machines: one that nobody knows may be its own.
    """
    known = {machine.member for machine in observed.machines if machine.member}
    if not observed.initialized or not known or not observed.certificates:
        return None
    if observed.etcd_managed and (not observed.members or any(each.name not in known for each in observed.members)):
        return None
    machine = max(
        (each for each in observed.outdated if not each.node), key=lambda each: (each.created, each.name), default=None
    )
    return Delete(machine.name, rollout=True) if machine is not None else None


def plan_replicas(observed: Observed) -> Action | None:
    have = len(observed.machines)
    if have < observed.replicas:
        return _create(observed, rollout=False)
    if have > observed.replicas:
        return _delete(observed, rollout=False)
    return None


def _create(observed: Observed, *, rollout: bool) -> Action:
    domain = pick_domain(observed)
    if not observed.machines:
        if not observed.initialized:
            return Create(domain, first=True, remediation=observed.in_progress)
        return Hold(
            "AllMachinesLost",
            "all control plane Machines and their etcd data are lost: restore an etcd backup in a new cluster, or "
            "delete this one",
        )
    hold = preflight(observed, growing=True)
    return hold or Create(domain, rollout=rollout, remediation=observed.in_progress)


def _delete(observed: Observed, *, rollout: bool) -> Action:
    machine = pick_machine(observed)
    hold = preflight(observed, growing=False, leaving=machine.name)
    return hold or Delete(machine.name, rollout=rollout)
