"""What a Cluster says about its topology. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from homeport.api.cluster.v1beta2 import Cluster, StatusUpgradePlanVersion
from homeport.capi.name import PAUSED, Reason
from homeport.capi.object.paused import cluster_paused, has_annotation
from homeport.core.topology.upgrade import Plan
from homeport.runtime.outcome import Wait

_SHOWN = 3


def put_upgrade_plan(cluster: Cluster, plan: Plan) -> None:
    cluster.status.control_plane.upgrade_plan = [StatusUpgradePlanVersion(version=each) for each in plan.steps]
    cluster.status.workers.upgrade_plan = [StatusUpgradePlanVersion(version=each) for each in plan.worker_steps]


def paused(cluster: Cluster) -> str:
    """Everything that has to be undone."""
    causes = []
    if cluster_paused(cluster):
        causes.append("spec.paused is true")
    if has_annotation(cluster):
        causes.append(f"the Cluster has the annotation {PAUSED}")
    return f"nothing is changed while {' and '.join(causes)}" if causes else ""


def waiting(cluster: Cluster, plan: Plan, plane: str, names: Mapping[str, str]) -> Wait | None:
    """What the topology still has to become. `plane`: kind and name of the control plane; `names` of MachineDeployments
    by their name in the topology."""
    if plan.upgrading:
        return Wait(_reason(plan), _upgrade(cluster, plan, plane, names))
    pools = [each.name for each in cluster.spec.topology.workers.machine_pools]
    if pools:
        return Wait(Reason.MACHINE_POOLS_CREATE_PENDING, _pools(pools))
    return None


def _reason(plan: Plan) -> str:
    """Upstream's: who waits for the user is not upgrading."""
    idle = not (plan.blocked or plan.plane_moves or plan.moving)
    if plan.deferred and idle and set(plan.waiting) == set(plan.deferred):
        return Reason.MACHINE_DEPLOYMENTS_UPGRADE_DEFERRED
    return Reason.CLUSTER_UPGRADING


def _upgrade(cluster: Cluster, plan: Plan, plane: str, names: Mapping[str, str]) -> str:
    if plan.ahead:
        return (
            f"{plane} has version {plan.ahead}, newer than spec.topology.version {cluster.spec.topology.version}, and "
            f"some of its Machines run it: set spec.topology.version to {plan.ahead}"
        )
    lines = [f"the Cluster is being upgraded to {cluster.spec.topology.version}"]
    if plan.blocked:
        lines.append(f"no hook may block it: remove the annotation {_listed(plan.blocked)} to start")
    if plan.plane_moves:
        lines.append(f"{plane} is being upgraded to {plan.plane}{_then(plan.steps, plan.plane)}")
    elif plan.plane_waits:
        cause = "" if plan.blocked else f": {_plane_cause(plan, names)}"
        lines.append(f"{plane} stays at {plan.plane}{_then(plan.steps, plan.plane)}{cause}")
    if plan.moving:
        lines.append(_group("{} being upgraded to " + _goal(plan, plan.moving[0]), plan.moving, names))
    waiting = [each for each in plan.waiting if each not in (*plan.deferred, *plan.moving)]
    if waiting:
        cause = "the control plane" if plan.plane_moves or plan.plane_waits else "those before them"
        lines.append(_group(f"{{}} waiting for {cause}, and so are changes that replace Machines", waiting, names))
    if plan.deferred:
        lines.append(_group("{} deferred until the annotation is removed", plan.deferred, names))
    if plan.withheld:
        text = f"{'are' if len(plan.withheld) > 1 else 'is'} created when the control plane has its version"
        lines.append(f"machine deployment{'s' if len(plan.withheld) > 1 else ''} {_listed(plan.withheld)} {text}")
    if pools := [each.name for each in cluster.spec.topology.workers.machine_pools]:
        lines.append(_pools(pools))
    return "\n* ".join(lines)


def _plane_cause(plan: Plan, names: Mapping[str, str]) -> str:
    if plan.moving or plan.worker_steps:
        of = _listed([names.get(each, each) for each in plan.moving]) if plan.moving else "the workers"
        return f"it waits for {of} to be upgraded"
    return "it waits until all its machines run"


def _goal(plan: Plan, group: str) -> str:
    version = plan.groups.get(group, plan.plane)
    return f"{version}{_then(plan.worker_steps, version)}"


def _then(steps: Sequence[str], version: str) -> str:
    later = [each for each in steps if each != version]
    return f" (then {', '.join(later)})" if later else ""


def _group(text: str, groups: Sequence[str], names: Mapping[str, str]) -> str:
    many = len(groups) > 1
    head = f"MachineDeployment{'s' if many else ''} {_listed([names.get(each, each) for each in groups])}"
    return f"{head} {text.format('are' if many else 'is')}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _pools(names: Sequence[str]) -> str:
    return (
        f"machine pools are not supported yet, so {_listed(names)} of spec.topology.workers.machinePools "
        f"{'are' if len(names) > 1 else 'is'} not created: use machineDeployments"
    )
