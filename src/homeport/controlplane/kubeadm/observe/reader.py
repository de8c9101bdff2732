"""From objects to what the planner knows."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.capi import version as versions
from homeport.capi.name import (
    DELETE_MACHINE,
    PRE_TERMINATE_HOOK_PREFIX,
    PRE_TERMINATE_KCP_CLEANUP,
    REMEDIATE_MACHINE,
    REMEDIATION_FOR,
    REMEDIATION_IN_PROGRESS,
    SKIP_REMEDIATION,
    UPDATE_IN_PROGRESS,
    Condition,
    Reason,
)
from homeport.capi.remote.workload import Remote
from homeport.controlplane.condition import DesiredCondition
from homeport.controlplane.kubeadm.desired import etcd_managed
from homeport.controlplane.kubeadm.observe.health import (
    Subject,
    conditions_of,
    etcd_problem_of,
    problems_of,
)
from homeport.controlplane.kubeadm.observe.state import MachineState, Observed, Remediation, RemediationRule
from homeport.controlplane.kubeadm.plan.rollout import outdated
from homeport.controlplane.kubeadm.plan.safety import unsafe_change
from homeport.controlplane.kubeadm.scope import ControlPlaneScope, Owned
from homeport.machinery import condition
from homeport.runtime.clock import parse_time

UPGRADE_STEP = "topology.internal.cluster.x-k8s.io/upgrade-step"
_MIN_HEALTHY_SECONDS = 3600.0
_HOOKS_IN_ORDER = (1, 31)


def node_of(machine: Machine, remote: Remote | None) -> str:
    """The Machine says it, or the Node of its providerID is there already."""
    if machine.status.node_ref is not None:
        return machine.status.node_ref.name
    if remote is None or not machine.spec.provider_id:
        return ""
    found = remote.nodes_of(machine.spec.provider_id)
    return found[0].name if len(found) == 1 else ""


def subject_of(scope: ControlPlaneScope, owned: Owned) -> Subject:
    machine = owned.machine
    return Subject(
        name=owned.name,
        node=node_of(machine, scope.remote),
        deleting=bool(machine.metadata.deletion_timestamp),
        etcd_managed=etcd_managed(scope.kcp),
        taint_expected=_taint_expected(owned),
        waits_for=_waits_for(machine),
    )


def _taint_expected(owned: Owned) -> bool:
    """Users may ask for other taints, or for none."""
    if owned.config is None:
        return False
    spec = owned.config.spec
    joined = spec.join_configuration.control_plane is not None
    registration = spec.join_configuration.node_registration if joined else spec.init_configuration.node_registration
    return registration.taints is None


def _waits_for(machine: Machine) -> str:
    if machine.spec.provider_id:
        return f"waiting for a Node with the providerID {machine.spec.provider_id}"
    ref = machine.spec.infrastructure_ref
    return f"waiting for {ref.kind} {ref.name} to be provisioned" if ref is not None else "it has no infrastructure"


def machine_state(scope: ControlPlaneScope, owned: Owned) -> MachineState:
    machine, subject = owned.machine, subject_of(scope, owned)
    meta = machine.metadata
    # For decisions a Machine that is being deleted is as healthy as what still runs on it.
    alive = Subject(subject.name, subject.node, False, subject.etcd_managed, subject.taint_expected, subject.waits_for)
    deleting = condition.find(machine.status.conditions, Condition.DELETING)
    return MachineState(
        name=owned.name,
        created=parse_time(meta.creation_timestamp or "1970-01-01T00:00:00Z"),
        node=subject.node,
        member=subject.node,
        failure_domain=machine.spec.failure_domain or machine.status.failure_domain,
        deleting=subject.deleting,
        deleted=parse_time(meta.deletion_timestamp) if meta.deletion_timestamp else 0.0,
        outdated=outdated(scope.kcp, machine, owned.config, owned.infrastructure, scope.now),
        marked_for_deletion=DELETE_MACHINE in meta.annotations,
        marked_for_remediation=REMEDIATE_MACHINE in meta.annotations,
        unhealthy=is_unhealthy(machine),
        recovered=_status(machine, Condition.HEALTH_CHECK_SUCCEEDED) == "True"
        and _status(machine, Condition.OWNER_REMEDIATED) == "False",
        remediation=Remediation.parse(meta.annotations.get(REMEDIATION_FOR, "")),
        problems=problems_of(alive, scope.seen),
        etcd_problem=etcd_problem_of(alive, scope.seen),
        hook=PRE_TERMINATE_KCP_CLEANUP in meta.annotations,
        other_hooks=tuple(
            sorted(
                name
                for name in meta.annotations
                if name.startswith(PRE_TERMINATE_HOOK_PREFIX) and name != PRE_TERMINATE_KCP_CLEANUP
            )
        ),
        awaits_hook=deleting is not None
        and deleting["status"] == "True"
        and deleting.get("reason") == Reason.WAITING_FOR_PRE_TERMINATE_HOOK,
        updating=UPDATE_IN_PROGRESS in meta.annotations,
    )


def is_unhealthy(machine: Machine) -> bool:
    """A health check says so and left it to us, or a user did."""
    if SKIP_REMEDIATION in machine.metadata.annotations:
        return False
    if REMEDIATE_MACHINE in machine.metadata.annotations:
        return True
    failed = _status(machine, Condition.HEALTH_CHECK_SUCCEEDED) == "False"
    return failed and _status(machine, Condition.OWNER_REMEDIATED) == "False"


def _status(machine: Machine, kind: str) -> str:
    found = condition.find(machine.status.conditions, kind)
    return str(found["status"]) if found is not None else ""


def observed_of(scope: ControlPlaneScope) -> Observed:
    kcp, etcd = scope.kcp, scope.seen.etcd
    surge = kcp.spec.rollout.strategy.rolling_update.max_surge
    remediation = kcp.spec.remediation
    certificates = scope.findings.certificates
    healthy_seconds = remediation.min_healthy_period_seconds
    return Observed(
        now=scope.now,
        # Admission refuses less, but not everywhere it is asked: the last Machine goes with the object alone.
        replicas=max(1, kcp.spec.replicas if kcp.spec.replicas is not None else 1),
        machines=sorted(
            (machine_state(scope, each) for each in scope.owned), key=lambda each: (each.created, each.name)
        ),
        initialized=scope.findings.initialized,
        certificates=certificates is not None and certificates.status == "True",
        etcd_managed=etcd_managed(kcp),
        members=etcd.members,
        alarmed=frozenset(etcd.alarms),
        answering=etcd.answering,
        gone=scope.gone,
        max_surge=int(surge) if surge is not None else 1,
        domains=_domains(scope.cluster),
        in_progress=Remediation.parse(kcp.metadata.annotations.get(REMEDIATION_IN_PROGRESS, "")),
        rule=RemediationRule(
            remediation.max_retry,
            float(remediation.retry_period_seconds or 0),
            _MIN_HEALTHY_SECONDS if healthy_seconds is None else float(healthy_seconds),
        ),
        pending_version=_pending_version(kcp, scope.cluster),
        unreadable=scope.unreadable,
        unsafe=unsafe_change(kcp, (each.machine.spec.version for each in scope.owned), etcd_managed=etcd_managed(kcp)),
        hooks_in_order=versions.is_valid(kcp.spec.version) and versions.parse(kcp.spec.version).line >= _HOOKS_IN_ORDER,
    )


def _domains(cluster: Cluster) -> list[str]:
    return [each.name for each in cluster.status.failure_domains if each.control_plane]


def _pending_version(kcp: KubeadmControlPlane, cluster: Cluster) -> str:
    wanted = cluster.spec.topology.version
    step = cluster.metadata.annotations.get(UPGRADE_STEP, "")
    if not wanted or kcp.spec.version in (wanted, step):
        return ""
    return step or wanted


def machine_conditions(scope: ControlPlaneScope, owned: Owned, state: MachineState) -> list[DesiredCondition]:
    """All that this provider says on a Machine."""
    # What was known is still the best guess for a while after the connection was lost, or before it is made.
    fading = bool(scope.seen.down) and not scope.seen.lost
    found = [] if fading else conditions_of(subject_of(scope, owned), scope.seen)
    if scope.findings.brief and scope.seen.etcd.members is None and scope.findings.initialized:
        found = [each for each in found if (each.type, each.status) != (Condition.ETCD_MEMBER_HEALTHY, "Unknown")]
    if state.outdated:
        text = "\n".join(f"* {reason}" for reason in state.outdated)
        found.append(DesiredCondition(Condition.UP_TO_DATE, "False", Reason.NOT_UP_TO_DATE, text))
    elif state.updating:
        found.append(DesiredCondition(Condition.UP_TO_DATE, "False", Reason.UPDATING, "it is being updated in place"))
    else:
        found.append(DesiredCondition(Condition.UP_TO_DATE, "True", Reason.UP_TO_DATE))
    return found
