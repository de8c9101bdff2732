"""How a control plane Machine is, by its Node, its static Pods and its etcd member: pure, from what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.capi.name import Condition, Reason
from homeport.controlplane.condition import DesiredCondition
from homeport.controlplane.kubeadm.etcd.client import Member
from homeport.machinery.condition import find

COMPONENTS = {
    "kube-apiserver": Condition.API_SERVER_POD_HEALTHY,
    "kube-controller-manager": Condition.CONTROLLER_MANAGER_POD_HEALTHY,
    "kube-scheduler": Condition.SCHEDULER_POD_HEALTHY,
}
ETCD_COMPONENT = "etcd"
CONTROL_PLANE_ROLE = "node-role.kubernetes.io/control-plane"


@dataclass(frozen=True, slots=True)
class EtcdView:
    """etcd as its members told it. `members` None: unknown, `error` says why."""

    members: tuple[Member, ...] | None = None
    leader: int = 0
    alarms: Mapping[int, str] = field(default_factory=dict)  # by member
    problems: Mapping[str, str] = field(default_factory=dict)  # by name: members that do not answer as they should
    error: str = ""
    answering: frozenset[str] = frozenset()  # names of those that were asked and are well


@dataclass(frozen=True, slots=True)
class Seen:
    """The workload cluster. `down`: why it can't be reached; '' when it is."""

    down: str = ""
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    etcd: EtcdView = EtcdView()
    lost: bool = True  # not reached for so long that what was known is worth nothing any more


@dataclass(frozen=True, slots=True)
class Subject:
    """What of a Machine its health depends on."""

    name: str
    node: str = ""
    deleting: bool = False
    etcd_managed: bool = True
    taint_expected: bool = True
    waits_for: str = ""  # what has to come before there is a Node


def component_types(etcd_managed: bool) -> tuple[str, ...]:
    return (*COMPONENTS.values(), *((Condition.ETCD_POD_HEALTHY,) if etcd_managed else ()))


def conditions_of(subject: Subject, seen: Seen) -> list[DesiredCondition]:
    """All that this provider says of a Machine's health."""
    types = (Condition.NODE_KUBEADM_LABELS_AND_TAINTS_SET, *component_types(subject.etcd_managed))
    found = [_component(subject, seen, each) for each in types]
    if subject.etcd_managed:
        found.append(_member(subject, seen))
    return found


def problems_of(subject: Subject, seen: Seen) -> dict[str, str]:
    """Components that are not healthy, and why. For decisions: a Machine that is being deleted counts as it is."""
    said = [_component(subject, seen, each) for each in component_types(subject.etcd_managed)]
    return {each.type: each.message or each.reason for each in said if each.status != "True"}


def etcd_problem_of(subject: Subject, seen: Seen) -> str:
    if not subject.etcd_managed:
        return ""
    said = _member(subject, seen)
    return "" if said.status == "True" else said.message or said.reason


def _blocked(subject: Subject, seen: Seen, kind: str) -> DesiredCondition | None:
    """What is the same for all conditions."""
    if subject.deleting:
        return DesiredCondition(kind, "False", Reason.DELETING, "the Machine is being deleted")
    if seen.down:
        reason = Reason.CONNECTION_DOWN if seen.lost else Reason.INSPECTION_FAILED
        return DesiredCondition(kind, "Unknown", reason, seen.down)
    if not subject.node:
        return DesiredCondition(kind, "Unknown", Reason.INSPECTION_FAILED, subject.waits_for or "waiting for its Node")
    if subject.node not in seen.nodes:
        return DesiredCondition(kind, "Unknown", Reason.INSPECTION_FAILED, f"Node {subject.node} does not exist")
    return None


def _component(subject: Subject, seen: Seen, kind: str) -> DesiredCondition:
    blocked = _blocked(subject, seen, kind)
    if blocked is not None:
        return blocked
    node = seen.nodes[subject.node]
    if kind == Condition.NODE_KUBEADM_LABELS_AND_TAINTS_SET:
        return _labels_and_taints(subject, node)
    if _ready_status(node) == "Unknown":
        return DesiredCondition(
            kind, "Unknown", Reason.INSPECTION_FAILED, f"the kubelet of Node {subject.node} does not report"
        )
    if any(taint.get("key") == "node.kubernetes.io/unreachable" for taint in _taints(node)):
        return DesiredCondition(kind, "Unknown", Reason.INSPECTION_FAILED, f"Node {subject.node} is unreachable")
    component = next((name for name, each in COMPONENTS.items() if each == kind), ETCD_COMPONENT)
    return pod_condition(kind, f"{component}-{subject.node}", seen.pods.get(f"{component}-{subject.node}"))


