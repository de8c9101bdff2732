from __future__ import annotations

import pytest

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.capi.remote import kubeconfig, pki
from homeport.client.protocol import Key, MergePatch, Write
from homeport.machinery import condition
from homeport.runtime.clock import LoopClock
from homeport.runtime.testing import versions, virtual
from reconcile.controlplane.control_plane_kit import (
    CLUSTER,
    INITIALIZED,
    KEY,
    SECRET,
    Kit,
    cluster,
    control_plane,
    kit,
    template,
)

PROVISIONED = {"status": {"initialization": {"infrastructureProvisioned": True}}}


async def test_the_first_reconcile_makes_everything_for_the_first_machine() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        found = await k.reconcile()
        assert found.error is None
        assert set(await k.secrets()) == {"one-ca", "one-etcd", "one-proxy", "one-sa", "one-kubeconfig"}
        (machine,), (config,), (infra,) = await k.machines(), await k.configs(), await k.infra()
        assert machine.metadata.name == config.metadata.name == infra.name
        assert machine.metadata.name.startswith("one-cp-")
        assert machine.spec.version == "v1.30.2"
        assert machine.metadata.labels["cluster.x-k8s.io/control-plane-name"] == "one-cp"
        assert [each.kind for each in machine.metadata.owner_references if each.controller] == ["KubeadmControlPlane"]
        assert "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup" in machine.metadata.annotations
        assert infra["spec"] == {"size": "small"}
        assert infra.metadata["annotations"]["cluster.x-k8s.io/cloned-from-name"] == "small"
        assert config.spec.join_configuration.control_plane is None
        status = (await k.kcp()).status
        assert (status.replicas, status.up_to_date_replicas) == (1, 1)
        assert (await k.said())["CertificatesAvailable"]["status"] == "True"
        owner = (await k.client.get(k.plane.resource(template()), Key("default", "small"))).metadata["ownerReferences"]
        assert [each["kind"] for each in owner] == ["Cluster"]


async def test_the_second_reconcile_makes_nothing() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await k.reconcile()
        before = versions(k.plane)
        found = await k.reconcile()
        assert found.written == ()
        assert versions(k.plane) == before
        assert found.wait is not None
        assert "to initialize the cluster" in found.wait.message


async def test_no_second_machine_is_made_before_the_first_is_there() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(replicas=3), template())
        await k.reconcile()
        for _ in range(2):
            found = await k.reconcile()
            assert found.wait is not None
            assert "waiting for the Node of Machine" in found.wait.message
        assert len(await k.machines()) == 1


@pytest.mark.parametrize("left", ["config", "config and infrastructure"])
async def test_a_machine_that_was_begun_is_finished_under_its_name(left: str) -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await k.reconcile()
        (machine,) = await k.machines()
        name = Key("default", machine.metadata.name)
        await k.client.delete(Machine, name)
        if left == "config":
            await k.client.delete(k.plane.resource((await k.infra())[0]), name)
        await k.reconcile()
        assert [each.metadata.name for each in await k.machines()] == [name.name]
        assert [each.metadata.name for each in await k.configs()] == [name.name]
        assert [each.name for each in await k.infra()] == [name.name]


async def test_what_was_begun_for_another_configuration_is_removed() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await k.reconcile()
        (machine,) = await k.machines()
        await k.client.delete(Machine, Key("default", machine.metadata.name))
        change = {"spec": {"kubeadmConfigSpec": {"preKubeadmCommands": ["hostname"]}}}
        await k.client.patch(KubeadmControlPlane, KEY, MergePatch(change))
        await k.reconcile()
        (made,), (config,), (infra,) = await k.machines(), await k.configs(), await k.infra()
        assert made.metadata.name == config.metadata.name == infra.name != machine.metadata.name
        assert config.spec.pre_kubeadm_commands == ["hostname"]


async def test_nothing_is_made_before_the_infrastructure_is_there() -> None:
    async with kit() as k:
        await k.start(cluster(provisioned=False), control_plane(), template())
        found = await k.reconcile()
        assert found.wait is not None
        assert found.wait.reason == "WaitingForClusterInfrastructureReady"
        assert await k.secrets() == {}


async def test_certificates_are_made_before_the_endpoint_is_known() -> None:
    async with kit() as k:
        await k.start(cluster(endpoint=False), control_plane(), template())
        found = await k.reconcile()
        assert found.wait is not None
        assert found.wait.reason == "WaitingForControlPlaneEndpoint"
        assert set(await k.secrets()) == {"one-ca", "one-etcd", "one-proxy", "one-sa"}
        assert await k.machines() == []


async def test_a_missing_template_is_named() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane())
        found = await k.reconcile()
        assert found.wait is not None
        assert "GenericMachineTemplate small does not exist" in found.wait.message
        await k.have(template())
        await k.reconcile()
        assert len(await k.machines()) == 1


