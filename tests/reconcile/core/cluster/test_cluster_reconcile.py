"""A Cluster takes hold of what it refers to, tells how it is, and goes in order."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.meta import Resource
from homeport.capi.remote import pki
from homeport.client.errors import Cause, NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.core.cluster import admission
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from reconcile.core.provider import (
    C1,
    CONTROL_PLANE,
    GROUP,
    INFRA_CLUSTER,
    INFRA_MACHINE,
    PROVISIONED,
    World,
    cluster,
    foreign,
    machine,
    owners,
    ref,
    said,
    world,
)

HOLD = {"finalizers": ["provider.example.com/hold"]}
ENDPOINT = {"host": "10.0.0.1", "port": 6443}


def deployment(name: str = "md", replicas: int = 2, **parts: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"x": name}},
        "spec": {
            "clusterName": "c1",
            "bootstrap": {"dataSecretName": "d"},
            "infrastructureRef": ref(Resource(GROUP, "v1", "FakeMachineTemplate", "x"), "t"),
        },
    }
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineDeployment",
        "metadata": {"name": name, **parts.pop("metadata", {})},
        "spec": {
            "clusterName": "c1",
            "replicas": replicas,
            "selector": {"matchLabels": {"x": name}},
            "template": template,
        },
        **parts,
    }


def infra(contract: str = "v1beta2", **parts: Any) -> dict[str, Any]:
    if contract == "v1beta1":
        status: dict[str, Any] = {"ready": True, "failureDomains": {"a": {"controlPlane": True}}}
    else:
        status = {"initialization": {"provisioned": True}, "failureDomains": [{"name": "a", "controlPlane": True}]}
    return foreign(INFRA_CLUSTER, "c1", spec={"controlPlaneEndpoint": ENDPOINT}, status=status, **parts)


def control_plane(contract: str = "v1beta2", **parts: Any) -> dict[str, Any]:
    counts = {"replicas": 3, "readyReplicas": 2}
    if contract == "v1beta1":
        status: dict[str, Any] = {"initialized": True, **counts, "unavailableReplicas": 1, "updatedReplicas": 3}
    else:
        state = {"controlPlaneInitialized": True}
        status = {"initialization": state, **counts, "availableReplicas": 2, "upToDateReplicas": 3}
    return foreign(CONTROL_PLANE, "c1", spec={"replicas": 3, "version": "v1.30.0"}, status=status, **parts)


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
async def test_endpoint_failure_domains_and_counts_come_from_either_contract(contract: str) -> None:
    async with world(cluster(), infra(contract), control_plane(contract), contract=contract) as w:
        outcome, found = await w.cluster()
        assert outcome.error is None
        assert (found.spec.control_plane_endpoint.host, found.spec.control_plane_endpoint.port) == ("10.0.0.1", 6443)
        assert [(d.name, d.control_plane) for d in found.status.failure_domains] == [("a", True)]
        assert found.status.initialization.infrastructure_provisioned
        assert found.status.initialization.control_plane_initialized
        counts = found.status.control_plane
        assert (counts.desired_replicas, counts.replicas, counts.ready_replicas) == (3, 3, 2)
        assert (counts.available_replicas, counts.up_to_date_replicas) == (2, 3)
        assert found.status.phase == "Provisioned"
        for kind in (INFRA_CLUSTER, CONTROL_PLANE):
            obj = await w.client.get(kind, C1)
            assert owners(obj) == [("Cluster", "c1", False)]
            assert obj.metadata["labels"]["cluster.x-k8s.io/cluster-name"] == "c1"
        assert outcome.written.count((Cluster.__resource__, C1)) == 2
        again, _ = await w.cluster()
        assert again.written == ()


async def test_an_endpoint_that_is_there_is_kept() -> None:
    own = cluster(spec={"controlPlaneEndpoint": {"host": "mine.example.com", "port": 443}})
    async with world(own, infra(), control_plane()) as w:
        _, found = await w.cluster()
        assert found.spec.control_plane_endpoint.host == "mine.example.com"


async def test_the_control_plane_may_give_the_endpoint() -> None:
    bare = foreign(INFRA_CLUSTER, "c1", status={"initialization": {"provisioned": True}})
    plane = foreign(CONTROL_PLANE, "c1", spec={"controlPlaneEndpoint": ENDPOINT})
    async with world(cluster(), bare, plane) as w:
        _, found = await w.cluster()
        assert found.spec.control_plane_endpoint.host == "10.0.0.1"
        assert said(found, "ControlPlaneInitialized")[:2] == ("False", "NotInitialized")


NETWORK = {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.0.0.0/16"]}}


def checked(w: World) -> None:
    """Clusters are validated, as in a whole plane."""
    hooks = Hooks()
    admission.register(hooks, w.client)
    install_hooks(hooks, w.p.server)


async def test_an_endpoint_among_the_services_is_reported_with_range_and_cure_until_the_network_is_corrected() -> None:
    own = cluster(spec={"clusterNetwork": NETWORK}, metadata={"finalizers": []})
    async with world(own, infra(), foreign(CONTROL_PLANE, "c1")) as w:
        checked(w)
        outcome, found = await w.cluster()
        assert outcome.error is None
        assert found.metadata.finalizers == ["cluster.cluster.x-k8s.io"]
        assert not found.spec.control_plane_endpoint.host
        assert not found.status.initialization.infrastructure_provisioned
        status, reason, message = said(found, "InfrastructureReady")
        assert (status, reason) == ("False", "EndpointNotUsable")
        for words in (
            "FakeCluster c1 offers the endpoint 10.0.0.1:6443",
            "is in 10.0.0.0/16 of spec.clusterNetwork.services.cidrBlocks[0]",
            "choose an address in the network of the machines",
            "Correct the endpoint of FakeCluster c1, or spec.clusterNetwork of the Cluster",
        ):
            assert words in message
            assert words in said(found, "Available")[2].split("\n")[0]
        again, _ = await w.cluster()
        assert again.written == ()
        body = {"spec": {"clusterNetwork": {"services": {"cidrBlocks": ["10.96.0.0/12"]}}}}
        await w.client.patch(Cluster, C1, MergePatch(body))
        _, found = await w.cluster()
        assert found.spec.control_plane_endpoint.host == "10.0.0.1"
        assert found.status.initialization.infrastructure_provisioned
        assert said(found, "InfrastructureReady")[:2] == ("True", "Ready")


async def test_an_endpoint_of_a_control_plane_that_is_not_usable_is_reported_until_it_is_corrected() -> None:
    bare = foreign(INFRA_CLUSTER, "c1", status={"initialization": {"provisioned": True}})
    plane = foreign(CONTROL_PLANE, "c1", spec={"controlPlaneEndpoint": ENDPOINT})
    async with world(cluster(spec={"clusterNetwork": NETWORK}), bare, plane) as w:
        checked(w)
        _, found = await w.cluster()
        status, reason, message = said(found, "ControlPlaneAvailable")
        assert (status, reason) == ("False", "EndpointNotUsable")
        assert "FakeControlPlane c1 offers the endpoint 10.0.0.1:6443" in message
        await w.say(CONTROL_PLANE, C1, spec={"controlPlaneEndpoint": {"host": "10.1.0.1", "port": 6443}})
        _, found = await w.cluster()
        assert found.spec.control_plane_endpoint.host == "10.1.0.1"
        assert said(found, "ControlPlaneAvailable")[1] == "NotAvailable"


async def test_an_error_of_the_server_is_part_of_why_a_cluster_is_not_available() -> None:
    """Whatever ends a loop must be seen on the object: nobody looks for it in logs first."""
    async with world(cluster(), infra(), foreign(CONTROL_PLANE, "c1")) as w:
        hooks = Hooks()
        hooks.add(INFRA_CLUSTER, validate=lambda obj, old: [Cause("FieldValueInvalid", "not today", "metadata")])
        install_hooks(hooks, w.p.server)
        outcome, found = await w.cluster()
        assert outcome.error is not None
        assert "not today" in said(found, "Available")[2].split("\n")[0]


async def test_initialization_never_goes_back() -> None:
    async with world(cluster(status=PROVISIONED), foreign(INFRA_CLUSTER, "c1"), foreign(CONTROL_PLANE, "c1")) as w:
        _, found = await w.cluster()
        assert found.status.initialization.infrastructure_provisioned
        assert found.status.initialization.control_plane_initialized
        assert said(found, "ControlPlaneInitialized")[:2] == ("True", "Initialized")


async def test_a_waiting_cluster_names_the_object_it_waits_for() -> None:
    ready = {
        "type": "Ready",
        "status": "False",
        "reason": "Broken",
        "message": "subnet 'blue' not found on Prism Central pc",
    }
    waiting = foreign(INFRA_CLUSTER, "c1", status={"conditions": [ready]})
    async with world(cluster(), waiting, foreign(CONTROL_PLANE, "c1")) as w:
        outcome, found = await w.cluster()
        assert said(found, "InfrastructureReady")[2] == "FakeCluster c1: subnet 'blue' not found on Prism Central pc"
        first = said(found, "Available")[2].split("\n")[0]
        assert first == "FakeCluster c1: subnet 'blue' not found on Prism Central pc"
        assert found.status.phase == "Provisioning"
        assert outcome.wait is not None
        assert outcome.wait.after is None


async def test_the_deepest_cause_is_said_with_the_object_it_is_on() -> None:
    wrong = {"type": "Ready", "status": "False", "reason": "ImageNotFound", "message": "image 'ubuntu-22' not found"}
    held = machine(
        "cp-1",
        metadata={"labels": {"cluster.x-k8s.io/control-plane": ""}},
        status={
            "conditions": [_false("InfrastructureReady", "NotReady", "not yet"), _false("Ready", "NotReady", "no")]
        },
    )
    vm = foreign(INFRA_MACHINE, "cp-1", status={"conditions": [wrong]})
    waits = {"conditions": [{"type": "Available", "status": "False", "reason": "NotAvailable", "message": "wait"}]}
    plane = foreign(CONTROL_PLANE, "c1", status=waits)
    async with world(cluster(), infra(), plane, held, vm) as w:
        await w.p.reconcile(w.machines, Key("default", "cp-1"))
        _, found = await w.cluster()
        first = said(found, "Available")[2].split("\n")[0]
        assert first == "FakeControlPlane c1: control plane machine cp-1: FakeMachine cp-1: image 'ubuntu-22' not found"


def _false(kind: str, reason: str, message: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


async def test_missing_references_are_named() -> None:
    async with world(cluster()) as w:
        outcome, found = await w.cluster()
        assert said(found, "InfrastructureReady") == ("False", "ObjectDoesNotExist", "FakeCluster c1 does not exist")
        assert outcome.wait is not None
        assert outcome.wait.message == "FakeCluster c1 does not exist"


async def test_without_control_plane_provider_a_node_of_a_control_plane_machine_initializes() -> None:
    held = cluster(spec={"controlPlaneRef": None})
    label = {"labels": {"cluster.x-k8s.io/control-plane": ""}}
    async with world(held, infra(), machine("cp", metadata=label)) as w:
        _, found = await w.cluster()
        assert said(found, "ControlPlaneInitialized")[:2] == ("False", "NotInitialized")
        await w.say(Machine.__resource__, Key("default", "cp"), status={"nodeRef": {"name": "n"}})
        _, found = await w.cluster()
        assert found.status.initialization.control_plane_initialized
        assert said(found, "ControlPlaneInitialized")[:2] == ("True", "Initialized")
        assert found.status.control_plane.replicas == 1


async def test_without_control_plane_provider_the_kubeconfig_is_made_from_the_authority() -> None:
    held = cluster(spec={"controlPlaneRef": None})
    async with world(held, infra()) as w:
        _outcome, _ = await w.cluster()
        with pytest.raises(NotFound):
            await w.client.get(pki.SECRET, Key("default", "c1-kubeconfig"))
        await pki.ensure(w.client, C1, owner=None, now=w.p.clock.now(), options=Write(field_manager="t"))
        await w.cluster()
        secret = await w.client.get(pki.SECRET, Key("default", "c1-kubeconfig"))
        assert secret["type"] == "cluster.x-k8s.io/secret"
        assert owners(secret) == [("Cluster", "c1", True)]
        again, _ = await w.cluster()
        assert again.written == ()


async def test_without_infrastructure_it_counts_as_provisioned() -> None:
    async with world(cluster(spec={"infrastructureRef": None}), control_plane()) as w:
        _, found = await w.cluster()
        assert found.status.initialization.infrastructure_provisioned
        assert said(found, "InfrastructureReady")[0] == "True"


async def test_workers_are_counted_and_their_state_reported() -> None:
    status = {
        "replicas": 2,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "upToDateReplicas": 2,
        "versions": [{"version": "v1.30.0", "replicas": 2}],
        "conditions": [_false("Available", "NotAvailable", "1 available replicas, at least 2 required")],
    }
    async with world(cluster(status=PROVISIONED), infra(), control_plane(), deployment(status=status)) as w:
        _, found = await w.cluster()
        counts = found.status.workers
        assert (counts.desired_replicas, counts.replicas, counts.ready_replicas) == (2, 2, 1)
        assert [(v.version, v.replicas) for v in counts.versions] == [("v1.30.0", 2)]
        status_, reason, message = said(found, "WorkersAvailable")
        assert (status_, reason) == ("False", "NotAvailable")
        assert "md" in message
        assert said(found, "Available")[2].split("\n")[0] == (
            "MachineDeployment md: 1 available replicas, at least 2 required"
        )


async def test_a_paused_cluster_is_left_alone() -> None:
    async with world(cluster(spec={"paused": True}), infra(), control_plane()) as w:
        outcome, found = await w.cluster()
        assert said(found, "Paused")[:2] == ("True", "Paused")
        assert [kind.kind for kind, _ in outcome.written] == ["Cluster"]


# -- going -----------------------------------------------------------------------------------------------------------


async def test_workers_go_before_the_control_plane_and_that_before_the_infrastructure() -> None:
    held = [cluster(status=PROVISIONED), infra(metadata=HOLD), control_plane(metadata=HOLD)]
    async with world(*held, deployment(metadata=HOLD)) as w:
        md = await w.client.get(MachineDeployment, Key("default", "md"))
        await _own(w, MachineDeployment, md)
        await w.client.delete(Cluster, C1)
        _, found = await w.cluster()
        assert found.status.phase == "Deleting"
        assert said(found, "Deleting")[1] == "WaitingForWorkersDeletion"
        assert (await w.client.get(MachineDeployment, Key("default", "md"))).metadata.deletion_timestamp
        assert not (await w.client.get(CONTROL_PLANE, C1)).metadata.get("deletionTimestamp")

        await _let_go(w, MachineDeployment, "md")
        _, found = await w.cluster()
        assert said(found, "Deleting")[:2] == ("True", "WaitingForControlPlaneDeletion")
        assert (await w.client.get(CONTROL_PLANE, C1)).metadata["deletionTimestamp"]
        assert not (await w.client.get(INFRA_CLUSTER, C1)).metadata.get("deletionTimestamp")

        await _let_go(w, CONTROL_PLANE, "c1")
        _, found = await w.cluster()
        assert said(found, "Deleting")[:2] == ("True", "WaitingForInfrastructureDeletion")
        assert "FakeCluster c1" in said(found, "Available")[2].split("\n")[0]

        await _let_go(w, INFRA_CLUSTER, "c1")
        outcome = await w.p.reconcile(w.clusters, C1)
        assert outcome.error is None
        assert outcome.wait is None
        with pytest.raises(NotFound):
            await w.client.get(Cluster, C1)


async def test_progress_names_the_machine_that_is_waited_for_and_why() -> None:
    drains = _false("Deleting", "DrainingNode", "draining Node n1: Pod a/b can't be evicted")
    drains["status"] = "True"
    held = machine("w-1", status={"conditions": [drains]})
    async with world(
        cluster(status=PROVISIONED), infra(), control_plane(), deployment(replicas=3, metadata=HOLD), held
    ) as w:
        await _own(w, MachineDeployment, await w.client.get(MachineDeployment, Key("default", "md")))
        await w.client.delete(Machine, Key("default", "w-1"))
        await w.client.delete(Cluster, C1)
        _, found = await w.cluster()
        assert said(found, "Deleting")[2] == (
            "2 of 3 worker machines deleted; waiting for machine w-1: draining Node n1: Pod a/b can't be evicted"
        )


async def _own(w: Any, kind: Any, obj: Any) -> None:
    owner = await w.client.get(Cluster, C1)
    reference = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": owner.metadata.uid}
    patch = MergePatch({"metadata": {"ownerReferences": [reference]}})
    await w.client.patch(kind, Key("default", obj.metadata.name), patch)


async def _let_go(w: Any, kind: Any, name: str) -> None:
    await w.client.patch(kind, Key("default", name), MergePatch({"metadata": {"finalizers": None}}))


# -- objects of another Cluster --------------------------------------------------------------------------------------

C2 = Key("default", "c2")


def second(**metadata: Any) -> dict[str, Any]:
    """Names the parts of c1."""
    return cluster(metadata={"name": "c2", **metadata})


async def test_a_second_cluster_does_not_adopt_the_parts_of_the_first_and_says_so() -> None:
    async with world(cluster(), second(), infra(), control_plane()) as w:
        await w.cluster()
        _, found = await w.cluster(C2)
        for kind in (INFRA_CLUSTER, CONTROL_PLANE):
            obj = await w.client.get(kind, C1)
            assert owners(obj) == [("Cluster", "c1", False)]
            assert obj.metadata["labels"]["cluster.x-k8s.io/cluster-name"] == "c1"
        text = "FakeCluster c1 belongs to Cluster c1, so Cluster c2 does not use it: refer to a FakeCluster of its own"
        assert said(found, "InfrastructureReady") == ("False", "OwnedByAnother", text)
        assert said(found, "ControlPlaneAvailable")[:2] == ("False", "OwnedByAnother")
        assert said(found, "Available")[2].split("\n")[0] == text
        assert not found.spec.control_plane_endpoint.host
        assert not found.status.initialization.infrastructure_provisioned


async def test_deleting_the_second_cluster_leaves_the_parts_of_the_first() -> None:
    async with world(cluster(), second(), infra(), control_plane()) as w:
        await w.cluster()
        await w.p.reconcile(w.clusters, C2)
        await w.client.delete(Cluster, C2)
        await w.p.reconcile(w.clusters, C2)
        with pytest.raises(NotFound):
            await w.client.get(Cluster, C2)
        for kind in (INFRA_CLUSTER, CONTROL_PLANE):
            assert "deletionTimestamp" not in (await w.client.get(kind, C1)).metadata


async def test_parts_that_two_clusters_own_belong_to_the_first_of_them() -> None:
    """Earlier versions let a second Cluster adopt them."""
    async with world(cluster(), second(), infra(), control_plane()) as w:
        await w.cluster()
        for kind in (INFRA_CLUSTER, CONTROL_PLANE):
            held = await w.client.get(kind, C1)
            late = await w.client.get(Cluster, C2)
            api = "cluster.x-k8s.io/v1beta2"
            also = {"apiVersion": api, "kind": "Cluster", "name": "c2", "uid": late.metadata.uid}
            both = [*held.metadata["ownerReferences"], also]
            await w.client.patch(kind, C1, MergePatch({"metadata": {"ownerReferences": both}}))
        await w.client.delete(Cluster, C2)
        await w.p.reconcile(w.clusters, C2)
        for kind in (INFRA_CLUSTER, CONTROL_PLANE):
            assert "deletionTimestamp" not in (await w.client.get(kind, C1)).metadata


async def test_what_another_object_controls_is_not_adopted() -> None:
    boss = {"apiVersion": "example.com/v1", "kind": "Boss", "name": "b", "uid": "b-1", "controller": True}
    async with world(cluster(), infra(metadata={"ownerReferences": [boss]}), control_plane()) as w:
        _, found = await w.cluster()
        assert said(found, "InfrastructureReady")[:2] == ("False", "OwnedByAnother")
        assert owners(await w.client.get(INFRA_CLUSTER, C1)) == [("Boss", "b", True)]


async def test_a_cluster_with_a_reference_to_a_kind_that_does_not_exist_can_be_deleted() -> None:
    typo = {"apiGroup": GROUP, "kind": "FakeClustr", "name": "c1"}
    async with world(cluster(spec={"infrastructureRef": typo, "controlPlaneRef": None})) as w:
        await w.client.delete(Cluster, C1)
        await w.p.reconcile(w.clusters, C1)
        with pytest.raises(NotFound):
            await w.client.get(Cluster, C1)