def _labels_and_taints(subject: Subject, node: Mapping[str, Any]) -> DesiredCondition:
    kind = Condition.NODE_KUBEADM_LABELS_AND_TAINTS_SET
    missing = []
    if CONTROL_PLANE_ROLE not in ((node.get("metadata") or {}).get("labels") or {}):
        missing.append(f"the label {CONTROL_PLANE_ROLE}")
    if subject.taint_expected and not any(
        taint.get("key") == CONTROL_PLANE_ROLE and taint.get("effect") == "NoSchedule" for taint in _taints(node)
    ):
        missing.append(f"the taint {CONTROL_PLANE_ROLE}:NoSchedule")
    if not missing:
        return DesiredCondition(kind, "True", Reason.LABELS_AND_TAINTS_SET)
    text = f"Node {subject.node} lacks {' and '.join(missing)}"
    return DesiredCondition(kind, "False", Reason.LABELS_AND_TAINTS_NOT_SET, text)


def _taints(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((node.get("spec") or {}).get("taints") or ())


def _ready_status(node: Mapping[str, Any]) -> str:
    found = find((node.get("status") or {}).get("conditions"), "Ready")
    return str(found.get("status")) if found else ""


def pod_condition(kind: str, name: str, pod: Mapping[str, Any] | None) -> DesiredCondition:
    """How a static Pod is."""
    if pod is None:
        return DesiredCondition(kind, "False", Reason.POD_DOES_NOT_EXIST, f"Pod {name} does not exist")
    status = pod.get("status") or {}
    phase = status.get("phase") or "Pending"
    if phase in ("Failed", "Succeeded"):
        return DesiredCondition(kind, "False", Reason.POD_FAILED, f"all containers of Pod {name} have terminated")
    if phase == "Unknown":
        return DesiredCondition(kind, "Unknown", Reason.INSPECTION_FAILED, f"the state of Pod {name} is unknown")
    ready = find(status.get("conditions"), "Ready")
    if phase == "Running" and ready is not None and ready.get("status") == "True":
        return DesiredCondition(kind, "True", Reason.POD_RUNNING)
    failed, why = _containers(status.get("containerStatuses") or ())
    reason = Reason.POD_FAILED if failed else Reason.POD_PROVISIONING
    return DesiredCondition(kind, "False", reason, f"Pod {name}: {why or _waiting(phase)}")


def _waiting(phase: str) -> str:
    return "waiting for its probes to succeed" if phase == "Running" else "its containers are being started"


def _containers(statuses: Any) -> tuple[bool, str]:
    """Whether one has failed, and what the containers are held up by."""
    waiting, ended, failed = [], [], False
    for each in statuses:
        state, last = each.get("state") or {}, (each.get("lastState") or {}).get("terminated") or {}
        if state.get("waiting"):
            waiting.append(_reason(state["waiting"]))
            failed = failed or bool(last.get("exitCode"))
        elif state.get("terminated"):
            ended.append(_reason(state["terminated"]))
    if waiting:
        return failed, ", ".join(waiting)
    return bool(ended), ", ".join(ended)


def _reason(state: Mapping[str, Any]) -> str:
    reason, message = str(state.get("reason") or ""), str(state.get("message") or "")
    return f"{reason} ({message})" if reason and message else reason or message or "no reason given"


def _member(subject: Subject, seen: Seen) -> DesiredCondition:
    kind = Condition.ETCD_MEMBER_HEALTHY
    blocked = _blocked(subject, seen, kind)
    if blocked is not None:
        return blocked
    etcd = seen.etcd
    if etcd.members is None:
        return DesiredCondition(
            kind, "Unknown", Reason.INSPECTION_FAILED, etcd.error or "etcd has not been checked yet"
        )
    member = next((each for each in etcd.members if each.name == subject.node), None)
    if member is None:
        listed = ", ".join(each.name or "(starting)" for each in etcd.members)
        text = f"etcd has no member {subject.node}: its members are {listed}"
        return DesiredCondition(kind, "False", Reason.NOT_HEALTHY, text)
    if member.learner:
        return DesiredCondition(kind, "False", Reason.NOT_HEALTHY, f"etcd member {member.name} is still a learner")
    if member.id in etcd.alarms:
        text = f"etcd member {member.name} has the alarm {etcd.alarms[member.id]}"
        return DesiredCondition(kind, "False", Reason.NOT_HEALTHY, text)
    if member.name in etcd.problems:
        return DesiredCondition(
            kind, "False", Reason.NOT_HEALTHY, f"etcd member {member.name}: {etcd.problems[member.name]}"
        )
    return DesiredCondition(kind, "True", Reason.HEALTHY)
