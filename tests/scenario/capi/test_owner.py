"""Objects have one owner, and can be deleted whether or not that owner ever comes."""

from __future__ import annotations

from typing import Any

import pytest

from capikit import generic, manifest
from capikit.yard import NAMESPACE, yard
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Query
from homeport.runtime.testing import virtual
from scenario.capi.look import message, says


def rival(name: str, of: str) -> dict[str, Any]:
    """A Cluster that names the parts of another one."""
    made = manifest.cluster(of)
    made["metadata"]["name"] = name
    return made


@virtual
async def test_a_second_cluster_leaves_the_machines_of_the_first_alone_from_beginning_to_end() -> None:
    async with yard() as y:
        await y.create("one", 1, 1)
        await y.steady("one", 1, 1, "v1.30.0")
        machines = y.alive()
        await y.plane.have(rival("two", "one"))
        found = await y.until(Cluster, "two", says("InfrastructureReady", "belongs to Cluster one", status="False"))
        assert "belongs to Cluster one" in message(found, "ControlPlaneAvailable", "False")
        await y.delete(Cluster, "two")
        await y.gone(Cluster, "two")
        await y.plane.settle(quiet=60)
        assert y.alive() == machines
        await y.available("one")


@virtual
async def test_the_second_cluster_adopts_the_parts_once_they_belong_to_nobody() -> None:
    async with yard() as y:
        await y.plane.have(rival("two", "one"))
        await y.create("one", 1, 0)
        owner = await y.until(KubeadmControlPlane, "one-cp", lambda k: bool(k.metadata.owner_references))
        first = owner.metadata.owner_references[0].name
        other = {"one": "two", "two": "one"}[first]
        await y.until(Cluster, other, says("ControlPlaneAvailable", f"belongs to Cluster {first}"))
        await y.delete(Cluster, first)
        await y.gone(Cluster, first)
        await y.until(Cluster, other, says("ControlPlaneAvailable", "does not exist"))


@virtual
async def test_a_machine_does_not_use_or_delete_the_infrastructure_of_another() -> None:
    async with yard() as y:
        await y.create("one", 1, 1)
        await y.steady("one", 1, 1, "v1.30.0")
        (worker,) = [m for m in await y.machines() if "md-0" in m.metadata.name]
        machines = y.alive()
        spec = {
            "clusterName": "one",
            "bootstrap": {"dataSecretName": "none"},
            "infrastructureRef": {
                "apiGroup": generic.GROUP,
                "kind": "GenericMachine",
                "name": worker.spec.infrastructure_ref.name,
            },
        }
        thief = {
            "apiVersion": manifest.CLUSTER_API,
            "kind": "Machine",
            "metadata": {"name": "thief", "namespace": NAMESPACE},
            "spec": spec,
        }
        await y.plane.have(thief)
        text = f"belongs to Machine {worker.metadata.name}"
        found = await y.until(Machine, "thief", says("InfrastructureReady", text, status="False"))
        assert not found.spec.provider_id
        await y.delete(Machine, "thief")
        await y.gone(Machine, "thief")
        await y.plane.settle(quiet=60)
        assert y.alive() == machines


# -- owners that never come ------------------------------------------------------------------------------------------


def _alone(kind: str) -> list[dict[str, Any]]:
    """The objects of a manifest without its Cluster, as they are left when that was refused."""
    return [each for each in manifest.whole("one", 1, 1) if each["kind"] == kind]


@pytest.mark.parametrize("kind", [KubeadmControlPlane, MachineDeployment, generic.CLUSTER])
def test_what_never_had_a_cluster_can_be_deleted(kind: Any) -> None:
    resource = kind if kind is generic.CLUSTER else kind.__resource__

    @virtual
    async def run() -> None:
        async with yard() as y:
            (made,) = _alone(resource.kind)
            await y.plane.have(made)
            await y.plane.settle(quiet=30)
            await y.delete(kind, made["metadata"]["name"])
            await y.gone(kind, made["metadata"]["name"])

    run()


@virtual
async def test_a_control_plane_without_a_cluster_says_what_it_waits_for() -> None:
    async with yard() as y:
        await y.plane.have(*_alone("KubeadmControlPlane"))
        await y.until(KubeadmControlPlane, "one-cp", says("Available", "no Cluster refers to it", status="False"))


@virtual
async def test_a_machine_and_a_machine_set_without_a_cluster_can_be_deleted() -> None:
    async with yard() as y:
        reference = {"apiGroup": generic.GROUP, "kind": "GenericMachine", "name": "m"}
        machine = {"clusterName": "none", "bootstrap": {"dataSecretName": "d"}, "infrastructureRef": reference}
        await y.plane.have(
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
        await y.plane.settle(quiet=30)
        for kind, name in ((Machine, "m"), (MachineSet, "s")):
            await y.delete(kind, name)
            await y.gone(kind, name)


@virtual
async def test_a_manifest_with_a_wrong_control_plane_reference_can_be_deleted_and_applied_again() -> None:
    async with yard() as y:
        objects = manifest.whole("one", 1, 1)
        objects[0]["spec"]["controlPlaneRef"]["name"] = "one-pc"
        await y.plane.have(*objects)
        await y.until(Cluster, "one", says("ControlPlaneAvailable", "KubeadmControlPlane one-pc does not exist"))
        for kind, name in ((Cluster, "one"), (KubeadmControlPlane, "one-cp"), (MachineDeployment, "one-md-0")):
            await y.delete(kind, name)
            await y.gone(kind, name)
        await y.plane.settle(quiet=60)
        kept = "GenericMachineTemplate"
        await y.plane.have(*(each for each in manifest.whole("one", 1, 0) if each["kind"] != kept))
        await y.available("one")


@virtual
async def test_a_cluster_takes_along_machines_whose_makers_were_deleted_without_them() -> None:
    async with yard() as y:
        await y.create("one", 1, 1)
        await y.steady("one", 1, 1, "v1.30.0")
        await y.plane.stop()
        (machine_set,) = (await y.client.list(MachineSet, Query())).items
        makers = ((MachineDeployment, "one-md-0"), (MachineSet, machine_set.metadata.name))
        for kind, name in (*makers, (KubeadmControlPlane, "one-cp")):
            await y.patch(kind, name, {"metadata": {"finalizers": None}})
            await y.delete(kind, name)
        for each in await y.machines():
            await y.patch(Machine, each.metadata.name, {"metadata": {"ownerReferences": None}})
        await y.restart()
        await y.delete(Cluster, "one")
        await y.gone(Cluster, "one")
        assert not y.infra.machines
