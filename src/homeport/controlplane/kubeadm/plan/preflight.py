"""Before the number of Machines changes: everything there must be as it should be."""

from __future__ import annotations

from homeport.controlplane.kubeadm.observe.state import MachineState, Observed
from homeport.controlplane.kubeadm.plan.action import Hold
from homeport.controlplane.kubeadm.plan.quorum import components_problem, etcd_problem

REASON = "WaitingForPreflight"


def preflight(observed: Observed, *, growing: bool, leaving: str = "") -> Hold | None:
    """What has to be waited for. `leaving`: the Machine that goes is not asked."""
    if observed.pending_version:
        message = f"waiting for the upgrade to {observed.pending_version} by the Cluster's topology"
        return Hold(REASON, message, frozenset({"topology"}))
    if growing and not observed.certificates:
        message = "certificates of the cluster are missing, so no Machine can join: restore their Secrets"
        return Hold(REASON, message, frozenset({"certificates"}))
    updating = next((each for each in observed.machines if each.updating), None)
    if updating is not None:
        return Hold(REASON, f"waiting for the update in place of Machine {updating.name}", frozenset({"components"}))
    said, kinds = _unhealthy(observed, leaving)
    if said and growing and observed.in_progress is not None:
        said, kinds = _unsafe_to_replace(observed)
    return Hold(REASON, "; ".join(said), frozenset(kinds)) if said else None


def _unhealthy(observed: Observed, leaving: str) -> tuple[list[str], set[str]]:
    said: list[str] = []
    kinds: set[str] = set()
    for machine in sorted(observed.machines, key=lambda each: (each.created, each.name)):
        if machine.name == leaving:
            continue
        if not machine.node:
            said.append(f"waiting for the Node of Machine {machine.name}")
            kinds |= {"components", "etcd"} if observed.etcd_managed else {"components"}
            continue
        if machine.problems:
            said.append(f"waiting for Machine {machine.name}: {_describe_problems(machine)}")
            kinds.add("components")
        if machine.etcd_problem and observed.etcd_managed:
            said.append(f"waiting for the etcd member of Machine {machine.name}: {machine.etcd_problem}")
            kinds.add("etcd")
    return said, kinds


def _describe_problems(machine: MachineState) -> str:
    return ", ".join(f"{component}: {why}" for component, why in machine.problems.items())


def _unsafe_to_replace(observed: Observed) -> tuple[list[str], set[str]]:
    """While an unhealthy Machine is replaced others may be unhealthy, too, as long as a new one does no harm."""
    said: list[str] = []
    kinds: set[str] = set()
    problem = components_problem(observed)
    if problem:
        said.append(f"no Machine can be added: {problem}")
        kinds.add("components")
    if observed.etcd_managed:
        problem = etcd_problem(observed, added=True)
        if problem:
            said.append(f"no Machine can be added: {problem}")
            kinds.add("etcd")
    return said, kinds
