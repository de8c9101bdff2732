from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from homeport.controlplane.kubeadm.etcd.client import Member, MemberAlarm, Status
from homeport.controlplane.kubeadm.etcd.inspector import _Answer, combine
from homeport.controlplane.kubeadm.observe.health import (
    EtcdView,
    Seen,
    Subject,
    conditions_of,
    etcd_problem_of,
    pod_condition,
    problems_of,
)

ROLE = "node-role.kubernetes.io/control-plane"
NODE: dict[str, Any] = {
    "metadata": {"labels": {ROLE: ""}},
    "spec": {"taints": [{"key": ROLE, "effect": "NoSchedule"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
RUNNING: dict[str, Any] = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
SEEN = Seen(
    nodes={"n": NODE},
    pods={f"{name}-n": RUNNING for name in COMPONENTS},
    etcd=EtcdView((Member(1, "n"),), 1),
)
ONE = Subject("cp-0", "n")


def said(subject: Subject, seen: Seen) -> dict[str, tuple[str, str]]:
    return {each.type: (each.status, each.reason) for each in conditions_of(subject, seen)}


def test_a_healthy_control_plane_has_no_problems() -> None:
    assert {status for status, _ in said(ONE, SEEN).values()} == {"True"}
    assert problems_of(ONE, SEEN) == {}
    assert etcd_problem_of(ONE, SEEN) == ""


def test_external_etcd_is_not_looked_at() -> None:
    found = said(replace(ONE, etcd_managed=False), replace(SEEN, etcd=EtcdView()))
    assert "EtcdMemberHealthy" not in found
    assert "EtcdPodHealthy" not in found


@pytest.mark.parametrize(
    ("pod", "status", "reason", "message"),
    [
        (None, "False", "DoesNotExist", "does not exist"),
        ({"status": {"phase": "Pending"}}, "False", "Provisioning", "being started"),
        ({"status": {"phase": "Running"}}, "False", "Provisioning", "probes"),
        ({"status": {"phase": "Failed"}}, "False", "Failed", "have terminated"),
        ({"status": {"phase": "Unknown"}}, "Unknown", "InspectionFailed", "unknown"),
        (
            {
                "status": {
                    "phase": "Running",
                    "containerStatuses": [
                        {
                            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m"}},
                            "lastState": {"terminated": {"exitCode": 1}},
                        }
                    ],
                }
            },
            "False",
            "Failed",
            "CrashLoopBackOff (back-off 5m)",
        ),
        (
            {"status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}},
            "False",
            "Provisioning",
            "ErrImagePull",
        ),
        (RUNNING, "True", "Running", ""),
    ],
)
def test_static_pods_tell_how_components_are(pod: Any, status: str, reason: str, message: str) -> None:
    found = pod_condition("SchedulerPodHealthy", "kube-scheduler-n", pod)
    assert (found.status, found.reason) == (status, reason)
    assert message in found.message


def test_pods_of_a_silent_kubelet_tell_nothing() -> None:
    silent = {**NODE, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    found = said(ONE, replace(SEEN, nodes={"n": silent}))
    assert found["APIServerPodHealthy"] == ("Unknown", "InspectionFailed")
    assert found["NodeKubeadmLabelsAndTaintsSet"] == ("True", "Set")


def test_labels_and_taints_of_kubeadm_are_missed() -> None:
    bare = {**NODE, "metadata": {}, "spec": {}}
    found = next(each for each in conditions_of(ONE, replace(SEEN, nodes={"n": bare})) if each.status != "True")
    assert found.reason == "NotSet"
    assert f"the label {ROLE} and the taint {ROLE}:NoSchedule" in found.message
    own = replace(ONE, taint_expected=False)
    assert "taint" not in next(each for each in conditions_of(own, replace(SEEN, nodes={"n": bare}))).message


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (EtcdView(error="no leader"), "no leader"),
        (EtcdView((Member(2, "m"),), 2), "no member n"),
        (EtcdView((Member(1, "n", learner=True),), 1), "learner"),
        (EtcdView((Member(1, "n"),), 1, {1: "NOSPACE"}), "NOSPACE"),
        (EtcdView((Member(1, "n"),), 1, {}, {"n": "it does not answer"}), "does not answer"),
    ],
)
def test_etcd_members_tell_how_they_are(view: EtcdView, message: str) -> None:
    assert message in etcd_problem_of(ONE, replace(SEEN, etcd=view))


@pytest.mark.parametrize(
    ("subject", "seen", "status", "reason"),
    [
        (replace(ONE, deleting=True), SEEN, "False", "Deleting"),
        (replace(ONE, node=""), SEEN, "Unknown", "InspectionFailed"),
        (replace(ONE, node="gone"), SEEN, "Unknown", "InspectionFailed"),
        (ONE, Seen(down="no route"), "Unknown", "ConnectionDown"),
        (ONE, Seen(down="no route", lost=False), "Unknown", "InspectionFailed"),
    ],
)
def test_what_can_not_be_seen_is_the_same_for_all(subject: Subject, seen: Seen, status: str, reason: str) -> None:
    assert set(said(subject, seen).values()) == {(status, reason)}


def test_answers_of_several_members_make_one_view() -> None:
    members = (Member(1, "a"), Member(2, "b"), Member(3, "c"))
    good = _Answer(Status("3.5", 1, 2, 0, False, ()), members, (MemberAlarm(3, "NOSPACE"),))
    alone = _Answer(Status("3.5", 2, 0, 0, False, ()))
    view = combine({"a": good, "b": alone}, {"c": "refused"})
    assert view.members == members
    assert view.leader == 2
    assert view.alarms == {3: "NOSPACE"}
    assert set(view.problems) == {"b", "c"}
    lost = combine({"b": alone}, {"c": "refused"})
    assert lost.members is None
    assert "c: it does not answer: refused" in lost.error
