"""What is written of a typed object, and what a part of one reads as."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.api.addons import v1beta2 as addons
from homeport.api.bootstrap import v1beta2 as bootstrap
from homeport.api.cluster import v1beta2 as cluster
from homeport.api.controlplane import v1beta2 as controlplane
from homeport.api.ipam import v1beta2 as ipam
from homeport.api.meta import ObjectMeta, Unstructured, wire, wire_differences

REF = cluster.ContractRef(api_group="g", kind="K", name="n")

WRITTEN: list[tuple[Any, Any]] = [
    (cluster.ClusterStatus(), {}),
    (cluster.ClusterSpec(paused=False), {"paused": False}),
    (cluster.ClusterSpec(infrastructure_ref=REF), {"infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"}}),
    (cluster.MachineDeletionSpec(node_drain_timeout_seconds=0), {"nodeDrainTimeoutSeconds": 0}),
    # A required part is written even if it is empty, a required number even if it is 0 ...
    (cluster.MachineSpec(cluster_name="c"), {"clusterName": "c", "bootstrap": {}}),
    (ipam.IPAddressSpec(address="10.0.0.1", prefix=0), {"address": "10.0.0.1", "prefix": 0}),
    # ... but not if the part around it says nothing.
    (cluster.MachineSet().spec.template, {"spec": {"bootstrap": {}}}),
    (bootstrap.JoinConfiguration(control_plane=bootstrap.JoinControlPlane()), {"controlPlane": {}}),
    (bootstrap.APIServer(cert_sans=["a"]), {"certSANs": ["a"]}),
    (
        bootstrap.Timeouts(etcd_api_call_seconds=1, tls_bootstrap_seconds=2),
        {"etcdAPICallSeconds": 1, "tlsBootstrapSeconds": 2},
    ),
    (cluster.ClusterVariable(name="v", value={}), {"name": "v", "value": {}}),
    (addons.ClusterResourceSetSpec(cluster_selector={"matchLabels": {}}), {"clusterSelector": {"matchLabels": {}}}),
    ({"a": [REF]}, {"a": [{"apiGroup": "g", "kind": "K", "name": "n"}]}),
    (Unstructured({"spec": {}}), {"spec": {}}),
]


@pytest.mark.parametrize(("obj", "json"), WRITTEN, ids=[str(n) for n in range(len(WRITTEN))])
def test_unset_fields_are_not_written(obj: Any, json: Any) -> None:
    assert wire(obj) == json


def test_what_is_written_shares_nothing_with_the_object() -> None:
    machine = cluster.Machine(metadata=ObjectMeta(labels={"a": "b"}))
    wire(machine)["metadata"]["labels"]["a"] = "c"
    assert machine.metadata.labels == {"a": "b"}


def test_of_two_states_only_what_differs_is_written() -> None:
    ready = {"type": "Ready", "status": "True"}
    before = cluster.MachineStatus(phase="Pending", observed_generation=1, conditions=[ready])
    after = cluster.MachineStatus(phase="Running", observed_generation=1, conditions=[ready, {**ready, "type": "Up"}])
    after.initialization.infrastructure_provisioned = True
    assert wire_differences(before, after) == (
        {"phase": "Pending", "conditions": [ready]},
        {
            "phase": "Running",
            "conditions": [ready, {"type": "Up", "status": "True"}],
            "initialization": {"infrastructureProvisioned": True},
        },
    )
    assert wire_differences(after, after) == ({}, {})


READ: list[tuple[type[Any], str, Any]] = [
    (cluster.Machine, "spec.deletion.node_drain_timeout_seconds", None),
    (cluster.Machine, "spec.infrastructure_ref", None),
    (cluster.Machine, "status.initialization.infrastructure_provisioned", None),
    (cluster.Machine, "status.conditions", []),
    (cluster.Machine, "status.node_info.os_image", ""),
    (cluster.Cluster, "spec.topology.workers.machine_deployments", []),
    (cluster.Cluster, "status.control_plane.desired_replicas", None),
    (cluster.MachineDeployment, "spec.rollout.strategy.rolling_update.max_surge", None),
    (cluster.MachineHealthCheck, "spec.remediation.trigger_if.unhealthy_in_range", ""),
    (controlplane.KubeadmControlPlane, "spec.kubeadm_config_spec.init_configuration.node_registration.taints", None),
    (controlplane.KubeadmControlPlane, "spec.machine_template.spec.deletion.node_deletion_timeout_seconds", None),
    (bootstrap.KubeadmConfig, "spec.join_configuration.control_plane", None),
]


@pytest.mark.parametrize(("cls", "path", "value"), READ, ids=[f"{cls.__name__}.{path}" for cls, path, _ in READ])
def test_parts_are_there_though_the_object_leaves_them_out(cls: type[Any], path: str, value: Any) -> None:
    found: Any = msgspec.json.decode(b'{"metadata": {"name": "a"}}', type=cls)
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value
