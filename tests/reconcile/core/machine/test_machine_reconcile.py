"""A Machine takes hold of what it refers to, and passes on what it learns from there."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Machine
from homeport.client.protocol import Key
from reconcile.core.provider import (
    BOOTSTRAP,
    INFRA_MACHINE,
    M1,
    NODE,
    PROVISIONED,
    cluster,
    foreign,
    machine,
    node,
    owners,
    said,
    world,
)

_READY: dict[str, dict[str, Any]] = {
    "v1beta1": {"ready": True},
    "v1beta2": {"initialization": {"provisioned": True, "dataSecretCreated": True}},
}


def parts(contract: str = "v1beta2") -> list[dict[str, Any]]:
    """A Cluster, a Machine and what it refers to, all done."""
    config = foreign(BOOTSTRAP, "m1", status={**_READY[contract], "dataSecretName": "m1-data"})
    infra = foreign(
        INFRA_MACHINE,
        "m1",
        spec={"providerID": "fake://m1"},
        status={**_READY[contract], "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}]},
    )
    return [cluster(status=PROVISIONED), machine(), config, infra]


async def test_references_get_owner_and_label_in_one_patch_each() -> None:
    config = foreign(
        BOOTSTRAP,
        "m1",
        metadata={
            "ownerReferences": [
                {
                    "apiVersion": "cluster.x-k8s.io/v1beta2",
                    "kind": "MachineSet",
                    "name": "s",
                    "uid": "u",
                    "controller": True,
                }
            ]
        },
    )
    async with world(cluster(), machine(), config, foreign(INFRA_MACHINE, "m1")) as w:
        outcome, found = await w.machine()
        assert outcome.error is None
        for kind in (BOOTSTRAP, INFRA_MACHINE):
            obj = await w.client.get(kind, M1)
            assert owners(obj) == [("Machine", "m1", True)]  # the set that made it has let go
            assert obj.metadata["labels"]["cluster.x-k8s.io/cluster-name"] == "c1"
            assert outcome.written.count((kind, M1)) == 1
        assert found.status.phase == "Pending"
        again, _ = await w.machine()
        assert again.written == ()


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
async def test_what_providers_say_is_taken_over_from_either_contract(contract: str) -> None:
    async with world(*parts(contract), contract=contract) as w:
        outcome, found = await w.machine()
        assert found.spec.bootstrap.data_secret_name == "m1-data"
        assert found.spec.provider_id == "fake://m1"
        assert [(a.type, a.address) for a in found.status.addresses] == [("InternalIP", "10.0.0.7")]
        assert found.status.initialization.bootstrap_data_secret_created
        assert found.status.initialization.infrastructure_provisioned
        assert found.status.phase == "Provisioned"
        assert said(found, "InfrastructureReady")[:2] == ("True", "Ready")
        # One patch for the spec, one for the status.
        assert outcome.written.count((Machine.__resource__, M1)) == 2
        again, _ = await w.machine()
        assert again.written == ()


async def test_bootstrap_data_alone_makes_it_provisioning() -> None:
    config = foreign(BOOTSTRAP, "m1", status={"initialization": {"dataSecretCreated": True}, "dataSecretName": "d"})
    async with world(cluster(), machine(), config, foreign(INFRA_MACHINE, "m1")) as w:
        outcome, found = await w.machine()
        assert found.status.phase == "Provisioning"
        assert outcome.wait is not None
        assert outcome.wait.reason == "WaitingForInfrastructure"
        assert said(found, "InfrastructureReady") == ("False", "NotReady", "FakeMachine m1 is not provisioned yet")


async def test_a_secret_of_the_users_own_needs_no_configuration() -> None:
    own = machine(spec={"bootstrap": {"dataSecretName": "mine"}})
    async with world(cluster(), own, foreign(INFRA_MACHINE, "m1")) as w:
        _, found = await w.machine()
        assert said(found, "BootstrapConfigReady")[:2] == ("True", "DataSecretProvided")
        assert found.status.phase == "Provisioning"


async def test_what_is_missing_or_not_installed_is_named() -> None:
    async with world(cluster(), machine(), foreign(BOOTSTRAP, "m1")) as w:
        outcome, found = await w.machine()
        assert said(found, "InfrastructureReady") == ("False", "ObjectDoesNotExist", "FakeMachine m1 does not exist")
        assert outcome.wait is not None
        assert outcome.wait.after is None
    odd = machine(spec={"infrastructureRef": {"apiGroup": "nobody.example.com", "kind": "Thing", "name": "x"}})
    async with world(cluster(), odd, foreign(BOOTSTRAP, "m1")) as w:
        outcome, found = await w.machine()
        assert "install its provider" in said(found, "InfrastructureReady")[2]


async def test_infrastructure_that_vanished_is_a_failure_that_says_what_to_do() -> None:
    status = {"initialization": {"infrastructureProvisioned": True, "bootstrapDataSecretCreated": True}}
    held = machine(spec={"providerID": "fake://m1"}, status=status)
    async with world(cluster(status=PROVISIONED), held, foreign(BOOTSTRAP, "m1")) as w:
        _, found = await w.machine()
        status_, reason, message = said(found, "InfrastructureReady")
        assert (status_, reason) == ("False", "ObjectDeleted")
        assert "delete the Machine" in message
        assert found.status.deprecated.v1beta1.failure_reason == "InvalidConfiguration"
        assert found.status.initialization.infrastructure_provisioned


async def test_initialization_never_goes_back() -> None:
    async with world(*parts()) as w:
        await w.machine()
        await w.say(INFRA_MACHINE, M1, status={"initialization": {"provisioned": False}})
        await w.say(BOOTSTRAP, M1, status={"initialization": {"dataSecretCreated": False}})
        _, found = await w.machine()
        assert found.status.initialization.infrastructure_provisioned
        assert found.status.initialization.bootstrap_data_secret_created


async def test_a_machine_without_maker_belongs_to_its_cluster() -> None:
    bare = machine(metadata={"finalizers": [], "labels": {"cluster.x-k8s.io/cluster-name": "c1"}})
    made = machine("m2", metadata={"labels": {"cluster.x-k8s.io/set-name": "s"}})
    async with world(cluster(), bare, made) as w:
        _outcome, found = await w.machine()
        assert [(r.kind, r.name, r.controller) for r in found.metadata.owner_references] == [("Cluster", "c1", None)]
        assert found.metadata.finalizers == ["machine.cluster.x-k8s.io"]
        _, other = await w.machine(Key("default", "m2"))
        assert other.metadata.owner_references == []  # its set will come for it


async def test_a_paused_machine_is_left_alone() -> None:
    paused = machine(metadata={"annotations": {"cluster.x-k8s.io/paused": ""}})
    async with world(cluster(), paused, foreign(BOOTSTRAP, "m1"), foreign(INFRA_MACHINE, "m1")) as w:
        outcome, found = await w.machine()
        assert said(found, "Paused")[:2] == ("True", "Paused")
        assert owners(await w.client.get(INFRA_MACHINE, M1)) == []
        assert [kind.kind for kind, _ in outcome.written] == ["Machine"]


async def test_a_machine_without_cluster_waits_for_it() -> None:
    async with world(machine()) as w:
        outcome, _ = await w.machine()
        assert outcome.wait is not None
        assert outcome.wait.message == "Cluster c1 does not exist"


# -- the Node --------------------------------------------------------------------------------------------------------


async def test_the_node_is_found_by_provider_id_and_annotated_with_its_machine() -> None:
    labels = {"node-role.kubernetes.io/worker": "", "not-for-nodes": "x", "node.cluster.x-k8s.io/zone": "a"}
    held = [cluster(status=PROVISIONED), machine(metadata={"labels": labels}), *parts()[2:]]
    taints = [
        {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"},
        {"key": "own", "effect": "NoExecute"},
    ]
    async with world(*held) as w:
        await w.connect(node(spec={"taints": taints}), node("other", spec={"providerID": "fake://m2"}))
        outcome, found = await w.machine()
        assert outcome.error is None
        assert found.status.node_ref is not None
        assert found.status.node_ref.name == "n1"
        assert found.status.node_info.kubelet_version == "v1.30.0"
        assert found.status.phase == "Running"
        assert said(found, "Ready")[:2] == ("True", "Ready")
        assert said(found, "Available")[:2] == ("True", "Available")
        seen = await w.workload.get(NODE, Key("", "n1"))
        assert seen["spec"]["taints"] == [{"key": "own", "effect": "NoExecute"}]
        assert "not-for-nodes" not in seen.metadata["labels"]
        assert seen.metadata["labels"]["node.cluster.x-k8s.io/zone"] == "a"
        assert seen.metadata["annotations"]["cluster.x-k8s.io/machine"] == "m1"


async def test_two_nodes_with_one_provider_id_are_named() -> None:
    async with world(*parts()) as w:
        await w.connect(node(), node("n2"))
        _, found = await w.machine()
        assert found.status.node_ref is None
        assert "Nodes n1, n2 all have spec.providerID fake://m1" in said(found, "NodeHealthy")[2]


async def test_an_unhealthy_node_is_reported_with_its_own_words() -> None:
    bad = node()
    bad["status"]["conditions"][0] |= {"status": "False", "message": "container runtime is down"}
    async with world(*parts()) as w:
        await w.connect(bad)
        _, found = await w.machine()
        assert said(found, "NodeReady") == ("False", "NodeNotReady", "Node n1: container runtime is down")
        assert said(found, "Ready") == ("False", "NotReady", "* NodeHealthy: Node n1: Ready: container runtime is down")
        assert found.status.phase == "Running"


async def test_a_node_that_vanished_is_reported() -> None:
    held = parts()
    held[1] = machine(spec={"providerID": "fake://m1"}, status={"nodeRef": {"name": "n1"}})
    async with world(*held) as w:
        await w.connect()
        _, found = await w.machine()
        assert said(found, "NodeHealthy") == (
            "False",
            "NodeDeleted",
            "Node n1 has been deleted, but the Machine still exists",
        )


async def test_a_machine_is_available_after_its_min_ready_seconds() -> None:
    held = parts()
    held[1] = machine(spec={"minReadySeconds": 100})
    async with world(*held) as w:
        await w.connect(node())
        outcome, found = await w.machine()
        assert said(found, "Available")[:2] == ("False", "WaitingForMinReadySeconds")
        assert outcome.wait is not None
        assert outcome.wait.after is not None
        assert 98 < outcome.wait.after <= 100


async def test_certificate_expiry_comes_from_the_configuration_of_control_plane_machines() -> None:
    label = {"labels": {"cluster.x-k8s.io/control-plane": ""}}
    held = parts()
    held[1] = machine(metadata=label)
    held[2]["metadata"]["annotations"] = {"machine.cluster.x-k8s.io/certificates-expiry": "2027-01-01T00:00:00Z"}
    async with world(*held) as w:
        _, found = await w.machine()
        assert found.status.certificates_expiry_date == "2027-01-01T00:00:00Z"
