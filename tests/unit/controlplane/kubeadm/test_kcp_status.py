from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.controlplane.condition import DesiredCondition
from homeport.controlplane.kubeadm.etcd.client import Member
from homeport.controlplane.kubeadm.observe.health import EtcdView
from homeport.controlplane.kubeadm.observe.state import MachineState, Observed, Remediation
from homeport.controlplane.kubeadm.plan.action import Defer, Hold, Remediate
from homeport.controlplane.kubeadm.status import ORDER, Findings, fill, weight
from homeport.runtime.clock import parse_time
from unit.controlplane.kubeadm.sample_kcp import make_kcp, make_machine

NOW = parse_time("2026-01-01T00:10:00Z")
CERTIFICATES = DesiredCondition("CertificatesAvailable", "True", "Available")
PARTS = (
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
)


def findings(count: int = 3, **changes: Any) -> Findings:
    kcp = make_kcp()
    machines = [make_machine(kcp, f"cp-{number}") for number in range(count)]
    for machine in machines:
        machine.status.conditions = [
            {"type": kind, "status": "True", "reason": "Fine", "message": ""} for kind in ("Ready", "Available")
        ]
    states = [MachineState(f"cp-{n}", 100.0 + n, node=f"n{n}", member=f"n{n}") for n in range(count)]
    members = tuple(Member(n + 1, f"n{n}") for n in range(count))
    found = Findings(
        now=NOW,
        cluster="one",
        machines=machines,
        observed=Observed(NOW, 3, states, initialized=True, members=members),
        etcd=EtcdView(members, 1),
        initialized=True,
        certificates=CERTIFICATES,
        conditions={
            machine.metadata.name: [
                *(DesiredCondition(kind, "True", "Running") for kind in PARTS),
                DesiredCondition("UpToDate", "True", "UpToDate"),
            ]
            for machine in machines
        },
    )
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def filled(found: Findings, kcp: KubeadmControlPlane | None = None) -> tuple[KubeadmControlPlane, dict[str, Any]]:
    kcp = kcp or make_kcp()
    fill(kcp, found)
    return kcp, {each["type"]: each for each in kcp.status.conditions}


def spoil(found: Findings, number: int, **changes: Any) -> Findings:
    assert found.observed is not None
    machines = [replace(each, **changes) if n == number else each for n, each in enumerate(found.observed.machines)]
    found.observed = replace(found.observed, machines=machines)
    return found


def test_a_healthy_control_plane_says_so() -> None:
    kcp, said = filled(findings())
    status = kcp.status
    assert (status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas) == (
        3,
        3,
        3,
        3,
    )
    assert [(each.version, each.replicas) for each in status.versions] == [("v1.30.2", 3)]
    assert status.version == "v1.30.2"
    assert status.selector == "cluster.x-k8s.io/cluster-name=one,cluster.x-k8s.io/control-plane="
    assert status.observed_generation == 3
    good = {
        "Available": "True",
        "Initialized": "True",
        "CertificatesAvailable": "True",
        "EtcdClusterHealthy": "True",
        "ControlPlaneComponentsHealthy": "True",
        "MachinesReady": "True",
        "MachinesUpToDate": "True",
        "RollingOut": "False",
        "ScalingUp": "False",
        "ScalingDown": "False",
        "Remediating": "False",
        "Deleting": "False",
    }
    assert {kind: each["status"] for kind, each in said.items()} == good
    assert [each["type"] for each in status.conditions] == [kind for kind in ORDER if kind in good]


def test_versions_are_counted_from_the_oldest() -> None:
    found = findings()
    found.machines[2].spec.version = "v1.29.9"
    kcp, _ = filled(found)
    assert [(each.version, each.replicas) for each in kcp.status.versions] == [("v1.29.9", 1), ("v1.30.2", 2)]
    assert kcp.status.version == "v1.29.9"


UNAVAILABLE: list[tuple[str, Findings, str, str]] = [
    ("not initialised", findings(initialized=False), "False", "Machine cp-0 to initialize"),
    ("unreachable", findings(down="the workload cluster can't be reached: refused"), "Unknown", "refused"),
    (
        "certificates",
        findings(
            certificates=DesiredCondition("CertificatesAvailable", "False", "NotAvailable", "Secret one-ca is missing")
        ),
        "False",
        "one-ca",
    ),
    (
        "quorum",
        spoil(spoil(findings(), 0, etcd_problem="dead"), 1, etcd_problem="dead"),
        "False",
        "1 of 3 etcd members",
    ),
    (
        "components",
        spoil(spoil(spoil(findings(), 0, problems={"x": "a"}), 1, problems={"x": "b"}), 2, problems={"x": "c"}),
        "False",
        "cp-2: c",
    ),
]


