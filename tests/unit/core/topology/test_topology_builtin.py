"""The variable `builtin`."""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.cluster.v1beta2 import Cluster
from homeport.core.topology.variable.builtin import (
    cluster_builtin,
    control_plane_builtin,
    machine_deployment_builtin,
)

COPY = "kubectl.kubernetes.io/last-applied-configuration"


def cluster(**parts: Any) -> Cluster:
    spec = {
        "clusterNetwork": {"serviceDomain": "s.local", "pods": {"cidrBlocks": ["10.1.0.0/16"]}},
        "topology": {
            "classRef": {"name": "cc", **parts.pop("class_ref", {})},
            "version": "v1.33.1",
            "controlPlane": parts,
            "workers": {
                "machineDeployments": [{"class": "w", "name": "md-0"}],
                "machinePools": [{"class": "p", "name": "mp-0"}],
            },
        },
    }
    meta = {"name": "c1", "namespace": "ns", "uid": "u", "labels": {"a": "b"}, "annotations": {"k": "v", COPY: "{}"}}
    return msgspec.convert({"metadata": meta, "spec": spec}, Cluster)


FACTS = {
    "name": "c1",
    "namespace": "ns",
    "uid": "u",
    "metadata": {"labels": {"a": "b"}, "annotations": {"k": "v"}},
    "network": {"serviceDomain": "s.local", "pods": ["10.1.0.0/16"]},
    "topology": {
        "version": "v1.33.1",
        "class": "cc",
        "classNamespace": "ns",
        "classRef": {"name": "cc", "namespace": "ns"},
    },
}


def named(name: str, **parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **parts}


def test_a_cluster_tells_name_metadata_network_and_class_but_no_copies_of_itself() -> None:
    assert cluster_builtin(cluster()) == {"cluster": FACTS}


def test_a_class_may_be_in_another_namespace() -> None:
    found = cluster_builtin(cluster(class_ref={"namespace": "classes"}))["cluster"]["topology"]
    assert (found["classNamespace"], found["classRef"]["namespace"]) == ("classes", "classes")


def test_a_control_plane_tells_its_replicas_only_when_the_cluster_asks_for_some() -> None:
    plane = named("c1-x", spec={"version": "v1.32.0", "replicas": 3})
    found = control_plane_builtin(cluster(replicas=3), plane, machine_template=named("c1-t"))
    assert found == {
        "cluster": FACTS,
        "controlPlane": {
            "name": "c1-x",
            "version": "v1.32.0",
            "replicas": 3,
            "machineTemplate": {"infrastructureRef": {"name": "c1-t"}},
        },
    }
    without = control_plane_builtin(cluster(), plane)["controlPlane"]
    assert without == {"name": "c1-x", "version": "v1.32.0"}


def test_workers_tell_class_name_version_and_templates() -> None:
    one = cluster()
    assert one.spec.topology is not None
    workers = one.spec.topology.workers
    made = named("c1-md-0-x", spec={"replicas": 0, "template": {"spec": {"version": "v1.32.0"}}})
    made["metadata"]["labels"] = {"l": "m"}
    facts = {
        "name": "c1-md-0-x",
        "version": "v1.32.0",
        "replicas": 0,
        "metadata": {"labels": {"l": "m"}},
        "bootstrap": {"configRef": {"name": "b"}},
        "infrastructureRef": {"name": "i"},
    }
    refs = {"bootstrap": named("b"), "infrastructure": named("i")}
    assert machine_deployment_builtin(one, workers.machine_deployments[0], made, **refs) == {
        "cluster": FACTS,
        "machineDeployment": {**facts, "class": "w", "topologyName": "md-0"},
    }
