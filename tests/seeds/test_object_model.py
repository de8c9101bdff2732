"""The YAML blocks of the document about the object model of Cluster API on Nutanix, applied as they are written."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from seeds.object_block import (
    O01_CLUSTER,
    O02_MACHINE,
    O03_NUTANIX_CLUSTER,
    O04_NUTANIX_MACHINE,
    O05_NUTANIX_MACHINE_TEMPLATE,
    O06_COMPLETE,
)
from seeds.shell import Shell


def read(shell: Shell, what: str) -> Any:
    return json.loads(shell.ok(f"kubectl get {what} -o json"))


def test_the_complete_manifest_becomes_a_cluster_and_is_deleted(shell: Shell) -> None:
    applied = shell.run("kubectl apply -f -", stdin=O06_COMPLETE)
    assert applied.code == 0, applied.err
    assert applied.out.count(" created") == 8
    shell.ok("kubectl wait --for=condition=Available cluster/my-nutanix-cluster --timeout=100s")
    shell.ok(
        "kubectl wait --for=jsonpath='{.status.availableReplicas}'=3 kubeadmcontrolplane/my-nutanix-cluster-kcp --timeout=100s"
    )
    shell.ok(
        "kubectl wait --for=jsonpath='{.status.availableReplicas}'=3 machinedeployment/my-nutanix-cluster-md-0 --timeout=100s"
    )
    machines = read(shell, "nutanixmachines")["items"]
    memory = sorted(each["spec"]["memorySize"] for each in machines)
    assert memory == ["16Gi", "16Gi", "16Gi", "8Gi", "8Gi", "8Gi"]
    # The chain of the document: each Machine has the provider ID of its VM, and the Node with that ID.
    ids = {each["spec"]["providerID"] for each in machines}
    owners = read(shell, "machines")["items"]
    assert {each["spec"]["providerID"] for each in owners} == ids
    assert all(each.startswith("nutanix://") for each in ids)
    assert all(each["status"]["nodeRef"]["name"] for each in owners)
    shell.ok("kubectl delete cluster my-nutanix-cluster --timeout=100s")
    assert read(shell, "nutanixmachines")["items"] == []


def test_a_cluster_with_references_and_a_topology_waits_for_its_class(shell: Shell) -> None:
    applied = shell.run("kubectl apply -f -", stdin=O01_CLUSTER)
    assert applied.code == 0, applied.err
    assert "ClusterClass default/my-cluster-class does not exist" in applied.err
    found = read(shell, "cluster my-cluster")
    assert found["spec"]["topology"]["version"] == "v1.28.0"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (O03_NUTANIX_CLUSTER, "nutanixcluster my-cluster"),
        (O04_NUTANIX_MACHINE, "nutanixmachine my-cluster-worker-0"),
        (O05_NUTANIX_MACHINE_TEMPLATE, "nutanixmachinetemplate my-cluster-worker-template"),
    ],
)
def test_a_block_is_accepted_and_keeps_every_field(shell: Shell, text: str, what: str) -> None:
    """kubectl asks for strict validation: a field that is not declared would be an error."""
    applied = shell.run("kubectl apply -f -", stdin=text)
    assert applied.code == 0, applied.err
    written, stored = yaml.safe_load(text)["spec"], read(shell, what)["spec"]
    assert not list(lost(written, stored))


def lost(written: Any, stored: Any, path: str = "spec") -> list[str]:
    """Fields that are not stored with their value; defaults may be added. `categories` is stored under its other name."""
    if isinstance(written, dict) and isinstance(stored, dict):
        names = {"categories": "additionalCategories"} if "categories" not in stored else {}
        kept = {name: stored.get(names.get(name, name)) for name in written}
        return [
            each
            for name in written
            if written[name] != []
            for each in lost(written[name], kept[name], f"{path}.{name}")
        ]
    if isinstance(written, list) and isinstance(stored, list) and len(written) == len(stored):
        return [each for pair in zip(written, stored, strict=True) for each in lost(*pair, f"{path}[]")]
    return [] if written == stored else [f"{path}: {written!r} became {stored!r}"]


def test_a_machine_whose_owner_has_no_uid_is_refused_and_accepted_without_the_owner(shell: Shell) -> None:
    refused = shell.run("kubectl apply -f -", stdin=O02_MACHINE)
    assert refused.code != 0
    assert "metadata.ownerReferences[0].uid" in refused.err
    machine = yaml.safe_load(O02_MACHINE)
    del machine["metadata"]["ownerReferences"]
    applied = shell.run("kubectl apply -f -", stdin=yaml.safe_dump(machine))
    assert applied.code == 0, applied.err