@pytest.mark.parametrize(
    ("found", "status", "message"), [row[1:] for row in UNAVAILABLE], ids=[row[0] for row in UNAVAILABLE]
)
def test_what_keeps_it_from_being_available_is_said(found: Findings, status: str, message: str) -> None:
    _, said = filled(found)
    assert said["Available"]["status"] == status
    assert message in said["Available"]["message"]


def test_one_unhealthy_member_of_three_is_not_an_outage() -> None:
    _, said = filled(spoil(findings(), 0, etcd_problem="dead"))
    assert said["Available"]["status"] == "True"


def test_members_that_are_not_known_are_not_assumed() -> None:
    found = findings(etcd=EtcdView(error="no etcd member has a leader"))
    assert found.observed is not None
    found.observed = replace(found.observed, members=None)
    _, said = filled(found)
    assert (said["Available"]["status"], said["Available"]["message"]) == ("Unknown", "no etcd member has a leader")


def test_problems_of_machines_are_reported_with_their_names() -> None:
    found = findings()
    found.conditions["cp-1"] = [
        DesiredCondition("SchedulerPodHealthy", "False", "Failed", "Pod kube-scheduler-n1: CrashLoopBackOff"),
        DesiredCondition("EtcdMemberHealthy", "Unknown", "InspectionFailed", "waiting for its Node"),
    ]
    _, said = filled(found)
    assert said["ControlPlaneComponentsHealthy"]["message"] == "Machine cp-1: Pod kube-scheduler-n1: CrashLoopBackOff"
    assert said["EtcdClusterHealthy"]["status"] == "Unknown"


def test_a_member_without_a_machine_makes_etcd_unhealthy() -> None:
    found = findings()
    assert found.observed is not None
    found.observed = replace(found.observed, members=(*(found.observed.members or ()), Member(9, "stray")))
    text = filled(found)[1]["EtcdClusterHealthy"]["message"]
    assert text == "etcd member stray has no Machine and may still be running: see 'homeport orphans list'"
    found.observed = replace(found.observed, gone=frozenset({9}))
    assert "its machine no longer exists" in filled(found)[1]["EtcdClusterHealthy"]["message"]


def test_members_that_answer_make_a_control_plane_available_though_their_machines_are_lost() -> None:
    found = findings(1)
    assert found.observed is not None
    strays = tuple(Member(8 + number, f"stray-{number}") for number in range(2))
    members = (*(found.observed.members or ()), *strays)
    found.observed = replace(found.observed, members=members)
    assert filled(found)[1]["Available"]["status"] == "False"
    found.observed = replace(found.observed, answering=frozenset(each.name for each in strays))
    assert filled(found)[1]["Available"]["status"] == "True"


def test_scaling_and_rollout_say_what_holds_them_up() -> None:
    hold = Hold("WaitingForPreflight", "waiting for the Node of Machine cp-1")
    _, said = filled(findings(2, actions=[hold]))
    assert said["ScalingUp"]["message"] == "from 2 to 3 replicas. Held up: waiting for the Node of Machine cp-1"
    _, said = filled(
        spoil(findings(4, actions=[hold]), 0, outdated=("KubeadmConfig differs", "Version a, b is desired"))
    )
    assert said["RollingOut"]["message"].startswith(
        "1 Machine must be replaced: Version a, b is desired; KubeadmConfig"
    )
    assert said["ScalingDown"]["status"] == "True"


def test_remediation_is_reported() -> None:
    data = Remediation("cp-1", NOW, 2)
    kcp, said = filled(findings(actions=[Remediate("cp-1", data)], in_progress=data))
    assert "cp-1 is being replaced" in said["Remediating"]["message"]
    assert (kcp.status.last_remediation.machine, kcp.status.last_remediation.retry_count) == ("cp-1", 2)
    _, said = filled(findings(actions=[Defer("cp-1", "CannotBeRemediated", "it is the only one")]))
    assert "stays for now: it is the only one" in said["Remediating"]["message"]


def test_initialisation_is_never_taken_back() -> None:
    kcp, _ = filled(findings())
    _, said = filled(findings(initialized=False), kcp)
    assert said["Initialized"]["status"] == "True"
    assert kcp.status.initialization.control_plane_initialized is True


def test_an_error_leaves_the_generation_unseen() -> None:
    kcp, _ = filled(findings(failed="boom"))
    assert kcp.status.observed_generation == 0


def test_only_changes_of_messages_are_delayed() -> None:
    kcp, _ = filled(findings())
    before = weight(kcp)
    filled(findings(actions=[Hold("a", "b")]), kcp)
    assert weight(kcp) == before
    filled(findings(2), kcp)
    assert weight(kcp) != before
