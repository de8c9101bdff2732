"""Which Machines a MachineSet deletes, makes, replaces and leaves alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineSet
from homeport.core.machineset import preflight, priority, remediation, replica
from homeport.core.machineset.admission import default, validate
from homeport.core.machineset.machine import carried, holds, intent, new_machine, timeouts_patch
from homeport.core.machineset.share import share_of, share_trouble
from homeport.core.machineset.status import report
from homeport.machinery import condition
from homeport.runtime.clock import VIRTUAL_START, rfc3339

NOW = VIRTUAL_START + 100 * 24 * 3600
DAY = 24 * 3600.0


def machine(name: str = "m", age_days: float = 1, node: bool = True, **parts: Any) -> Machine:
    status: dict[str, Any] = {"conditions": parts.pop("conditions", [])}
    if node:
        status["nodeRef"] = {"name": name}
    spec = {"clusterName": "c1", "bootstrap": {"dataSecretName": "s"}, **parts.pop("spec", {})}
    meta = {"name": name, "uid": f"u-{name}", "creationTimestamp": rfc3339(NOW - age_days * DAY), **parts}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Machine)


def said(kind: str, status: str, reason: str = "R", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": rfc3339(NOW)}


GOING: dict[str, Any] = {"deletionTimestamp": rfc3339(NOW), "finalizers": ["x"]}
ASKED: dict[str, Any] = {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}
UPDATING: dict[str, Any] = {"annotations": {"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": ""}}


@pytest.mark.parametrize(
    ("found", "order", "least", "most"),
    [
        (machine(**GOING), "Random", 100, 100),
        (machine(**ASKED), "Oldest", 80, 80),
        (machine(**UPDATING), "Random", 75, 75),
        (machine(node=False), "Random", 50, 50),
        (machine(conditions=[said("NodeHealthy", "False")]), "Newest", 50, 50),
        (machine(conditions=[said("NodeHealthy", "Unknown")]), "Random", 20, 20),
        (machine(conditions=[said("HealthCheckSucceeded", "False")]), "Random", 50, 50),
        (machine(), "Random", 20, 20),
        (machine(age_days=0), "Oldest", 0, 0.01),
        (machine(age_days=10), "Oldest", 31, 32),
        (machine(age_days=1000), "Oldest", 49, 50),
        (machine(age_days=0), "Newest", 49.9, 50),
        (machine(age_days=10), "Newest", 18, 19),
    ],
)
def test_priority(found: Machine, order: str, least: float, most: float) -> None:
    assert least <= priority.priority(found, order, NOW) <= most


def test_names_break_ties_and_deleting_ones_count() -> None:
    found = [machine("c"), machine("a"), machine("b", **GOING)]
    assert [m.metadata.name for m in priority.pick(found, 2, "Random", NOW)] == ["b", "a"]
    assert priority.pick(found, -1, "Random", NOW) == []


# -- preflight -------------------------------------------------------------------------------------------------------


def machine_set(version: str = "v1.30.0", kind: str = "KubeadmConfigTemplate", **parts: Any) -> MachineSet:
    spec: dict[str, Any] = {
        "clusterName": "c1",
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}, **parts.pop("template", {})},
            "spec": {
                "clusterName": "c1",
                "version": version,
                "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": kind, "name": "c"}},
                **parts.pop("spec", {}),
            },
        },
    }
    meta = {"name": "ms", "namespace": "default", "uid": "s1", "generation": 2, **parts}
    return msgspec.convert({"metadata": meta, "spec": spec}, MachineSet)


def plane(version: str, running: str) -> preflight.ControlPlane:
    body = {"kind": "Plane", "metadata": {"name": "c1"}, "spec": {"version": version}, "status": {"version": running}}
    return preflight.ControlPlane(body, "v1beta2")


def cluster(topology: str = "", **annotations: str) -> Cluster:
    spec = {"topology": {"version": topology}} if topology else {}
    return msgspec.convert({"metadata": {"name": "c1", "annotations": annotations}, "spec": spec}, Cluster)


PREFLIGHT = [
    ("all is well", machine_set(), cluster(), plane("v1.30.0", "v1.30.0"), []),
    ("no control plane", machine_set(), cluster(), None, []),
    ("not up yet", machine_set(), cluster(), plane("v1.30.0", ""), ["ControlPlaneIsStable"]),
    ("being upgraded", machine_set(), cluster(), plane("v1.30.1", "v1.30.0"), ["ControlPlaneIsStable"]),
    (
        "about to be upgraded",
        machine_set(),
        cluster("v1.30.1"),
        plane("v1.30.0", "v1.30.0"),
        ["ControlPlaneIsStable"],
    ),
    (
        "newer than the control plane",
        machine_set("v1.31.0", "Other"),
        cluster(),
        plane("v1.30.0", "v1.30.0"),
        ["KubernetesVersionSkew"],
    ),
    ("three minors older", machine_set("v1.27.0", "Other"), cluster(), plane("v1.30.0", "v1.30.0"), []),
    (
        "four minors older",
        machine_set("v1.26.0", "Other"),
        cluster(),
        plane("v1.30.0", "v1.30.0"),
        ["KubernetesVersionSkew"],
    ),
    (
        "another minor with kubeadm",
        machine_set("v1.29.0"),
        cluster(),
        plane("v1.30.0", "v1.30.0"),
        ["KubeadmVersionSkew"],
    ),
    (
        "another patch in a managed topology",
        machine_set("v1.30.0"),
        cluster("v1.30.1"),
        plane("v1.30.1", "v1.30.1"),
        ["ControlPlaneVersionSkew"],
    ),
    (
        "a step of a chained upgrade",
        machine_set("v1.30.0"),
        cluster("v1.32.0", **{preflight.UPGRADE_STEP: "v1.30.0"}),
        plane("v1.30.0", "v1.30.0"),
        [],
    ),
]


@pytest.mark.parametrize(
    ("found", "where", "control", "expected"), [row[1:] for row in PREFLIGHT], ids=[row[0] for row in PREFLIGHT]
)
def test_preflight(found: MachineSet, where: Cluster, control: Any, expected: list[str]) -> None:
    failures = preflight.find_failures(found, where, control, set())
    assert [text.rpartition("(")[2].rstrip(")") for text in failures] == expected
    assert preflight.find_failures(found, where, control, set(expected)) == []
    assert preflight.find_failures(found, where, control, {"All"}) == []


def test_what_is_skipped_stands_on_the_set_or_on_the_config_template() -> None:
    key = "machineset.cluster.x-k8s.io/skip-preflight-checks"
    template = {"metadata": {"annotations": {key: "All"}}}
    assert preflight.find_skipped(machine_set(), template) == {"All"}
    own = machine_set(annotations={key: "KubeadmVersionSkew, ControlPlaneIsStable"})
    assert preflight.find_skipped(own, template) == {"KubeadmVersionSkew", "ControlPlaneIsStable"}


# -- remediation -----------------------------------------------------------------------------------------------------

SICK = [said("HealthCheckSucceeded", "False"), said("OwnerRemediated", "False", "WaitingForRemediation")]
REPLACED = [said("HealthCheckSucceeded", "False"), said("OwnerRemediated", "False", "MachineDeleting")]
REMEDIATE: dict[str, Any] = {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}


def names(actions: list[remediation.Action]) -> dict[str, str]:
    return {a.machine.metadata.name: getattr(a, "reason", type(a).__name__) for a in actions}


@pytest.mark.parametrize(
    ("machines", "options", "expected"),
    [
        ([machine("a", conditions=SICK), machine("b")], {}, {"a": "Replace"}),
        ([machine("a", conditions=SICK)], {"outdated": True}, {"a": "CannotBeRemediated"}),
        ([machine("a", conditions=SICK)], {"blocked": ["why"]}, {"a": "RemediationDeferred"}),
        ([machine("a", conditions=SICK[:1])], {}, {}),  # not for us
        (
            [machine("old", 5, conditions=SICK), machine("new", 1, conditions=SICK)],
            {"limit": 1},
            {"new": "Replace", "old": "RemediationDeferred"},
        ),
        (
            [machine("old", 5, conditions=SICK, **REMEDIATE), machine("new", 1, conditions=SICK)],
            {"limit": 1},
            {"old": "Replace", "new": "RemediationDeferred"},
        ),
        (
            [machine("gone", conditions=REPLACED, **GOING), machine("a", conditions=SICK)],
            {"limit": 1},
            {"a": "RemediationDeferred"},
        ),
        (
            [machine("a", conditions=[said("HealthCheckSucceeded", "True"), said("OwnerRemediated", "False")])],
            {},
            {"a": "Clear"},
        ),
    ],
)
def test_remediation(machines: list[Machine], options: dict[str, Any], expected: dict[str, str]) -> None:
    given = {"outdated": False, "limit": None, "blocked": [], "limit_text": "1", **options}
    assert names(remediation.plan(machines, **given)) == expected


@pytest.mark.parametrize(
    ("value", "total", "up", "expected"),
    [(2, 9, True, 2), ("25%", 10, True, 3), ("25%", 10, False, 2), ("0%", 5, True, 0)],
)
def test_percentages_and_numbers_are_resolved(value: Any, total: int, up: bool, expected: int) -> None:
    assert share_of(value, total, up=up) == expected


@pytest.mark.parametrize("value", ["x", "5", "-1%", True, None, 1.5, -1])
def test_an_invalid_percentage_is_refused(value: Any) -> None:
    assert share_trouble(value)


# -- Machines --------------------------------------------------------------------------------------------------------


def made(found: MachineSet) -> Machine:
    config = {"apiGroup": "g", "kind": "Config", "name": "m"}
    infra = {"apiGroup": "g", "kind": "Infra", "name": "m"}
    body = new_machine(found, "m", bootstrap=config, infrastructure=infra)
    body["metadata"]["uid"] = "u"
    return msgspec.convert(body, Machine)


def test_a_machine_just_made_has_all_that_is_carried_over() -> None:
    found = machine_set(spec={"minReadySeconds": 5, "deletion": {"nodeDrainTimeoutSeconds": 9}})
    assert holds(made(found), found)


@pytest.mark.parametrize(
    "change",
    [
        {"template": {"labels": {"a": "b", "x": "y"}}},
        {"template": {"labels": {"a": "b"}, "annotations": {"x": "y"}}},
        {"spec": {"minReadySeconds": 3}},
        {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 3}}},
        {"spec": {"readinessGates": [{"conditionType": "X"}]}},
        {"spec": {"taints": [{"key": "k", "effect": "NoSchedule", "propagation": "Always"}]}},
    ],
)
def test_changes_that_are_made_in_place(change: dict[str, Any]) -> None:
    before, after = machine_set(), machine_set(**change)
    living = made(before)
    assert carried(before) != carried(after)
    assert not holds(living, after)
    again = msgspec.convert(intent(after, living), Machine)
    assert holds(again, after)
    assert again.spec.infrastructure_ref == living.spec.infrastructure_ref


def test_changes_that_are_not_made_in_place() -> None:
    living = made(machine_set())
    body = intent(machine_set("v1.31.0"), living)
    assert carried(machine_set()) == carried(machine_set("v1.31.0"))
    assert body["spec"]["version"] == "v1.30.0"
    assert body["metadata"]["uid"] == "u"


def test_the_secret_that_a_config_made_stays_the_machines_own() -> None:
    living = made(machine_set())
    living.spec.bootstrap.data_secret_name = "made"
    assert "dataSecretName" not in intent(machine_set(), living)["spec"]["bootstrap"]


def test_a_machine_being_deleted_gets_timeouts_and_nothing_else() -> None:
    found = machine_set(spec={"deletion": {"nodeDrainTimeoutSeconds": 9}, "minReadySeconds": 4})
    living = made(machine_set())
    assert timeouts_patch(found, living)["spec"] == {"deletion": {"nodeDrainTimeoutSeconds": 9}}
    assert timeouts_patch(found, made(found)) == {}


# -- status ----------------------------------------------------------------------------------------------------------


def test_counts_and_conditions() -> None:
    good = [said(kind, "True") for kind in ("Ready", "Available", "UpToDate")]
    machines = [
        machine("a", conditions=good, spec={"version": "v1.30.0"}),
        machine("b", conditions=good, spec={"version": "v1.9.0"}, **GOING),
        machine("c", conditions=[said("Ready", "False", "NodeHealthy", "its Node is not well")]),
    ]
    found = machine_set()
    report(found, machines, blocked=[], trouble="", now=NOW)
    status = found.status
    assert (status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas) == (
        3,
        2,
        1,
        2,
    )
    assert [v.version for v in status.versions] == ["v1.9.0", "v1.30.0"]
    assert status.observed_generation == 2
    assert status.selector == "a=b"
    ready = condition.find(status.conditions, "MachinesReady")
    assert ready is not None
    assert "its Node is not well" in ready["message"]
    assert "c" in ready["message"]
    down = condition.find(status.conditions, "ScalingDown")
    assert down is not None
    assert down["message"] == "scaling down from 3 to 1 replicas"


def test_a_blocked_scale_up_says_why() -> None:
    found = machine_set()
    report(found, [], blocked=["no template"], trouble="", now=NOW)
    up = condition.find(found.status.conditions, "ScalingUp")
    assert up is not None
    assert up["message"] == "scaling up from 0 to 1 replicas is blocked: no template"


def test_a_deletion_that_takes_long_is_reported_with_its_cause_and_in_time() -> None:
    stuck = machine("a", conditions=[said("Deleting", "True", "DrainingNode", "Pod x can't be evicted")], **GOING)
    found = machine_set(deletionTimestamp=rfc3339(NOW), finalizers=["x"])
    timer = report(found, [stuck], blocked=[], trouble="", now=NOW + 60)
    assert timer is not None
    assert timer.after == replica.LATE_SECONDS - 60 + 1
    report(found, [stuck], blocked=[], trouble="", now=NOW + 60 + timer.after)
    deleting = condition.find(found.status.conditions, "Deleting")
    assert deleting is not None
    assert "a is being deleted for more than 15 minutes; a: Pod x can't be evicted" in deleting["message"]


# -- admission -------------------------------------------------------------------------------------------------------


def body(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"clusterName": "c1", "bootstrap": {"dataSecretName": "s"}}}
    return {"metadata": {"name": "ms"}, "spec": {"clusterName": "c1", "template": template, **spec}}


def test_a_set_selects_its_own_machines_where_nothing_else_is_said() -> None:
    found = body()
    default(found, None)
    assert found["spec"]["selector"]["matchLabels"] == {"cluster.x-k8s.io/set-name": "ms"}
    assert found["spec"]["template"]["metadata"]["labels"]["cluster.x-k8s.io/set-name"] == "ms"
    assert found["spec"]["replicas"] == 1
    assert validate(found, None) == []


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"spec": {"clusterName": "c1", "bootstrap": {}}}, "spec.template.spec.bootstrap"),
        ({"spec": {"clusterName": "c2", "bootstrap": {"dataSecretName": "s"}}}, "spec.clusterName"),
        (
            {"spec": {"clusterName": "c1", "bootstrap": {"dataSecretName": "s"}, "version": "v1.30"}},
            "spec.template.spec.version",
        ),
        (
            {
                "metadata": {"labels": {"bad key!": "x"}},
                "spec": {"clusterName": "c1", "bootstrap": {"dataSecretName": "s"}},
            },
            "spec.template.metadata.labels",
        ),
    ],
)
def test_templates_that_could_not_work_are_refused(template: dict[str, Any], field: str) -> None:
    found = body(template=template)
    default(found, None)
    assert [cause.field for cause in validate(found, None)] == [field]
