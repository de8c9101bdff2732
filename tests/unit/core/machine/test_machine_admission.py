"""What Machines and MachineDrainRules may say."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.drainrule import admission as rule
from homeport.core.machine import admission


def machine(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    filled = {"clusterName": "c", "bootstrap": {"dataSecretName": "s"}, **spec}
    return {"metadata": {"name": "m", "labels": labels or {}}, "spec": filled}


def test_defaults_fill_in_once() -> None:
    made = machine(version="1.30.0")
    admission.default(made, None)
    assert made["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "c"}
    assert made["metadata"]["finalizers"] == ["machine.cluster.x-k8s.io"]
    assert made["spec"]["version"] == "v1.30.0"
    assert made["spec"]["deletion"] == {"nodeDeletionTimeoutSeconds": 10}
    before = {**made, "spec": {**made["spec"]}}
    admission.default(made, None)
    assert made == before


def test_a_finalizer_that_is_gone_is_not_put_back_by_an_update() -> None:
    made = machine()
    made["metadata"]["finalizers"] = []
    admission.default(made, machine())
    assert made["metadata"]["finalizers"] == []


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (machine(), ""),
        (machine(bootstrap={}), "spec.bootstrap"),
        (machine({"cluster.x-k8s.io/pool-name": "p"}, bootstrap={}), ""),
        (machine(version="v1.30"), "spec.version"),
        (machine(version="1.30.0"), "spec.version"),
        (machine(version="v1.30.0+build.1"), ""),
        (machine(taints=[{"key": "node.kubernetes.io/not-ready"}]), "spec.taints[0].key"),
        (machine(taints=[{"key": "node.kubernetes.io/out-of-service"}]), ""),
        (machine(taints=[{"key": "node.cloudprovider.kubernetes.io/x"}]), "spec.taints[0].key"),
        (machine(taints=[{"key": "node-role.kubernetes.io/master"}]), "spec.taints[0].key"),
        (machine(taints=[{"key": "node.cluster.x-k8s.io/uninitialized"}]), "spec.taints[0].key"),
        (machine(taints=[{"key": "node.cluster.x-k8s.io/outdated-revision"}]), "spec.taints[0].key"),
        (machine(taints=[{"key": "node-role.kubernetes.io/control-plane"}]), "spec.taints[0].key"),
        (
            machine({"cluster.x-k8s.io/control-plane": ""}, taints=[{"key": "node-role.kubernetes.io/control-plane"}]),
            "",
        ),
        (machine(taints=[{"key": "good"}, {"key": "a b"}]), "spec.taints[1].key"),
    ],
)
def test_machines_that_are_refused(given: dict[str, Any], field: str) -> None:
    assert [cause.field for cause in admission.validate(given, None)] == ([field] if field else [])


def test_a_machine_stays_in_its_cluster() -> None:
    assert [c.field for c in admission.validate(machine(clusterName="d"), machine())] == ["spec.clusterName"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"drain": {"behavior": "Drain", "order": 5}}, ""),
        ({"drain": {"behavior": "Skip"}}, ""),
        ({"drain": {"behavior": "Skip", "order": 5}}, "spec.drain.order"),
        ({"drain": {"behavior": "WaitCompleted", "order": 0}}, "spec.drain.order"),
        (
            {
                "drain": {"behavior": "Skip"},
                "pods": [{}, {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}],
            },
            "spec.pods[1].namespaceSelector",
        ),
    ],
)
def test_drain_rules_that_are_refused(spec: dict[str, Any], field: str) -> None:
    assert [cause.field for cause in rule.validate({"spec": spec}, None)] == ([field] if field else [])