async def test_an_authority_that_the_user_brought_is_used() -> None:
    async with kit() as k:
        own = await pki.generate(["ca"], now=k.plane.clock.now())
        secret = pki.as_secret(CLUSTER, "ca", own["ca"], None)
        await k.start(cluster(), control_plane(), template(), secret)
        await k.reconcile()
        found = (await k.secrets())["one-ca"]
        assert pki.secret_data(found, "tls.crt") == own["ca"].certificate
        assert "ownerReferences" not in found.metadata
        config = kubeconfig.parse(kubeconfig.value((await k.secrets())["one-kubeconfig"]))
        assert config.ca == own["ca"].certificate


async def test_authorities_of_a_running_cluster_are_never_made_again() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await k.reconcile()
        await k.client.patch(KubeadmControlPlane, KEY, MergePatch({"status": INITIALIZED}), subresource="status")
        await k.client.delete(SECRET, Key("default", "one-etcd"))
        await k.reconcile()
        assert "one-etcd" not in await k.secrets()
        said = (await k.said())["CertificatesAvailable"]
        assert said["status"] == "False"
        assert "one-etcd" in said["message"]


async def test_a_broken_secret_of_the_user_stops_before_anything_is_made() -> None:
    async with kit() as k:
        broken = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "one-ca", "labels": {"cluster.x-k8s.io/cluster-name": "one"}},
            "data": {"tls.crt": "bm8="},
        }
        await k.start(cluster(), control_plane(), template(), broken)
        found = await k.reconcile()
        assert found.wait is not None
        assert "Secret one-ca" in found.wait.message
        assert await k.machines() == []


@virtual
async def test_the_kubeconfig_is_renewed_at_half_of_its_time() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await k.reconcile()
        first = kubeconfig.value((await k.secrets())["one-kubeconfig"])
        clock = k.plane.clock
        assert isinstance(clock, LoopClock)
        clock.jump(100 * 86_400)
        await k.reconcile()
        assert kubeconfig.value((await k.secrets())["one-kubeconfig"]) == first
        clock.jump(100 * 86_400)
        await k.reconcile()
        second = kubeconfig.value((await k.secrets())["one-kubeconfig"])
        assert second != first
        left = kubeconfig.remaining(kubeconfig.parse(second), k.plane.clock.now())
        assert left is not None
        assert left > 0.9


async def test_a_paused_control_plane_says_so_and_does_nothing() -> None:
    async with kit() as k:
        await k.start(cluster(paused=True), control_plane(), template())
        found = await k.reconcile()
        assert found.wait is None
        assert [each["type"] for each in (await k.kcp()).status.conditions] == ["Paused"]
        assert await k.secrets() == {}
        await k.client.patch(Cluster, CLUSTER, MergePatch({"spec": {"paused": None}}))
        await k.reconcile()
        assert (await k.said())["Paused"]["status"] == "False"
        assert len(await k.machines()) == 1


async def test_labels_annotations_and_timeouts_reach_machines_without_a_rollout() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await k.reconcile()
        change = {"metadata": {"labels": {"team": "a"}}, "spec": {"deletion": {"nodeDrainTimeoutSeconds": 60}}}
        await k.client.patch(KubeadmControlPlane, KEY, MergePatch({"spec": {"machineTemplate": change}}))
        await k.reconcile()
        (machine,), (config,), (infra,) = await k.machines(), await k.configs(), await k.infra()
        assert machine.spec.deletion.node_drain_timeout_seconds == 60
        for labels in (machine.metadata.labels, config.metadata.labels, infra.metadata["labels"]):
            assert labels["team"] == "a"
        assert (await k.said())["RollingOut"]["status"] == "False"


# -- Machines that were there before ---------------------------------------------------------------------------


async def stand_alone(k: Kit, *, version: str = "v1.30.2", controller: bool = False) -> None:
    owner = await k.client.get(Cluster, CLUSTER)
    reference = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "one", "uid": owner.metadata.uid}
    if controller:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "other", "uid": "x", "controller": True}  # type: ignore[dict-item]
    await k.have(
        {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmConfig",
            "metadata": {"name": "first"},
            "spec": {"format": "cloud-config"},
        },
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "metadata": {
                "name": "first",
                "labels": {"cluster.x-k8s.io/cluster-name": "one", "cluster.x-k8s.io/control-plane": ""},
                "ownerReferences": [reference],
            },
            "spec": {
                "clusterName": "one",
                "version": version,
                "bootstrap": {
                    "configRef": {
                        "apiGroup": "bootstrap.cluster.x-k8s.io",
                        "kind": "KubeadmConfig",
                        "name": "first",
                    }
                },
                "infrastructureRef": {
                    "apiGroup": "infrastructure.example.com",
                    "kind": "GenericMachine",
                    "name": "first",
                },
            },
        },
    )


