"""Objects have one owner, and can be deleted whether or not that owner ever comes."""

from __future__ import annotations

from typing import Any

import pytest

from capikit import generic, manifest
from capikit.harness import NAMESPACE, harness
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Query
from homeport.runtime.testing import virtual
from present import present
from scenario.capi.look import message, says


def rival(name: str, of: str) -> dict[str, Any]:
    """A Cluster that names the parts of another one."""
    made = manifest.cluster(of)
    made["metadata"]["name"] = name
    return made


@virtual
async def test_a_second_cluster_leaves_the_machines_of_the_first_alone_from_beginning_to_end() -> None:
    async with harness() as h:
        await h.create("one", 1, 1)
        await h.steady("one", 1, 1, "v1.30.0")
        machines = h.alive()
        await h.plane.have(rival("two", "one"))
        found = await h.until(Cluster, "two", says("InfrastructureReady", "belongs to Cluster one", status="False"))
        assert "belongs to Cluster one" in message(found, "ControlPlaneAvailable", "False")
        await h.delete(Cluster, "two")
        await h.gone(Cluster, "two")
        await h.plane.settle(quiet=60)
        assert h.alive() == machines
        await h.available("one")


@virtual
async def test_the_second_cluster_adopts_the_parts_once_they_belong_to_nobody() -> None:
    async with harness() as h:
        await h.plane.have(rival("two", "one"))
        await h.create("one", 1, 0)
        owner = await h.until(KubeadmControlPlane, "one-cp", lambda k: bool(k.metadata.owner_references))
        first = owner.metadata.owner_references[0].name
        other = {"one": "two", "two": "one"}[first]
        await h.until(Cluster, other, says("ControlPlaneAvailable", f"belongs to Cluster {first}"))
        await h.delete(Cluster, first)
        await h.gone(Cluster, first)
        await h.until(Cluster, other, says("ControlPlaneAvailable", "does not exist"))


@virtual
async def test_a_machine_does_not_use_or_delete_the_infrastructure_of_another() -> None:
    async with harness() as h:
        await h.create("one", 1, 1)
        await h.steady("one", 1, 1, "v1.30.0")
        (worker,) = [m for m in await h.machines() if "md-0" in m.metadata.name]
        machines = h.alive()
        spec = {
            "clusterName": "one",
            "bootstrap": {"dataSecretName": "none"},
            "infrastructureRef": {
                "apiGroup": generic.GROUP,
                "kind": "GenericMachine",
                "name": present(worker.spec.infrastructure_ref).name,
            },
        }
        thief = {
            "apiVersion": manifest.CLUSTER_API,
            "kind": "Machine",
            "metadata": {"name": "thief", "namespace": NAMESPACE},
            "spec": spec,
        }
        await h.plane.have(thief)
        text = f"belongs to Machine {worker.metadata.name}"
        found = await h.until(Machine, "thief", says("InfrastructureReady", text, status="False"))
        assert not found.spec.provider_id
        await h.delete(Machine, "thief")
        await h.gone(Machine, "thief")
        await h.plane.settle(quiet=60)
        assert h.alive() == machines


# -- owners that never come ------------------------------------------------------------------------------------------


def _alone(kind: str) -> list[dict[str, Any]]:
    """The objects of a manifest without its Cluster, as they are left when that was refused."""
    return [each for each in manifest.cluster_objects("one", 1, 1) if each["kind"] == kind]


@pytest.mark.parametrize("kind", [KubeadmControlPlane, MachineDeployment, generic.CLUSTER])
def test_what_never_had_a_cluster_can_be_deleted(kind: Any) -> None:
    resource = kind if kind is generic.CLUSTER else kind.__resource__

    @virtual
    async def run() -> None:
        async with harness() as h:
            (made,) = _alone(resource.kind)
            await h.plane.have(made)
            await h.plane.settle(quiet=30)
            await h.delete(kind, made["metadata"]["name"])
            await h.gone(kind, made["metadata"]["name"])

    run()


@virtual
async def test_a_control_plane_without_a_cluster_says_what_it_waits_for() -> None:
    async with harness() as h:
        await h.plane.have(*_alone("KubeadmControlPlane"))
        await h.until(KubeadmControlPlane, "one-cp", says("Available", "no Cluster refers to it", status="False"))


@virtual
async def test_a_machine_and_a_machine_set_without_a_cluster_can_be_deleted() -> None:
    async with harness() as h:
        reference = {"apiGroup": generic.GROUP, "kind": "GenericMachine", "name": "m"}
        machine = {"clusterName": "none", "bootstrap": {"dataSecretName": "d"}, "infrastructureRef": reference}
        await h.plane.have(
            {
                "apiVersion": manifest.CLUSTER_API,
                "kind": "Machine",
                "metadata": {"name": "m", "namespace": NAMESPACE},
                "spec": machine,
            },
            {
                "apiVersion": manifest.CLUSTER_API,
                "kind": "MachineSet",
                "metadata": {"name": "s", "namespace": NAMESPACE},
                "spec": {
                    "clusterName": "none",
                    "replicas": 1,
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": machine},
                },
            },
        )
        await h.plane.settle(quiet=30)
        for kind, name in ((Machine, "m"), (MachineSet, "s")):
            await h.delete(kind, name)
            await h.gone(kind, name)


@virtual
async def test_a_manifest_with_a_wrong_control_plane_reference_can_be_deleted_and_applied_again() -> None:
    async with harness() as h:
        objects = manifest.cluster_objects("one", 1, 1)
        objects[0]["spec"]["controlPlaneRef"]["name"] = "one-pc"
        await h.plane.have(*objects)
        await h.until(Cluster, "one", says("ControlPlaneAvailable", "KubeadmControlPlane one-pc does not exist"))
        for kind, name in ((Cluster, "one"), (KubeadmControlPlane, "one-cp"), (MachineDeployment, "one-md-0")):
            await h.delete(kind, name)
            await h.gone(kind, name)
        await h.plane.settle(quiet=60)
        kept = "GenericMachineTemplate"
        await h.plane.have(*(each for each in manifest.cluster_objects("one", 1, 0) if each["kind"] != kept))
        await h.available("one")


@virtual
async def test_a_cluster_takes_along_machines_whose_makers_were_deleted_without_them() -> None:
    async with harness() as h:
        await h.create("one", 1, 1)
        await h.steady("one", 1, 1, "v1.30.0")
        await h.plane.stop()
        (machine_set,) = (await h.client.list(MachineSet, Query())).items
        makers = ((MachineDeployment, "one-md-0"), (MachineSet, machine_set.metadata.name))
        for kind, name in (*makers, (KubeadmControlPlane, "one-cp")):
            await h.patch(kind, name, {"metadata": {"finalizers": None}})
            await h.delete(kind, name)
        for each in await h.machines():
            await h.patch(Machine, each.metadata.name, {"metadata": {"ownerReferences": None}})
        await h.restart()
        await h.delete(Cluster, "one")
        await h.gone(Cluster, "one")
        assert not h.infra.machines
