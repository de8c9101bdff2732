"""Each field that has another name or form in v1beta2, both ways."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from homeport.capi.conversion import converters, register
from homeport.capi.conversion.codec import parse_seconds, render_duration
from homeport.capi.conversion.loss import ANNOTATION
from homeport.capi.conversion.rule import ABSENT, find, put
from homeport.runtime.webhook.hook import Hooks

CORE = "cluster.x-k8s.io"
GROUPS = {"KubeadmConfig": f"bootstrap.{CORE}", "KubeadmControlPlane": f"controlplane.{CORE}"}
OLD_REF = {"apiVersion": "infra.example.com/v1beta1", "kind": "Thing", "name": "x", "namespace": "ns"}
NEW_REF = {"apiGroup": "infra.example.com", "kind": "Thing", "name": "x"}
TEMPLATE = {key: value for key, value in OLD_REF.items() if key != "namespace"}
OLD_CONDITIONS = [{"type": "Ready", "status": "True", "severity": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
NEW_CONDITIONS = [
    {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
]
OLD_TIMEOUTS = [{"type": "Ready", "status": "False", "timeout": "5m0s"}]
NEW_TIMEOUTS = [{"type": "Ready", "status": "False", "timeoutSeconds": 300}]
ARGUMENTS = {"v": "4", "profiling": "false"}
ARGUMENT_LIST = [{"name": "profiling", "value": "false"}, {"name": "v", "value": "4"}]


def group(kind: str) -> str:
    return GROUPS.get(kind.removesuffix("Template"), CORE)


def obj(kind: str, version: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"apiVersion": f"{group(kind)}/{version}", "kind": kind}
    made["metadata"] = {"name": "a", "namespace": "ns"}
    for path, value in fields:
        put(made, path, copy.deepcopy(value))
    return made


def convert(of: dict[str, Any], version: str, versions: Any = lambda group, kind: None) -> dict[str, Any]:
    return converters(versions)[group(of["kind"]), of["kind"]](copy.deepcopy(of), version)


SECONDS = ("1h30m0s", 5400)
MHC = "spec.topology.controlPlane.machineHealthCheck"
HC = "spec.topology.controlPlane.healthCheck"
BOOT = [
    ("KubeadmConfig", "spec"),
    ("KubeadmConfigTemplate", "spec.template.spec"),
    ("KubeadmControlPlane", "spec.kubeadmConfigSpec"),
]
PLANES = [("KubeadmControlPlane", "spec"), ("KubeadmControlPlaneTemplate", "spec.template.spec")]

RENAMED: list[tuple[str, str, Any, str, Any]] = [
    ("Cluster", "spec.infrastructureRef", OLD_REF, "spec.infrastructureRef", NEW_REF),
    ("Cluster", "spec.controlPlaneRef", OLD_REF, "spec.controlPlaneRef", NEW_REF),
    ("Cluster", "spec.topology.class", "c", "spec.topology.classRef.name", "c"),
    ("Cluster", "spec.topology.classNamespace", "n", "spec.topology.classRef.namespace", "n"),
    ("Cluster", f"{MHC}.enable", True, f"{HC}.enabled", True),
    ("Cluster", f"{MHC}.maxUnhealthy", "40%", f"{HC}.remediation.triggerIf.unhealthyLessThanOrEqualTo", "40%"),
    ("Cluster", f"{MHC}.unhealthyRange", "[1-2]", f"{HC}.remediation.triggerIf.unhealthyInRange", "[1-2]"),
    ("Cluster", f"{MHC}.nodeStartupTimeout", SECONDS[0], f"{HC}.checks.nodeStartupTimeoutSeconds", SECONDS[1]),
    ("Cluster", f"{MHC}.unhealthyConditions", OLD_TIMEOUTS, f"{HC}.checks.unhealthyNodeConditions", NEW_TIMEOUTS),
    ("Cluster", f"{MHC}.remediationTemplate", OLD_REF, f"{HC}.remediation.templateRef", TEMPLATE),
    ("Cluster", "status.infrastructureReady", True, "status.initialization.infrastructureProvisioned", True),
    ("Cluster", "status.controlPlaneReady", True, "status.initialization.controlPlaneInitialized", True),
    (
        "Cluster",
        "status.failureDomains",
        {"b": {"controlPlane": True}, "a": {"attributes": {"x": "y"}}},
        "status.failureDomains",
        [{"name": "a", "attributes": {"x": "y"}}, {"name": "b", "controlPlane": True}],
    ),
    ("Cluster", "status.conditions", OLD_CONDITIONS, "status.deprecated.v1beta1.conditions", OLD_CONDITIONS),
    ("Cluster", "status.v1beta2.conditions", NEW_CONDITIONS, "status.conditions", NEW_CONDITIONS),
    ("Cluster", "status.v1beta2.workers", {"replicas": 3}, "status.workers", {"replicas": 3}),
    ("Cluster", "status.failureReason", "r", "status.deprecated.v1beta1.failureReason", "r"),
    ("Machine", "spec.infrastructureRef", OLD_REF, "spec.infrastructureRef", NEW_REF),
    ("Machine", "spec.bootstrap.configRef", OLD_REF, "spec.bootstrap.configRef", NEW_REF),
    ("Machine", "spec.nodeDrainTimeout", SECONDS[0], "spec.deletion.nodeDrainTimeoutSeconds", SECONDS[1]),
    ("Machine", "spec.nodeVolumeDetachTimeout", "0s", "spec.deletion.nodeVolumeDetachTimeoutSeconds", 0),
    ("Machine", "spec.nodeDeletionTimeout", "10s", "spec.deletion.nodeDeletionTimeoutSeconds", 10),
    ("Machine", "status.bootstrapReady", True, "status.initialization.bootstrapDataSecretCreated", True),
    ("Machine", "status.nodeRef", {"apiVersion": "v1", "kind": "Node", "name": "n"}, "status.nodeRef", {"name": "n"}),
    ("MachineSet", "spec.deletePolicy", "Oldest", "spec.deletion.order", "Oldest"),
    ("MachineSet", "spec.machineNamingStrategy.template", "t", "spec.machineNaming.template", "t"),
    ("MachineSet", "spec.minReadySeconds", 9, "spec.template.spec.minReadySeconds", 9),
    ("MachineSet", "status.readyReplicas", 2, "status.deprecated.v1beta1.readyReplicas", 2),
    ("MachineSet", "status.v1beta2.readyReplicas", 2, "status.readyReplicas", 2),
    ("MachineSet", "status.fullyLabeledReplicas", 2, "status.deprecated.v1beta1.fullyLabeledReplicas", 2),
    ("MachineDeployment", "spec.strategy.type", "OnDelete", "spec.rollout.strategy.type", "OnDelete"),
    ("MachineDeployment", "spec.strategy.rollingUpdate.maxSurge", 1, "spec.rollout.strategy.rollingUpdate.maxSurge", 1),
    ("MachineDeployment", "spec.strategy.rollingUpdate.deletePolicy", "Newest", "spec.deletion.order", "Newest"),
    ("MachineDeployment", "spec.strategy.remediation.maxInFlight", 2, "spec.remediation.maxInFlight", 2),
    ("MachineDeployment", "spec.rolloutAfter", "2026-01-01T00:00:00Z", "spec.rollout.after", "2026-01-01T00:00:00Z"),
    ("MachineDeployment", "status.unavailableReplicas", 1, "status.deprecated.v1beta1.unavailableReplicas", 1),
    (
        "MachineDeployment",
        "spec.template.spec.nodeDrainTimeout",
        "5s",
        "spec.template.spec.deletion.nodeDrainTimeoutSeconds",
        5,
    ),
    ("MachineHealthCheck", "spec.maxUnhealthy", 3, "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo", 3),
    (
        "MachineHealthCheck",
        "spec.unhealthyConditions",
        OLD_TIMEOUTS,
        "spec.checks.unhealthyNodeConditions",
        NEW_TIMEOUTS,
    ),
    ("MachineHealthCheck", "spec.nodeStartupTimeout", "10m0s", "spec.checks.nodeStartupTimeoutSeconds", 600),
    ("MachineHealthCheck", "spec.remediationTemplate", OLD_REF, "spec.remediation.templateRef", TEMPLATE),
    ("MachinePool", "status.infrastructureReady", True, "status.initialization.infrastructureProvisioned", True),
    ("MachinePool", "spec.minReadySeconds", 9, "spec.template.spec.minReadySeconds", 9),
    ("KubeadmConfig", "status.ready", True, "status.initialization.dataSecretCreated", True),
    ("KubeadmControlPlane", "status.initialized", True, "status.initialization.controlPlaneInitialized", True),
    ("KubeadmControlPlane", "status.updatedReplicas", 1, "status.deprecated.v1beta1.updatedReplicas", 1),
    ("KubeadmControlPlane", "status.v1beta2.upToDateReplicas", 1, "status.upToDateReplicas", 1),
    (
        "KubeadmControlPlane",
        "status.lastRemediation.timestamp",
        "2026-01-01T00:00:00Z",
        "status.lastRemediation.time",
        "2026-01-01T00:00:00Z",
    ),
    (
        "KubeadmControlPlane",
        "spec.machineTemplate.infrastructureRef",
        OLD_REF,
        "spec.machineTemplate.spec.infrastructureRef",
        NEW_REF,
    ),
    (
        "KubeadmControlPlane",
        "spec.machineTemplate.readinessGates",
        [{"conditionType": "x"}],
        "spec.machineTemplate.spec.readinessGates",
        [{"conditionType": "x"}],
    ),
    ("ClusterClass", "spec.infrastructure.ref", OLD_REF, "spec.infrastructure.templateRef", TEMPLATE),
    ("ClusterClass", "spec.infrastructureNamingStrategy.template", "t", "spec.infrastructure.naming.template", "t"),
    ("ClusterClass", "spec.controlPlane.ref", OLD_REF, "spec.controlPlane.templateRef", TEMPLATE),
    (
        "ClusterClass",
        "spec.controlPlane.machineInfrastructure.ref",
        OLD_REF,
        "spec.controlPlane.machineInfrastructure.templateRef",
        TEMPLATE,
    ),
    ("ClusterClass", "spec.controlPlane.namingStrategy.template", "t", "spec.controlPlane.naming.template", "t"),
    (
        "ClusterClass",
        "spec.patches",
        [{"name": "p", "external": {"generateExtension": "g", "validateExtension": "v"}}],
        "spec.patches",
        [{"name": "p", "external": {"generatePatchesExtension": "g", "validateTopologyExtension": "v"}}],
    ),
    (
        "ClusterClass",
        "spec.workers.machineDeployments",
        [
            {
                "class": "w",
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "bootstrap": {"ref": OLD_REF},
                    "infrastructure": {"ref": OLD_REF},
                },
                "strategy": {"remediation": {"maxInFlight": 1}},
            }
        ],
        "spec.workers.machineDeployments",
        [
            {
                "class": "w",
                "metadata": {"labels": {"a": "b"}},
                "bootstrap": {"templateRef": TEMPLATE},
                "infrastructure": {"templateRef": TEMPLATE},
                "healthCheck": {"remediation": {"maxInFlight": 1}},
            }
        ],
    ),
    *[
        (kind, f"{at}.{old}", value, f"{at}.{new}", changed)
        for kind, at in BOOT
        for old, value, new, changed in (
            (
                "clusterConfiguration.apiServer.extraArgs",
                ARGUMENTS,
                "clusterConfiguration.apiServer.extraArgs",
                ARGUMENT_LIST,
            ),
            (
                "clusterConfiguration.etcd.local.extraArgs",
                ARGUMENTS,
                "clusterConfiguration.etcd.local.extraArgs",
                ARGUMENT_LIST,
            ),
            (
                "joinConfiguration.nodeRegistration.kubeletExtraArgs",
                ARGUMENTS,
                "joinConfiguration.nodeRegistration.kubeletExtraArgs",
                ARGUMENT_LIST,
            ),
            ("joinConfiguration.discovery.timeout", "5m0s", "joinConfiguration.timeouts.tlsBootstrapSeconds", 300),
            (
                "initConfiguration.bootstrapTokens",
                [{"token": "a.b", "ttl": "24h0m0s"}],
                "initConfiguration.bootstrapTokens",
                [{"token": "a.b", "ttlSeconds": 86400}],
            ),
        )
    ],
    *[
        (kind, f"{at}.{old}", value, f"{at}.{new}", changed)
        for kind, at in PLANES
        for old, value, new, changed in (
            ("rolloutAfter", "2026-01-01T00:00:00Z", "rollout.after", "2026-01-01T00:00:00Z"),
            ("rolloutBefore.certificatesExpiryDays", 30, "rollout.before.certificatesExpiryDays", 30),
            ("rolloutStrategy.type", "RollingUpdate", "rollout.strategy.type", "RollingUpdate"),
            ("remediationStrategy.retryPeriod", "1m0s", "remediation.retryPeriodSeconds", 60),
            ("remediationStrategy.minHealthyPeriod", "1h0m0s", "remediation.minHealthyPeriodSeconds", 3600),
            ("machineNamingStrategy.template", "t", "machineNaming.template", "t"),
            ("machineTemplate.nodeDrainTimeout", "1m0s", "machineTemplate.spec.deletion.nodeDrainTimeoutSeconds", 60),
        )
    ],
]


@pytest.mark.parametrize(
    ("kind", "old", "value", "new", "changed"), RENAMED, ids=[f"{row[0]}.{row[1]}" for row in RENAMED]
)
def test_a_field_is_found_at_its_place_in_either_version(
    kind: str, old: str, value: Any, new: str, changed: Any
) -> None:
    newest = convert(obj(kind, "v1beta1", (old, value)), "v1beta2")
    assert find(newest, new) == changed
    if "eplicas" not in old:  # one counter alone would be joined by those that follow from it
        assert ANNOTATION not in newest["metadata"].get("annotations", {})
    older = convert(obj(kind, "v1beta2", (new, changed)), "v1beta1")
    assert find(older, old) == value
    if old != new:
        assert find(newest, old) in (ABSENT, changed)


@pytest.mark.parametrize("kind", ["MachineSet", "MachineDeployment", "KubeadmControlPlane"])
def test_old_clients_find_the_counters_that_they_know(kind: str) -> None:
    new = obj(kind, "v1beta2", ("status.replicas", 3))
    new["status"] |= {"readyReplicas": 2, "availableReplicas": 2, "upToDateReplicas": 1}
    old = convert(new, "v1beta1")
    assert find(old, "status.readyReplicas") == 2
    if kind != "MachineSet":
        assert find(old, "status.updatedReplicas") == 1
        assert find(old, "status.unavailableReplicas") == 1
    if kind == "KubeadmControlPlane":
        assert find(old, "status.ready") is True
    assert convert(old, "v1beta2")["status"] == new["status"]


def test_one_timeout_of_the_control_plane_becomes_that_of_init_and_join() -> None:
    old = obj("KubeadmConfig", "v1beta1", ("spec.clusterConfiguration.apiServer.timeoutForControlPlane", "4m0s"))
    new = convert(old, "v1beta2")
    for part in ("init", "join"):
        assert find(new, f"spec.{part}Configuration.timeouts.controlPlaneComponentHealthCheckSeconds") == 240
    assert convert(new, "v1beta1") == old


def test_what_v1beta2_has_no_field_for_is_kept_in_the_annotation() -> None:
    old = obj("MachineDeployment", "v1beta1", ("spec.clusterName", "c"), ("spec.progressDeadlineSeconds", 600))
    new = convert(old, "v1beta2")
    assert "progressDeadlineSeconds" not in new["spec"]
    assert new["metadata"]["annotations"][ANNOTATION]
    assert convert(new, "v1beta1") == old


def test_what_v1beta1_has_no_field_for_is_kept_in_the_annotation() -> None:
    new = obj(
        "Machine", "v1beta2", ("spec.minReadySeconds", 0), ("status.phase", "Updating"), ("status.failureDomain", "a")
    )
    old = convert(new, "v1beta1")
    assert old["status"] == {"phase": "Running"}
    assert convert(old, "v1beta2") == new


def test_a_value_changed_meanwhile_is_not_overwritten_by_what_was_kept() -> None:
    old = convert(obj("Machine", "v1beta2", ("status.phase", "Updating"), ("spec.minReadySeconds", 5)), "v1beta1")
    old["status"]["phase"] = "Deleting"
    new = convert(old, "v1beta2")
    assert new["status"]["phase"] == "Deleting"
    assert new["spec"]["minReadySeconds"] == 5


def test_items_of_lists_are_found_again_by_name() -> None:
    variables = [{"name": "a", "value": 1, "definitionFrom": "x"}, {"name": "b", "value": 2}]
    new = convert(
        obj("Cluster", "v1beta1", ("spec.topology.class", "c"), ("spec.topology.variables", variables)), "v1beta2"
    )
    new["spec"]["topology"]["variables"][1]["value"] = 3
    new["spec"]["topology"]["variables"].insert(0, {"name": "c", "value": 9})
    old = convert(new, "v1beta1")
    assert old["spec"]["topology"]["variables"] == [
        {"name": "c", "value": 9},
        {"name": "a", "value": 1, "definitionFrom": "x"},
        {"name": "b", "value": 3},
    ]


def test_the_data_of_other_implementations_is_understood() -> None:
    new = obj("Machine", "v1beta2", ("spec.clusterName", "c"), ("spec.minReadySeconds", 5))
    old = obj("Machine", "v1beta1", ("spec.clusterName", "c"))
    old["metadata"]["annotations"] = {ANNOTATION: orjson.dumps({"spec": new["spec"], "status": {}}).decode()}
    assert convert(old, "v1beta2")["spec"] == new["spec"]


def test_a_reference_says_the_version_that_is_served() -> None:
    new = obj("Cluster", "v1beta2", ("spec.infrastructureRef", NEW_REF))
    old = convert(
        new, "v1beta1", lambda group, kind: "v1alpha9" if (group, kind) == ("infra.example.com", "Thing") else None
    )
    assert old["spec"]["infrastructureRef"]["apiVersion"] == "infra.example.com/v1alpha9"


def test_the_version_of_a_reference_is_kept_until_the_reference_changes() -> None:
    old = obj("Cluster", "v1beta1", ("spec.infrastructureRef", {**OLD_REF, "apiVersion": "infra.example.com/v1alpha1"}))
    new = convert(old, "v1beta2")
    assert convert(new, "v1beta1") == old
    new["spec"]["infrastructureRef"]["kind"] = "Other"
    assert convert(new, "v1beta1")["spec"]["infrastructureRef"]["apiVersion"] == "infra.example.com/v1beta1"


def test_empty_values_of_older_clients_are_left_out() -> None:
    old = obj("Cluster", "v1beta1", ("spec.controlPlaneEndpoint", {"host": "", "port": 0}), ("spec.paused", False))
    new = convert(old, "v1beta2")
    assert new["spec"] == {"paused": False}
    assert "annotations" not in new["metadata"]


def test_an_empty_list_of_taints_means_no_taints_in_both() -> None:
    path = "spec.initConfiguration.nodeRegistration.taints"
    assert find(convert(obj("KubeadmConfig", "v1beta1", (path, [])), "v1beta2"), path) == []
    assert find(convert(obj("KubeadmConfig", "v1beta2", (path, [])), "v1beta1"), path) == []


def test_an_empty_control_plane_part_means_joining_the_control_plane() -> None:
    path = "spec.joinConfiguration.controlPlane"
    assert find(convert(obj("KubeadmConfig", "v1beta1", (path, {})), "v1beta2"), path) == {}


def test_a_control_plane_is_ready_to_older_clients_when_a_replica_is() -> None:
    new = obj("KubeadmControlPlane", "v1beta2", ("status.deprecated.v1beta1.readyReplicas", 1))
    assert convert(new, "v1beta1")["status"]["ready"] is True


PLANE_TIMEOUT = "spec.kubeadmConfigSpec.clusterConfiguration.apiServer.timeoutForControlPlane"
UNREADABLE = [
    ("Machine", "spec.nodeDrainTimeout", "soon", "spec.nodeDrainTimeout"),
    ("KubeadmControlPlane", "spec.remediationStrategy.retryPeriod", "5", "spec.remediationStrategy.retryPeriod"),
    ("KubeadmControlPlane", PLANE_TIMEOUT, "1d", PLANE_TIMEOUT),
    ("MachineHealthCheck", "spec.unhealthyConditions", [{"type": "Ready", "status": "False", "timeout": "5 m"}],
     "spec.unhealthyConditions[0].timeout"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "path", "value", "field"), UNREADABLE)
async def test_what_is_no_duration_comes_back_as_it_was_and_is_refused_by_name(
    kind: str, path: str, value: Any, field: str
) -> None:
    old = obj(kind, "v1beta1", (path, value))
    new = convert(old, "v1beta2")
    assert find(convert(new, "v1beta1"), path) == value
    hooks = Hooks()
    register(hooks)
    (known,) = [each for each in hooks if each.resource.kind == kind]
    causes = [each for each in await known.find_converted_causes(new, None) if "duration" in each.message]
    assert [(each.reason, each.field) for each in causes] == [("FieldValueInvalid", field)]
    assert causes[0].message.endswith("is not a valid duration: expected for example 90s, 5m or 1h30m")


DAMAGED = [
    "{",
    "7",
    "[7]",
    "[{}]",
    '[{"at": []}]',
    '[{"at": [1], "is": 2}]',
    '[{"at": ["metadata", "labels"], "is": {}}]',
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_annotation_is_named(text: str) -> None:
    old = obj("Machine", "v1beta1")
    old["metadata"]["annotations"] = {ANNOTATION: text}
    with pytest.raises(ValueError, match=ANNOTATION):
        convert(old, "v1beta2")


def test_an_unknown_version_is_named() -> None:
    with pytest.raises(ValueError, match="version v9 is unknown"):
        convert(obj("Machine", "v1beta2"), "v9")


DURATIONS = [
    ("0", 0), ("0s", 0), ("1s", 1), ("1.9s", 2), ("999ms", 1), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1.5h", 5400),
    ("100h0m1s", 360001), ("-30s", -30), ("1000000h", 2147483647), (".5m", 30), ("1000000us", 1), ("1000000µs", 1), ("+2s", 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_durations_are_read_as_go_reads_them_in_whole_seconds_rounded_up(text: str, seconds: int) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "s", "1d", "1 s", "1s ", "--1s", None, 5])
def test_what_go_reads_as_no_duration_is_none(text: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid duration"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59, "59s"), (60, "1m0s"), (3600, "1h0m0s"), (3661, "1h1m1s"), (-61, "-1m1s")]
)
def test_durations_are_written_as_go_writes_them(seconds: int, text: str) -> None:
    assert render_duration(seconds) == text


def conditions(*found: tuple[str, str]) -> list[dict[str, str]]:
    return [
        {
            "type": kind,
            "status": status,
            "reason": f"{kind}Reason",
            "message": f"about {kind}",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind, status in found
    ]


def test_older_clients_find_the_conditions_that_they_know() -> None:
    obj = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "one"},
        "status": {"conditions": conditions(("Available", "False"), ("InfrastructureReady", "True"))},
    }
    old = converters()["cluster.x-k8s.io", "Cluster"](copy.deepcopy(obj), "v1beta1")
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    said = {"reason": "AvailableReason", "message": "about Available", "severity": "Info"}
    assert old["status"]["conditions"] == [
        {"type": "Ready", "status": "False", **said, **since},
        {"type": "InfrastructureReady", "status": "True", **since},
    ]
    assert "annotations" not in old["metadata"]
    assert converters()["cluster.x-k8s.io", "Cluster"](old, "v1beta2") == obj


def test_conditions_that_somebody_wrote_for_older_clients_are_left_alone() -> None:
    theirs = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    obj = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": "one"},
        "status": {"conditions": conditions(("Ready", "False")), "deprecated": {"v1beta1": {"conditions": theirs}}},
    }
    old = converters()["cluster.x-k8s.io", "Machine"](copy.deepcopy(obj), "v1beta1")
    assert old["status"]["conditions"] == theirs
    assert converters()["cluster.x-k8s.io", "Machine"](old, "v1beta2") == obj
