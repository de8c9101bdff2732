"""When a Machine is unhealthy, and when to look again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.api.cluster.v1beta2 import (
    Cluster,
    Machine,
    MachineHealthCheckChecks,
    MachineHealthCheckRemediationTriggerIf,
)
from homeport.core.machinehealthcheck import mark
from homeport.core.machinehealthcheck.admission import default, validate
from homeport.core.machinehealthcheck.budget import weigh
from homeport.core.machinehealthcheck.check import GRACE_SECONDS, Healthy, Target, Undecided, Unhealthy, check
from homeport.runtime.clock import VIRTUAL_START, rfc3339

NOW = VIRTUAL_START + 10_000
BEGUN = {"infrastructureProvisioned": True, "controlPlaneInitialized": True}


def at(seconds_ago: float) -> str:
    return rfc3339(NOW - seconds_ago)


def cluster(conditions: list[dict[str, Any]] | None = None, **initialization: Any) -> Cluster:
    status = {"initialization": initialization or BEGUN, "conditions": conditions or []}
    return msgspec.convert({"metadata": {"name": "c1"}, "status": status}, Cluster)


def machine(age: float = 5000, node: str = "n1", conditions: Any = (), **meta: Any) -> Machine:
    status: dict[str, Any] = {"conditions": list(conditions)}
    if node:
        status["nodeRef"] = {"name": node}
    return msgspec.convert(
        {"metadata": {"name": "m1", "creationTimestamp": at(age), **meta}, "status": status}, Machine
    )


def said(kind: str, status: str, ago: float, reason: str = "Why") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": at(ago)}


def node(*conditions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "n1"}, "status": {"conditions": list(conditions)}}


CHECKS = msgspec.convert(
    {
        "nodeStartupTimeoutSeconds": 600,
        "unhealthyNodeConditions": [
            {"type": "Ready", "status": "Unknown", "timeoutSeconds": 300},
            {"type": "Ready", "status": "False", "timeoutSeconds": 100},
        ],
        "unhealthyMachineConditions": [{"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 50}],
    },
    MachineHealthCheckChecks,
)
GOOD = node(said("Ready", "True", 1000))


def target(found: Machine, held: Any = GOOD, known: bool = True, connected: float | None = 5000) -> Target:
    return Target(found, held, known, None if connected is None else NOW - connected)


TABLE: list[tuple[str, Target, Cluster, Any]] = [
    ("a ready Node is healthy", target(machine()), cluster(), Healthy()),
    (
        "a Node unknown for 299 s has one second left",
        target(machine(), node(said("Ready", "Unknown", 299))),
        cluster(),
        Undecided(1.0),
    ),
    (
        "a Node unknown for 300 s is unhealthy",
        target(machine(), node(said("Ready", "Unknown", 300))),
        cluster(),
        "UnhealthyNode",
    ),
    ("a Node that is gone is noticed at once", target(machine(), None), cluster(), "NodeDeleted"),
    (
        "a Node that nobody can look for is not held against its Machine",
        target(machine(), None, known=False),
        cluster(),
        Undecided(),
    ),
    ("no Node after 599 s: one second left", target(machine(599, ""), None), cluster(), Undecided(1.0)),
    ("no Node after 600 s", target(machine(600, ""), None), cluster(), "NodeStartupTimeout"),
    (
        "startup is counted from the Machine's infrastructure",
        target(machine(900, "", [said("InfrastructureReady", "True", 100)]), None),
        cluster(),
        Undecided(500.0),
    ),
    (
        "startup is counted from the control plane",
        target(machine(900, ""), None),
        cluster([said("ControlPlaneInitialized", "True", 590)]),
        Undecided(10.0),
    ),
    (
        "nobody is blamed for not starting while the cluster can't be asked",
        target(machine(900, ""), None, known=False),
        cluster(),
        Undecided(),
    ),
    (
        "nor in the moment after it can be asked again",
        target(machine(900, ""), None, connected=10),
        cluster(),
        Undecided(GRACE_SECONDS - 10),
    ),
    (
        "a Machine's condition counts as well",
        target(machine(conditions=[said("InfrastructureReady", "False", 60)])),
        cluster(),
        "UnhealthyMachine",
    ),
    (
        "the shortest time left counts",
        target(machine(conditions=[said("InfrastructureReady", "False", 45)]), node(said("Ready", "False", 60))),
        cluster(),
        Undecided(5.0),
    ),
    (
        "the annotation asks for remediation of a healthy one",
        target(machine(annotations={"cluster.x-k8s.io/remediate-machine": ""})),
        cluster(),
        "HasRemediateAnnotation",
    ),
    (
        "a worker is not judged before the control plane is there",
        target(machine(9000, ""), None, known=False),
        cluster(infrastructureProvisioned=True),
        Undecided(),
    ),
    (
        "a control plane Machine is, or the first could never be replaced",
        target(machine(9000, "", labels={"cluster.x-k8s.io/control-plane": ""}), None, known=False),
        cluster(infrastructureProvisioned=True),
        "NodeStartupTimeout",
    ),
    (
        "nobody is judged before the infrastructure is there",
        target(machine(9000, "", labels={"cluster.x-k8s.io/control-plane": ""}), None, known=False),
        cluster(controlPlaneInitialized=True),
        Undecided(),
    ),
]


@pytest.mark.parametrize(("found", "where", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_health(found: Target, where: Cluster, expected: Any) -> None:
    verdict = check(found, where, CHECKS, NOW)
    if isinstance(expected, str):
        assert isinstance(verdict, Unhealthy)
        assert verdict.reason == expected
        assert verdict.message
    else:
        assert verdict == expected


def test_a_startup_timeout_of_zero_is_none() -> None:
    checks = msgspec.structs.replace(CHECKS, node_startup_timeout_seconds=0)
    assert check(target(machine(9000, ""), None), cluster(), checks, NOW) == Undecided()


def test_everything_that_is_wrong_is_reported() -> None:
    found = machine(conditions=[said("InfrastructureReady", "False", 60)])
    verdict = check(target(found, node(said("Ready", "Unknown", 400))), cluster(), CHECKS, NOW)
    assert isinstance(verdict, Unhealthy)
    assert "InfrastructureReady of Machine m1" in verdict.message
    assert "Ready of Node n1" in verdict.message


@pytest.mark.parametrize(
    ("trigger", "expected", "healthy", "allowed", "left"),
    [
        ({}, 3, 0, True, 0),
        ({"unhealthyLessThanOrEqualTo": "40%"}, 5, 3, True, 0),
        ({"unhealthyLessThanOrEqualTo": "40%"}, 5, 2, False, 0),
        ({"unhealthyLessThanOrEqualTo": "40%"}, 3, 2, True, 0),  # 1.2 is rounded down
        ({"unhealthyLessThanOrEqualTo": 2}, 10, 9, True, 1),
        ({"unhealthyLessThanOrEqualTo": 0}, 10, 10, True, 0),
        ({"unhealthyInRange": "[2-3]"}, 10, 9, False, 0),
        ({"unhealthyInRange": "[2-3]"}, 10, 8, True, 1),
        ({"unhealthyInRange": "[2-3]"}, 10, 6, False, 0),
        ({"unhealthyInRange": "[0-3]", "unhealthyLessThanOrEqualTo": 0}, 10, 8, True, 1),
    ],
)
def test_remediation_stays_within_the_limits(
    trigger: dict[str, Any], expected: int, healthy: int, allowed: bool, left: int
) -> None:
    found = weigh(msgspec.convert(trigger, MachineHealthCheckRemediationTriggerIf), expected=expected, healthy=healthy)
    assert (found.allowed, found.left) == (allowed, left)
    assert bool(found.message) is not allowed


def test_a_remediation_under_way_is_not_begun_again() -> None:
    under_way = said("OwnerRemediated", "False", 10, "MachineDeleting")
    found = machine(conditions=[under_way])
    conditions = mark.for_owner(found, mark.unhealthy(found, Unhealthy("NodeDeleted", "x"), at(0)), at(0))
    assert [c["reason"] for c in conditions] == ["MachineDeleting", "NodeDeleted"]


def test_who_recovers_needs_no_remediation() -> None:
    waiting = said("OwnerRemediated", "False", 10, "WaitingForRemediation")
    conditions = mark.healthy(machine(conditions=[waiting]), at(0))
    assert [(c["type"], c["status"]) for c in conditions] == [("HealthCheckSucceeded", "True")]


def test_marking_twice_changes_nothing() -> None:
    found = machine()
    found.status.conditions = mark.healthy(found, at(100))
    assert mark.healthy(found, at(0)) == found.status.conditions


def body(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "h"}, "spec": {"clusterName": "c1", "selector": {"matchLabels": {"a": "b"}}, **spec}}


def test_the_startup_timeout_and_the_label_are_filled_in() -> None:
    found = body()
    default(found, None)
    assert found["spec"]["checks"]["nodeStartupTimeoutSeconds"] == 600
    assert found["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "c1"}
    before = str(found)
    default(found, found)
    assert str(found) == before


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"selector": {}}, "spec.selector"),
        ({"selector": {"matchLabels": {"cluster.x-k8s.io/cluster-name": "other"}}}, "spec.selector"),
        ({"checks": {"nodeStartupTimeoutSeconds": 29}}, "spec.checks.nodeStartupTimeoutSeconds"),
        (
            {"checks": {"unhealthyMachineConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 1}]}},
            "spec.checks.unhealthyMachineConditions[0].type",
        ),
        (
            {"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "forty"}}},
            "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo",
        ),
        ({"remediation": {"triggerIf": {"unhealthyInRange": "[5-3]"}}}, "spec.remediation.triggerIf.unhealthyInRange"),
    ],
)
def test_what_is_refused(spec: dict[str, Any], field: str) -> None:
    assert [cause.field for cause in validate(body(**spec), None)] == [field]


def test_what_is_accepted() -> None:
    spec = {"checks": {"nodeStartupTimeoutSeconds": 0}, "remediation": {"triggerIf": {"unhealthyInRange": "[3-5]"}}}
    assert validate(body(**spec), body()) == []


def test_a_check_stays_in_its_cluster() -> None:
    causes = validate(body(), {"metadata": {}, "spec": {"clusterName": "other"}})
    assert [cause.field for cause in causes] == ["spec.clusterName"]


def test_a_controller_without_a_node_is_judged_by_what_its_control_plane_reports() -> None:
    checks = msgspec.convert(
        {"unhealthyMachineConditions": [{"type": "ControllerHealthy", "status": "False", "timeoutSeconds": 50}]},
        MachineHealthCheckChecks,
    )

    def verdict(status: str) -> object:
        found = machine(node="", conditions=[said("ControllerHealthy", status, 60)])
        return check(Target(found, None, node_known=True, connected=NOW - 5000), cluster(), checks, NOW)

    assert verdict("True") == Healthy()
    assert isinstance(verdict("False"), Unhealthy)
