"""Unhealthy Machines are replaced one at a time, as often as the rules allow, and only if the others can do without."""

from __future__ import annotations

from homeport.controlplane.kubeadm.observe.state import MachineState, Observed, Remediation
from homeport.controlplane.kubeadm.plan.action import Action, Defer, ForgetRemediation, Recover, Remediate
from homeport.controlplane.kubeadm.plan.quorum import components_problem, etcd_problem

DEFERRED = "RemediationDeferred"
IMPOSSIBLE = "CannotBeRemediated"

# Which of several is the most broken: those without these come first.
_COMPONENTS = (
    "EtcdPodHealthy",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "NodeKubeadmLabelsAndTaintsSet",
)


def plan_remediation(observed: Observed) -> tuple[list[Action], bool]:
    """The actions, and whether anything else may be planned beside them."""
    found: list[Action] = [Recover(each.name) for each in observed.machines if each.recovered and not each.deleting]
    running = observed.in_progress
    if running is not None and _is_over(observed, running):
        found.append(ForgetRemediation())
        running = None
    unhealthy = [each for each in observed.machines if each.unhealthy and not each.deleting]
    if running is not None:
        begun = next((each for each in unhealthy if each.name == running.machine), None)
        # The process ended after it had announced the remediation: what it said must not be said again.
        if begun is None:
            return found, True
        problem = _unsafe(observed, begun)
        if problem is not None:
            return [*found, problem], True
        return [*found, Remediate(begun.name, running, recorded=True)], False
    if not unhealthy:
        return found, True
    machine = min(unhealthy, key=lambda each: _rank(observed, each))
    decision = _decide(observed, machine)
    return [*found, decision], isinstance(decision, Defer)


def _is_over(observed: Observed, running: Remediation) -> bool:
    """A replacement was made, or none is needed any more."""
    if any(each.remediation is not None and each.remediation.time >= running.time for each in observed.machines):
        return True
    broken = observed.machine(running.machine)
    if broken is not None:
        return not broken.deleting and not broken.unhealthy
    return len(observed.machines) >= observed.replicas and not observed.outdated


def _rank(observed: Observed, machine: MachineState) -> tuple[bool | float | str, ...]:
    broken: list[bool | float | str] = [not machine.marked_for_remediation, bool(machine.node)]
    if observed.etcd_managed:
        broken.append(not machine.etcd_problem)
    broken += [name not in machine.problems for name in _COMPONENTS]
    return (*broken, machine.created, machine.name)


def _decide(observed: Observed, machine: MachineState) -> Action:
    if observed.pending_version:
        return Defer(
            machine.name,
            DEFERRED,
            f"it is replaced after the upgrade to {observed.pending_version} by the Cluster's topology has started",
        )
    remediation, refused = _retry(observed, machine)
    if refused is not None:
        return refused
    return _unsafe(observed, machine) or Remediate(machine.name, remediation)


def _retry(observed: Observed, machine: MachineState) -> tuple[Remediation, Defer | None]:
    first = Remediation(machine.name, observed.now)
    last, rule = machine.remediation, observed.rule
    if last is None or last.time + rule.min_healthy_period <= observed.now:
        return first, None
    if last.time + rule.retry_period > observed.now:
        text = f"its predecessor {last.machine} was replaced less than {rule.retry_period:g} s ago (retryPeriodSeconds)"
        return first, Defer(machine.name, DEFERRED, text)
    if rule.max_retry is not None and last.retries >= rule.max_retry:
        text = f"{last.retries} replacements in a row have failed, and no more are allowed (maxRetry)"
        return first, Defer(machine.name, IMPOSSIBLE, text)
    return Remediation(machine.name, observed.now, last.retries + 1), None


def _unsafe(observed: Observed, machine: MachineState) -> Defer | None:
    """What must not be risked. Before the cluster is initialised there is nothing to lose."""
    if not observed.initialized:
        return None
    others = [each for each in observed.machines if each.name != machine.name]
    if not others:
        return Defer(machine.name, IMPOSSIBLE, "it is the only control plane Machine")
    joining = next((each for each in others if not each.node and not each.unhealthy and not each.deleting), None)
    if joining is not None:
        return Defer(machine.name, DEFERRED, f"waiting for Machine {joining.name} to come up first")
    leaving = next((each for each in others if each.deleting), None)
    if leaving is not None:
        return Defer(machine.name, DEFERRED, f"waiting for Machine {leaving.name} to be deleted first")
    problem = components_problem(observed, removed=machine.name)
    if problem:
        return Defer(machine.name, IMPOSSIBLE, problem)
    if not observed.etcd_managed:
        return None
    if not observed.members:
        return Defer(machine.name, DEFERRED, etcd_problem(observed))
    if not machine.member:
        return None  # it never joined; if its member shows up later it is removed as one without a Machine
    problem = etcd_problem(observed, removed=machine.member)
    return Defer(machine.name, IMPOSSIBLE, problem) if problem else None
