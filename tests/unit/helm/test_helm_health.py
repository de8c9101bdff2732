"""Readiness per kind, as a table."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.helm.health import health


def made(api: str, kind: str, spec: Any = None, status: Any = None, **metadata: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "n", **metadata}}
    if spec is not None:
        obj["spec"] = spec
    if status is not None:
        obj["status"] = status
    return obj


def deployment(spec: Any = None, status: Any = None, **metadata: Any) -> dict[str, Any]:
    return made("apps/v1", "Deployment", spec, status, **metadata)


def condition(name: str, status: str = "True", **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": name, "status": status, **more}]}


ROLLED_OUT = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
BALANCER = {"type": "LoadBalancer"}
DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
OWN = ("example.com/v1", "Buoy")


@pytest.mark.parametrize(
    "obj",
    [
        deployment({"replicas": 3}, ROLLED_OUT, generation=2),
        deployment({"replicas": 0}, {"observedGeneration": 1}, generation=1),
        deployment({"paused": True, "replicas": 3}),
        made("apps/v1", "StatefulSet", {"replicas": 2}, {"readyReplicas": 2, "updatedReplicas": 2}),
        made(
            "apps/v1",
            "StatefulSet",
            {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
            {"readyReplicas": 3, "updatedReplicas": 1},
        ),
        made("apps/v1", "StatefulSet", {"replicas": 1, "updateStrategy": {"type": "OnDelete"}}, {"readyReplicas": 1}),
        made("apps/v1", "DaemonSet", {}, {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}),
        made("apps/v1", "DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, {"desiredNumberScheduled": 1, "numberAvailable": 1}),
        made("apps/v1", "ReplicaSet", {"replicas": 1}, {"readyReplicas": 1}),
        made("batch/v1", "Job", {}, condition("Complete")),
        made("v1", "Pod", {}, {"phase": "Succeeded"}),
        made("v1", "Pod", {}, {"phase": "Running", **condition("Ready")}),
        made("v1", "PersistentVolumeClaim", {}, {"phase": "Bound"}),
        made("v1", "Service", {"type": "ClusterIP"}),
        made("v1", "Service", BALANCER, {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}),
        made("v1", "Service", {**BALANCER, "externalIPs": ["10.0.0.1"]}),
        made(*DEFINITION, {}, condition("Established")),
        made("apiregistration.k8s.io/v1", "APIService", {}, condition("Available")),
        made("v1", "Namespace", {}, {"phase": "Active"}),
        made("v1", "ConfigMap"),
        made("policy/v1", "PodDisruptionBudget", {}, condition("DisruptionAllowed", "False")),
        made(*OWN, {}, condition("Ready")),
        made(*OWN, {}, {}),
        made(*OWN, {}, condition("Deployed")),
    ],
    ids=lambda obj: obj["kind"],
)  # fmt: skip
def test_object_is_ready(obj: dict[str, Any]) -> None:
    assert health(obj).ready


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        (deployment({"replicas": 3}, {**ROLLED_OUT, "observedGeneration": 1}, generation=2), "GenerationNotObserved"),
        (deployment({"replicas": 3}, {**ROLLED_OUT, "updatedReplicas": 2}), "RollingOut"),
        (deployment({"replicas": 3}, {**ROLLED_OUT, "replicas": 4}), "RollingOut"),
        (deployment({"replicas": 3}, {**ROLLED_OUT, "availableReplicas": 2}), "RollingOut"),
        (deployment({}, {}), "RollingOut"),
        (made("apps/v1", "StatefulSet", {"replicas": 2}, {"readyReplicas": 1, "updatedReplicas": 2}), "RollingOut"),
        (made("apps/v1", "StatefulSet", {"replicas": 2}, {"readyReplicas": 2, "updatedReplicas": 1}), "RollingOut"),
        (made("apps/v1", "DaemonSet", {}, {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2}), "RollingOut"),
        (made("apps/v1", "ReplicaSet", {}, {}), "RollingOut"),
        (made("batch/v1", "Job", {}, {}), "JobRunning"),
        (made("batch/v1", "Job", {"suspend": True}, {}), "JobSuspended"),
        (made("v1", "Pod", {}, {"phase": "Pending"}), "PodNotReady"),
        (made("v1", "PersistentVolumeClaim", {}, {"phase": "Pending"}), "VolumeNotBound"),
        (made("v1", "Service", BALANCER, {"loadBalancer": {}}), "NoLoadBalancerAddress"),
        (made(*DEFINITION, {}, {}), "NotEstablished"),
        (made("apiregistration.k8s.io/v1", "APIService", {}, condition("Available", "False")), "APINotAvailable"),
        (made("v1", "Namespace", {}, {"phase": "Terminating"}), "Terminating"),
        (made("v1", "ConfigMap", deletionTimestamp="2026-01-01T00:00:00Z"), "Terminating"),
        (made(*OWN, {}, condition("Ready", "False", reason="NoAnchor")), "NoAnchor"),
        (made(*OWN, {}, condition("Ready", "Unknown")), "NotReady"),
        (made(*OWN, {}, condition("Reconciling", reason="Progressing")), "Progressing"),
        (made(*OWN, {}, {"observedGeneration": 1, **condition("Ready")}, generation=2), "GenerationNotObserved"),
    ],
)
def test_object_waits(obj: dict[str, Any], reason: str) -> None:
    judged = health(obj)
    assert (judged.ready, judged.failed, judged.reason) == (False, False, reason)
    assert obj["metadata"]["name"] in judged.message


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        (deployment({}, condition("Progressing", "False", reason="ProgressDeadlineExceeded")), "ProgressDeadlineExceeded"),
        (made("batch/v1", "Job", {}, condition("Failed", message="BackoffLimitExceeded")), "JobFailed"),
        (made("v1", "Pod", {}, {"phase": "Failed", "reason": "Evicted"}), "PodFailed"),
        (made("v1", "PersistentVolumeClaim", {}, {"phase": "Lost"}), "VolumeLost"),
        (made(*DEFINITION, {}, condition("NamesAccepted", "False")), "NamesNotAccepted"),
        (made(*OWN, {}, condition("Stalled", reason="BadChain")), "BadChain"),
    ],
)  # fmt: skip
def test_object_has_failed(obj: dict[str, Any], reason: str) -> None:
    judged = health(obj)
    assert (judged.ready, judged.failed, judged.reason) == (False, True, reason)


def test_a_kind_of_another_group_has_no_rule_of_a_built_in_one() -> None:
    assert health(made("serving.example.com/v1", "Service", BALANCER)).ready