async def test_stand_alone_machines_are_taken_over() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await stand_alone(k)
        config = await k.client.get(KubeadmConfig, Key("default", "first"))
        made = await pki.generate(["ca"], now=k.plane.clock.now())
        owner = {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmConfig",
            "name": "first",
            "uid": config.metadata.uid,
            "controller": True,
        }
        await k.client.create(pki.as_secret(CLUSTER, "ca", made["ca"], owner), Write(), kind=SECRET)
        await k.reconcile()
        await k.reconcile()
        (machine,) = await k.machines()
        assert [each.kind for each in machine.metadata.owner_references if each.controller] == ["KubeadmControlPlane"]
        assert machine.metadata.labels["cluster.x-k8s.io/control-plane-name"] == "one-cp"
        (holder,) = (await k.secrets())["one-ca"].metadata["ownerReferences"]
        assert holder["kind"] == "KubeadmControlPlane"


@pytest.mark.parametrize(
    ("version", "controller", "message"),
    [("v1.28.0", False, "more than one minor version"), ("v1.30.2", True, "two owners")],
)
async def test_machines_that_can_not_be_taken_over_stop_everything(
    version: str, controller: bool, message: str
) -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await stand_alone(k, version=version, controller=controller)
        found = await k.reconcile()
        assert found.wait is not None
        assert message in found.wait.message
        assert len(await k.machines()) == 1


# -- the end ---------------------------------------------------------------------------------------------------


async def test_workers_go_before_the_control_plane() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await k.reconcile()
        worker = {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "metadata": {"name": "worker", "labels": {"cluster.x-k8s.io/cluster-name": "one"}},
            "spec": {
                "clusterName": "one",
                "bootstrap": {"dataSecretName": "x"},
                "infrastructureRef": {
                    "apiGroup": "infrastructure.example.com",
                    "kind": "GenericMachine",
                    "name": "worker",
                },
            },
        }
        await k.have(worker)
        machine = next(each for each in await k.machines() if each.metadata.name != "worker")
        finalizers = MergePatch({"metadata": {"finalizers": ["machine.cluster.x-k8s.io"]}})
        key = Key("default", machine.metadata.name)
        await k.client.patch(Machine, key, finalizers)
        await k.client.delete(KubeadmControlPlane, KEY)
        found = await k.reconcile()
        assert found.wait is not None
        assert found.wait.message == "waiting for the workers to be deleted: Machine worker"
        assert (await k.said())["Deleting"]["reason"] == "WaitingForWorkersDeletion"
        await k.client.delete(Machine, Key("default", "worker"))
        found = await k.reconcile()
        assert found.wait is not None
        assert found.wait.reason == "WaitingForMachineDeletion"
        leaving = await k.client.get(Machine, key)
        assert leaving.metadata.deletion_timestamp
        assert not any("kcp-cleanup" in name for name in leaving.metadata.annotations)
        await k.client.patch(Machine, key, MergePatch({"metadata": {"finalizers": None}}))
        found = await k.reconcile()
        assert found.error is None
        await k.plane.gone(KubeadmControlPlane, KEY)


async def test_a_control_plane_whose_cluster_was_removed_by_force_goes_with_its_machines() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(), template())
        await k.reconcile()
        await k.client.delete(KubeadmControlPlane, KEY)
        await k.client.delete(Cluster, CLUSTER)
        await k.reconcile()
        assert await k.machines() == []
        await k.reconcile()
        await k.plane.gone(KubeadmControlPlane, KEY)


# -- remediation before there is a cluster ---------------------------------------------------------------------


async def test_a_first_machine_that_fails_is_replaced_and_retries_are_counted() -> None:
    async with kit() as k:
        await k.start(cluster(), control_plane(remediation={"maxRetry": 1}), template())
        await k.reconcile()
        names = []
        for _ in range(3):
            (machine,) = await k.machines()
            names.append(machine.metadata.name)
            now = "2026-01-01T00:00:00Z"
            failed = condition.put([], "HealthCheckSucceeded", "False", "NodeStartupTimeout", "x", now=now)
            failed = condition.put(failed, "OwnerRemediated", "False", "WaitingForRemediation", "", now=now)
            await k.mark(machine, conditions=failed)
            await k.reconcile()
            if machine.metadata.name not in {each.metadata.name for each in await k.machines()}:
                # With its Machine goes what was made for it.
                for kind in (KubeadmConfig, k.plane.resource((await k.infra())[0])):
                    await k.client.delete(kind, Key("default", machine.metadata.name))
            await k.reconcile()
        assert names[0] != names[1]
        assert names[1] != (await k.machines())[0].metadata.name
        status = (await k.kcp()).status
        assert status.last_remediation.machine == names[1]
        assert status.last_remediation.retry_count == 1
        (machine,) = await k.machines()
        said = condition.find(machine.status.conditions, "OwnerRemediated")
        assert said is not None
        assert said["reason"] == "CannotBeRemediated"
        assert "controlplane.cluster.x-k8s.io/remediation-in-progress" not in (await k.kcp()).metadata.annotations
