"""From objects to what the planner knows. Pure."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.capi.k0s import version as k0sversion
from homeport.capi.k0s.argument import BadArgument, parse_arguments, runs_worker
from homeport.capi.name import (
    DELETE_MACHINE,
    PRE_TERMINATE_HOOK_PREFIX,
    PRE_TERMINATE_KCP_CLEANUP,
    REMEDIATE_MACHINE,
    SKIP_REMEDIATION,
    Condition,
    Reason,
)
from homeport.capi.object.template import cloned_from
from homeport.controlplane.k0s.autopilot import read_plan
from homeport.controlplane.k0s.desired import etcd_managed, same_config
from homeport.controlplane.k0s.machine import template_ref
from homeport.controlplane.k0s.observed import MachineState, Observed
from homeport.controlplane.k0s.scope import K0sPlaneScope, Owned
from homeport.machinery import condition
from homeport.machinery.condition import Status
from homeport.runtime.clock import parse_time


def observed_of(scope: K0sPlaneScope) -> Observed:
    plane, seen = scope.plane, scope.seen
    states = [machine_state(scope, each) for each in scope.owned]
    text = plane.spec.version
    return Observed(
        now=scope.now,
        replicas=max(1, plane.spec.replicas),
        version=str(k0sversion.parse(text)) if k0sversion.is_valid(text) else text,
        machines=sorted(states, key=lambda each: (each.created, each.name)),
        initialized=scope.findings.initialized,
        down=seen.down,
        etcd=etcd_managed(plane),
        members=seen.members,
        strategy=plane.spec.update_strategy,
        domains=[each.name for each in scope.cluster.status.failure_domains if each.control_plane],
        plan=None if seen.plan is None else read_plan(seen.plan, plane.metadata.uid),
        certificates=not scope.findings.certificates,
        unsafe=_unsafe(scope),
    )


def _unsafe(scope: K0sPlaneScope) -> str:
    """For servers that do not call our admission: nothing is done about such a change, and the object says why."""
    text = scope.plane.spec.version
    if not k0sversion.is_valid(text):
        return f'spec.version is "{text}": not a version of k0s; set for example v1.33.4+k0s.0'
    wanted = k0sversion.parse(text)
    runs = [k0sversion.parse(each) for each in _versions(scope) if k0sversion.is_valid(each)]
    oldest, newest = min(runs, default=wanted), max(runs, default=wanted)
    if wanted.line[0] != oldest.line[0] or wanted.line[1] > oldest.line[1] + 1:
        return f"spec.version is {text}, but controllers run {oldest}: upgrade one minor version at a time"
    if wanted.line < newest.line:
        return f"spec.version is {text}, but controllers run {newest}: a downgrade is not possible"
    return ""


def _versions(scope: K0sPlaneScope) -> list[str]:
    return [_version(scope, each) for each in scope.owned]


def _version(scope: K0sPlaneScope, owned: Owned) -> str:
    """That the controller reports, else that it was made with."""
    node = scope.seen.nodes.get(owned.name)
    reported = "" if node is None else str((node.get("status") or {}).get("k0sVersion") or "")
    return reported or str(owned.machine.spec.version or "")


def machine_state(scope: K0sPlaneScope, owned: Owned) -> MachineState:
    machine, meta = owned.machine, owned.machine.metadata
    version, wanted = _version(scope, owned), scope.plane.spec.version
    known = k0sversion.is_valid(version) and k0sversion.is_valid(wanted)
    deleting = condition.find(machine.status.conditions, Condition.DELETING) or {}
    hooks = [name for name in meta.annotations if name.startswith(PRE_TERMINATE_HOOK_PREFIX)]
    return MachineState(
        name=owned.name,
        created=parse_time(meta.creation_timestamp or "1970-01-01T00:00:00Z"),
        node=owned.name in scope.seen.nodes,
        member=_member(scope, machine),
        version=version,
        behind=known and k0sversion.parse(version) < k0sversion.parse(wanted),
        ahead=known and k0sversion.parse(version) > k0sversion.parse(wanted),
        outdated=_outdated(scope, owned),
        problem=_problem(scope, owned),
        unhealthy=is_unhealthy(machine, nodeless=_runs_without_node(scope, owned)),
        failure_domain=machine.spec.failure_domain or machine.status.failure_domain,
        deleting=bool(meta.deletion_timestamp),
        deleted=parse_time(meta.deletion_timestamp) if meta.deletion_timestamp else 0.0,
        hook=PRE_TERMINATE_KCP_CLEANUP in meta.annotations,
        other_hooks=tuple(sorted(name for name in hooks if name != PRE_TERMINATE_KCP_CLEANUP)),
        awaits_hook=deleting.get("status") == "True"
        and deleting.get("reason") == Reason.WAITING_FOR_PRE_TERMINATE_HOOK,
        marked_for_deletion=DELETE_MACHINE in meta.annotations,
    )


def up_to_date(state: MachineState, version: str) -> tuple[Status, str, str]:
    """Status, reason and message of the condition UpToDate. `version`: the desired one."""
    if state.outdated:
        return "False", Reason.NOT_UP_TO_DATE, "; ".join(f"* {each}" for each in state.outdated)
    if state.behind:
        return "False", Reason.NOT_UP_TO_DATE, f"* Version {state.version}, {version} required"
    return "True", Reason.UP_TO_DATE, ""


def _member(scope: K0sPlaneScope, machine: Machine) -> str:
    """k0s names members after hosts; one whose host has another name is known by its address."""
    joined = {each.name for each in scope.seen.members if each.joined}
    if machine.metadata.name in joined:
        return machine.metadata.name
    addresses = {each.address for each in machine.status.addresses}
    found = [name for name in joined if scope.seen.addresses.get(name) in addresses]
    return found[0] if len(found) == 1 else ""


def controller_health(scope: K0sPlaneScope, owned: Owned, *, up: bool) -> tuple[Status, str, str] | None:
    """Status, reason and message of the condition ControllerHealthy, which a controller without a Node has from the
    moment on when it has joined. `up`: it runs, and is a member of etcd."""
    known = condition.find(owned.machine.status.conditions, Condition.CONTROLLER_HEALTHY)
    if not _is_nodeless(owned) or (known is None and not up):
        return None
    problem = _controller_problem(scope, owned.name) or ("" if up else "it is not a member of etcd")
    if problem:
        text = f"controller {owned.name}, which has no Node: {problem}"
        return "False", Reason.CONTROLLER_NOT_HEALTHY, text
    return "True", Reason.CONTROLLER_HEALTHY, ""


def _controller_problem(scope: K0sPlaneScope, name: str) -> str:
    if name not in scope.seen.nodes:
        return "k0s does not report it as a controller"
    return "it no longer renews its lease" if name in scope.seen.silent else ""


def _problem(scope: K0sPlaneScope, owned: Owned) -> str:
    machine = owned.machine
    problem = _controller_problem(scope, owned.name)
    if problem:
        return problem
    ready = condition.find(machine.status.conditions, Condition.INFRASTRUCTURE_READY)
    if ready is None or ready["status"] != "True":
        said = "" if ready is None else str(ready.get("message") or "")
        return f"its infrastructure is not ready{f': {said}' if said else ''}"
    if _health_check_failed(machine, nodeless=_runs_without_node(scope, owned)):
        return "its health check failed"
    return ""


def _runs_without_node(scope: K0sPlaneScope, owned: Owned) -> bool:
    """A controller that k0s reports, and that does not become a Node."""
    return owned.name in scope.seen.nodes and _is_nodeless(owned)


def _is_nodeless(owned: Owned) -> bool:
    """Its own config decides: that of the control plane may have changed since."""
    if owned.config is None:
        return False
    try:
        return not runs_worker(parse_arguments(owned.config.spec.args))
    except BadArgument:
        return False


def _health_check_failed(machine: Machine, *, nodeless: bool) -> bool:
    """That no Node has joined is not held against a controller that should not become one."""
    found = condition.find(machine.status.conditions, Condition.HEALTH_CHECK_SUCCEEDED)
    if found is None or found["status"] != "False":
        return False
    return not (nodeless and found.get("reason") == Reason.NODE_STARTUP_TIMEOUT)


def _outdated(scope: K0sPlaneScope, owned: Owned) -> tuple[str, ...]:
    """Why it has to be replaced, versions aside. Fields that can't be compared are not a reason."""
    found = []
    if owned.config is not None and not same_config(scope.plane, owned.config):
        found.append("K0sControllerConfig does not match spec.k0sConfigSpec")
    ref = template_ref(scope.plane)
    if owned.infrastructure is not None and ref is not None:
        source = cloned_from(owned.infrastructure)
        if source is not None and source != (f"{ref.kind}.{ref.api_group}", ref.name):
            kind = owned.infrastructure.get("kind")
            found.append(f"{kind} was created from template {source[1]}, not from {ref.name}")
    return tuple(found)


def is_unhealthy(machine: Machine, *, nodeless: bool = False) -> bool:
    """A health check says so and left it to us, or a user did."""
    if machine.metadata.deletion_timestamp or SKIP_REMEDIATION in machine.metadata.annotations:
        return False
    if REMEDIATE_MACHINE in machine.metadata.annotations:
        return True
    failed = _health_check_failed(machine, nodeless=nodeless)
    return failed and _is_false(machine.status.conditions, Condition.OWNER_REMEDIATED)


def _is_false(conditions: list[dict[str, Any]], kind: str) -> bool:
    found = condition.find(conditions, kind)
    return found is not None and found["status"] == "False"
