"""The status of a KubeadmControlPlane, from what was observed and planned. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.cluster.v1beta2.reference import StatusVersion
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane, LastRemediationStatus
from homeport.capi import version as versions
from homeport.capi.name import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, Condition, Reason
from homeport.controlplane.condition import DesiredCondition, with_desired
from homeport.controlplane.kubeadm.etcd.client import Member
from homeport.controlplane.kubeadm.observe.health import EtcdView
from homeport.controlplane.kubeadm.observe.state import MachineState, Observed, Remediation
from homeport.controlplane.kubeadm.plan.action import Action, Defer, Hold, Remediate
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339

ORDER = (
    Condition.AVAILABLE,
    Condition.INITIALIZED,
    Condition.CERTIFICATES_AVAILABLE,
    Condition.ETCD_CLUSTER_HEALTHY,
    Condition.CONTROL_PLANE_COMPONENTS_HEALTHY,
    Condition.MACHINES_READY,
    Condition.MACHINES_UP_TO_DATE,
    Condition.ROLLING_OUT,
    Condition.SCALING_UP,
    Condition.SCALING_DOWN,
    Condition.REMEDIATING,
    Condition.DELETING,
    Condition.PAUSED,
)


# Of Machines, which change with every step of theirs.
_SUMMARIES = frozenset(
    {Condition.MACHINES_READY, Condition.ETCD_CLUSTER_HEALTHY, Condition.CONTROL_PLANE_COMPONENTS_HEALTHY}
)


@dataclass(slots=True)
class Findings:
    """Everything that a reconcile found out, for the report at its end. What stayed None was not looked at."""

    now: float
    cluster: str
    machines: list[Machine] = field(default_factory=list)
    conditions: dict[str, list[DesiredCondition]] = field(default_factory=dict)  # of Machines, by name
    observed: Observed | None = None
    actions: Sequence[Action] = ()
    etcd: EtcdView = field(default_factory=EtcdView)
    down: str = ""  # why the workload cluster can't be reached
    lost: bool = False  # and so for long
    brief: bool = False  # etcd answered a moment ago: a failure now is not reported yet
    initialized: bool = False
    certificates: DesiredCondition | None = None
    blocked: str = ""  # why nothing could be planned
    deleting: DesiredCondition | None = None
    in_progress: Remediation | None = None
    failed: str = ""  # the reconcile ended with an error
    made: set[str] = field(default_factory=set)  # Machines that this very loop made: up to date by birth


def fill(kcp: KubeadmControlPlane, findings: Findings) -> None:
    """Sets everything but Paused."""
    status = kcp.status
    if findings.initialized:
        status.initialization.control_plane_initialized = True
    _fill_replicas(kcp, findings)
    last = last_remediation(findings)
    if last is not None:
        status.last_remediation = LastRemediationStatus(
            machine=last.machine, retry_count=last.retries, time=rfc3339(last.time)
        )
    if not findings.failed:
        status.observed_generation = kcp.metadata.generation
    now, generation = rfc3339(findings.now), kcp.metadata.generation
    desired = _conditions(kcp, findings)
    status.conditions = with_desired(status.conditions, desired, now=now, generation=generation)
    rank = {name: number for number, name in enumerate(ORDER)}
    status.conditions.sort(key=lambda each: rank.get(str(each["type"]), len(rank) - 2))


def _fill_replicas(kcp: KubeadmControlPlane, findings: Findings) -> None:
    status = kcp.status
    status.selector = f"{CLUSTER_NAME_LABEL}={findings.cluster},{CONTROL_PLANE_LABEL}="
    machines = findings.machines
    status.replicas = len(machines)
    status.ready_replicas = _count(machines, findings, Condition.READY)
    status.available_replicas = _count(machines, findings, Condition.AVAILABLE)
    status.up_to_date_replicas = _count(machines, findings, Condition.UP_TO_DATE)
    old = status.deprecated.v1beta1
    old.conditions = []  # others wrote them, whose cluster we look after now
    old.ready_replicas, old.updated_replicas = status.ready_replicas, status.up_to_date_replicas
    old.unavailable_replicas = status.replicas - status.ready_replicas
    status.versions = versions_of(machines)
    if status.versions:
        status.version = status.versions[0].version


def _conditions(kcp: KubeadmControlPlane, findings: Findings) -> Iterator[DesiredCondition]:
    found = [
        available(kcp, findings),
        _initialized(kcp),
        findings.certificates,
        etcd_healthy(findings),
        components_healthy(findings),
        machines_ready(findings),
        machines_up_to_date(findings),
        rolling_out(findings),
        scaling_up(kcp, findings),
        scaling_down(kcp, findings),
        remediating(findings),
        findings.deleting or DesiredCondition(Condition.DELETING, "False", Reason.NOT_DELETING),
    ]
    return (each for each in found if each is not None)


def weight(kcp: KubeadmControlPlane) -> tuple[object, ...]:
    """What others act on: a change of it is written at once, a change of words can wait a moment."""
    status = kcp.status
    return (
        [(each["type"], each["status"]) for each in status.conditions if each["type"] not in _SUMMARIES],
        (status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas),
        [(each.version, each.replicas) for each in status.versions],
        status.initialization.control_plane_initialized,
        status.observed_generation,
        status.last_remediation,
    )


# -- counters ----------------------------------------------------------------------------------------------------


def _said(machine: Machine, findings: Findings, kind: str) -> tuple[str, str, str] | None:
    """(status, reason, message): as we are about to write it, else as it stands on the Machine."""
    for each in findings.conditions.get(machine.metadata.name, ()):
        if each.type == kind:
            return each.status, each.reason, each.message
    if kind == Condition.UP_TO_DATE and machine.metadata.name in findings.made:
        return "True", Reason.UP_TO_DATE, ""
    found = condition.find(machine.status.conditions, kind)
    return None if found is None else (str(found["status"]), str(found.get("reason")), str(found.get("message") or ""))


def _is_true(machine: Machine, findings: Findings, kind: str) -> bool:
    found = _said(machine, findings, kind)
    return found is not None and found[0] == "True"


def _count(machines: Sequence[Machine], findings: Findings, kind: str) -> int:
    return sum(1 for each in machines if _is_true(each, findings, kind))


def versions_of(machines: Sequence[Machine]) -> list[StatusVersion]:
    """Oldest first."""
    counted = Counter(machine.spec.version for machine in machines if machine.spec.version)
    ordered = sorted(counted, key=lambda each: versions.parse(each).build_key)
    return [StatusVersion(version=each, replicas=counted[each]) for each in ordered]


def last_remediation(findings: Findings) -> Remediation | None:
    """The one in progress, else the newest that a Machine was made for."""
    if findings.in_progress is not None:
        return findings.in_progress
    known = [each.remediation for each in (findings.observed.machines if findings.observed else ()) if each.remediation]
    return max(known, key=lambda each: each.time, default=None)


# -- conditions --------------------------------------------------------------------------------------------------


def _initialized(kcp: KubeadmControlPlane) -> DesiredCondition:
    if kcp.status.initialization.control_plane_initialized:
        return DesiredCondition(Condition.INITIALIZED, "True", Reason.INITIALIZED)
    return DesiredCondition(Condition.INITIALIZED, "False", Reason.NOT_INITIALIZED)


def available(kcp: KubeadmControlPlane, findings: Findings) -> DesiredCondition:
    kind = Condition.AVAILABLE
    problems: list[str] = []
    if kcp.metadata.deletion_timestamp:
        return DesiredCondition(kind, "False", Reason.NOT_AVAILABLE, "the control plane is being deleted")
    if not kcp.status.initialization.control_plane_initialized:
        return DesiredCondition(kind, "False", Reason.NOT_AVAILABLE, findings.blocked or _coming_up(findings))
    if findings.certificates is not None and findings.certificates.status != "True":
        problems.append(findings.certificates.message)
    observed = findings.observed
    known = condition.find(kcp.status.conditions, kind)
    if known is not None and known["status"] == "True" and not problems and _silent_for_a_moment(findings):
        return DesiredCondition(kind, "True", Reason.AVAILABLE)  # most connections come back
    if observed is None or findings.down:
        return DesiredCondition(
            kind, "Unknown", Reason.INSPECTION_FAILED, findings.down or findings.blocked or findings.failed
        )
    if observed.etcd_managed:
        if observed.members is None:
            return DesiredCondition(kind, "Unknown", Reason.INSPECTION_FAILED, findings.etcd.error)
        problems += _quorum(observed)
    well = [machine for machine in observed.machines if machine.healthy]
    if not well:
        problems.append(f"no Machine has a healthy control plane ({_why_not(observed.machines)})")
    if problems:
        return DesiredCondition(kind, "False", Reason.NOT_AVAILABLE, "; ".join(problems))
    return DesiredCondition(kind, "True", Reason.AVAILABLE)


def _silent_for_a_moment(findings: Findings) -> bool:
    if findings.down:
        return not findings.lost
    observed = findings.observed
    return findings.brief and (observed is None or (observed.etcd_managed and observed.members is None))


def _coming_up(findings: Findings) -> str:
    if not findings.machines:
        return findings.failed or "no Machine has been created yet"
    return f"waiting for Machine {findings.machines[0].metadata.name} to initialize the cluster"


def _why_not(machines: Sequence[MachineState]) -> str:
    said = []
    for machine in machines:
        problem = next(iter(machine.problems.values()), "") or machine.etcd_problem or "it has no Node"
        said.append(f"{machine.name}: {problem}")
    return "; ".join(said) or "there is none"


def _quorum(observed: Observed) -> list[str]:
    voting = [each for each in observed.members or () if each.name and not each.learner]
    by_member = {machine.member: machine for machine in observed.machines if machine.member}
    ill = []
    for member in voting:
        machine = by_member.get(member.name)
        if machine is None and any(not each.node for each in observed.machines):
            continue  # it belongs to the Machine that is coming up
        if machine is None and member.name in observed.answering:
            continue  # its objects are lost, not the member
        if machine is None or (machine.etcd_problem and not machine.deleting):
            ill.append(f"{member.name} ({machine.etcd_problem if machine else 'has no Machine'})")
    needed = len(voting) // 2 + 1
    if len(voting) - len(ill) >= needed:
        return []
    return [f"{len(voting) - len(ill)} of {len(voting)} etcd members are healthy, {needed} required: {', '.join(ill)}"]


def _stray(observed: Observed, member: Member) -> str:
    text = f"etcd member {member.name or f'{member.id:x}'} has no Machine"
    if member.id in observed.gone:
        return f"{text}, and its machine no longer exists: it is removed when the quorum allows it"
    answers = "answers" if member.name in observed.answering else "may still be running"
    return f"{text} and {answers}: see 'homeport orphans list'"


def etcd_healthy(findings: Findings) -> DesiredCondition | None:
    observed = findings.observed
    if observed is not None and not observed.etcd_managed:
        return None
    extra = []
    if observed is not None and observed.members is not None and all(each.node for each in observed.machines):
        known = {machine.member for machine in observed.machines}
        extra = [_stray(observed, each) for each in observed.members if each.name not in known]
    return _aggregate(Condition.ETCD_CLUSTER_HEALTHY, findings, (Condition.ETCD_MEMBER_HEALTHY,), extra)


def components_healthy(findings: Findings) -> DesiredCondition:
    kinds = (
        Condition.API_SERVER_POD_HEALTHY,
        Condition.CONTROLLER_MANAGER_POD_HEALTHY,
        Condition.SCHEDULER_POD_HEALTHY,
        Condition.ETCD_POD_HEALTHY,
    )
    return _aggregate(Condition.CONTROL_PLANE_COMPONENTS_HEALTHY, findings, kinds, [])


def _aggregate(kind: str, findings: Findings, parts: Sequence[str], extra: Sequence[str]) -> DesiredCondition:
    if not findings.initialized:
        return DesiredCondition(kind, "Unknown", Reason.INSPECTION_FAILED, "waiting for the cluster to be initialized")
    wrong, unknown, well = list(extra), list[str](), 0
    for machine in findings.machines:
        found = [(part, _said(machine, findings, part)) for part in parts]
        bad = [(part, said) for part, said in found if said is not None and said[0] == "False"]
        dark = [(part, said) for part, said in found if said is not None and said[0] == "Unknown"]
        for listed, target in ((bad, wrong), (dark, unknown)):
            if listed:
                texts = dict.fromkeys(said[2] or said[1] for _, said in listed)
                target.append(f"Machine {machine.metadata.name}: {', '.join(texts)}")
        well += not bad and not dark
    if wrong:
        return DesiredCondition(kind, "False", Reason.NOT_HEALTHY, _lines([*wrong, *unknown]))
    if unknown:
        return DesiredCondition(kind, "Unknown", Reason.HEALTH_UNKNOWN, _lines(unknown))
    if not well:
        return DesiredCondition(kind, "Unknown", Reason.HEALTH_UNKNOWN, "no Machine exists")
    return DesiredCondition(kind, "True", Reason.HEALTHY)


def _lines(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else "\n".join(f"* {text}" for text in texts)


def machines_ready(findings: Findings) -> DesiredCondition:
    return _all_machines(findings, Condition.MACHINES_READY, Condition.READY, Reason.READY, Reason.NOT_READY)


def machines_up_to_date(findings: Findings) -> DesiredCondition:
    return _all_machines(
        findings, Condition.MACHINES_UP_TO_DATE, Condition.UP_TO_DATE, Reason.UP_TO_DATE, Reason.NOT_UP_TO_DATE
    )


def _all_machines(findings: Findings, kind: str, of: str, good: str, bad: str) -> DesiredCondition:
    if not findings.machines:
        return DesiredCondition(kind, "True", Reason.NO_REPLICAS)
    wrong, unknown = list[str](), list[str]()
    for machine in findings.machines:
        found = _said(machine, findings, of)
        if found is None:
            if of == Condition.READY:
                unknown.append(f"Machine {machine.metadata.name}: {of} is not reported yet")
        elif found[0] != "True":
            (wrong if found[0] == "False" else unknown).append(
                f"Machine {machine.metadata.name}: {found[2] or found[1]}"
            )
    if wrong:
        return DesiredCondition(kind, "False", bad, _lines([*wrong, *unknown]))
    if unknown:
        return DesiredCondition(kind, "Unknown", f"{good}Unknown", _lines(unknown))
    return DesiredCondition(kind, "True", good)


def rolling_out(findings: Findings) -> DesiredCondition:
    outdated = findings.observed.outdated if findings.observed else []
    if not outdated:
        return DesiredCondition(Condition.ROLLING_OUT, "False", Reason.NOT_ROLLING_OUT)
    reasons = sorted(
        {text for each in outdated for text in each.outdated}, key=lambda text: (text[:7] != "Version", text)
    )
    head = f"{len(outdated)} Machines must be replaced" if len(outdated) > 1 else "1 Machine must be replaced"
    held = _held(findings)
    return DesiredCondition(
        Condition.ROLLING_OUT, "True", Reason.ROLLING_OUT, _paragraph(f"{head}: {'; '.join(reasons)}", held)
    )


def _held(findings: Findings) -> str:
    return next((each.message for each in findings.actions if isinstance(each, Hold)), "")


def _paragraph(head: str, held: str) -> str:
    return f"{head}. Held up: {held}" if held else head


def scaling_up(kcp: KubeadmControlPlane, findings: Findings) -> DesiredCondition:
    kind = Condition.SCALING_UP
    wanted = 0 if kcp.metadata.deletion_timestamp else kcp.spec.replicas
    if wanted is None:
        return DesiredCondition(kind, "Unknown", Reason.WAITING_FOR_REPLICAS_SET, "waiting for spec.replicas to be set")
    have = len(findings.machines)
    if have >= wanted:
        return DesiredCondition(kind, "False", Reason.NOT_SCALING_UP)
    held = _held(findings) or findings.blocked or findings.failed
    return DesiredCondition(kind, "True", Reason.SCALING_UP, _paragraph(f"from {have} to {wanted} replicas", held))


def scaling_down(kcp: KubeadmControlPlane, findings: Findings) -> DesiredCondition:
    kind = Condition.SCALING_DOWN
    wanted = 0 if kcp.metadata.deletion_timestamp else kcp.spec.replicas
    if wanted is None:
        return DesiredCondition(kind, "Unknown", Reason.WAITING_FOR_REPLICAS_SET, "waiting for spec.replicas to be set")
    have = len(findings.machines)
    if have <= wanted:
        return DesiredCondition(kind, "False", Reason.NOT_SCALING_DOWN)
    return DesiredCondition(
        kind, "True", Reason.SCALING_DOWN, _paragraph(f"from {have} to {wanted} replicas", _held(findings))
    )


def remediating(findings: Findings) -> DesiredCondition:
    kind = Condition.REMEDIATING
    deferred = [each for each in findings.actions if isinstance(each, Defer)]
    begun = [each.machine for each in findings.actions if isinstance(each, Remediate)]
    if findings.in_progress is not None and not begun:
        begun = [findings.in_progress.machine]
    if begun:
        return DesiredCondition(kind, "True", Reason.REMEDIATING, f"Machine {begun[0]} is being replaced")
    if deferred:
        text = "; ".join(f"Machine {each.machine} is unhealthy and stays for now: {each.message}" for each in deferred)
        return DesiredCondition(kind, "True", Reason.REMEDIATING, text)
    return DesiredCondition(kind, "False", Reason.NOT_REMEDIATING)
