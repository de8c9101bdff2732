"""The manifest of a page, as the patch that a rehearsal applies."""

from __future__ import annotations

import pytest

from homeport.api.meta import Unstructured
from homeport.dashboard.errand.manifest import complete, read_objects
from homeport.machinery.yaml import YamlError

TEXT = """
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: workers, namespace: default, uid: u, resourceVersion: "7", labels: {a: b}}
spec: {replicas: 3, template: {spec: {version: v1.30.0}}}
status: {replicas: 2}
"""


def test_a_patch_leaves_out_what_the_server_sets() -> None:
    made = complete(read_objects({"manifest": TEXT})[0], [])
    assert made["metadata"] == {"name": "workers", "namespace": "default", "labels": {"a": "b"}}
    assert "status" not in made


def test_a_patch_removes_what_the_text_no_longer_has() -> None:
    before = Unstructured(
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "MachineDeployment",
            "metadata": {"name": "workers", "namespace": "default"},
            "spec": {"paused": True, "template": {"spec": {"version": "v1.29.0", "minReadySeconds": 5}}},
            "status": {"replicas": 2},
        }
    )
    made = complete(read_objects({"manifest": TEXT})[0], [before])
    assert made["spec"] == {
        "replicas": 3,
        "paused": None,
        "template": {"spec": {"version": "v1.30.0", "minReadySeconds": None}},
    }


@pytest.mark.parametrize("text", ["", "a: b", "- 1", "kind: A\nmetadata: 3", f"{TEXT}---\nkind: A"])
def test_every_object_of_a_manifest_needs_a_name(text: str) -> None:
    with pytest.raises(YamlError):
        read_objects({"manifest": text})
    with pytest.raises(YamlError):
        read_objects({"objects": [{"kind": "A"}]})
