"""Pause and resume: of the whole Cluster, and of single objects; and what is managed by somebody else."""

from __future__ import annotations

import asyncio

import pytest

from campaign import sample
from capikit import generic, manifest
from capikit.harness import harness
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from scenario.capi.census import Census, between
from scenario.capi.look import says, workers

PAUSE = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": "true"}}}
RESUME = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": None}}}


@pytest.mark.parametrize("moment", sample([1.0, 30.0, 70.0, 130.0, 200.0], 2))
def test_an_upgrade_stands_still_while_the_cluster_is_paused(moment: float) -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 2)
            await h.steady("one", 1, 2, "v1.30.0")
            h.fleet.pace = REALISTIC
            await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"version": "v1.31.0"}})
            await h.patch(MachineDeployment, "one-md-0", {"spec": {"template": {"spec": {"version": "v1.31.0"}}}})
            await asyncio.sleep(moment)
            await h.patch(Cluster, "one", {"spec": {"paused": True}})
            await h.plane.settle(quiet=120)
            made, alive = len(h.infra.created), dict(h.alive())
            await asyncio.sleep(900)
            assert (len(h.infra.created), h.alive()) == (made, alive)
            for kind, name in ((Cluster, "one"), (KubeadmControlPlane, "one-cp"), (MachineDeployment, "one-md-0")):
                await h.until(kind, name, says("Paused", status="True"), timeout=1)
            await h.patch(Cluster, "one", {"spec": {"paused": False}})
            await h.steady("one", 1, 2, "v1.31.0")
            await h.plane.settle(quiet=60)
            assert len(h.infra.created) == 6

    run()


@pytest.mark.parametrize(("kind", "name"), [(KubeadmControlPlane, "one-cp"), (MachineDeployment, "one-md-0")])
def test_one_object_may_be_paused_by_itself(kind: type, name: str) -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 1)
            await h.steady("one", 1, 1, "v1.30.0")
            await h.patch(kind, name, PAUSE)
            await h.until(kind, name, says("Paused", "cluster.x-k8s.io/paused", status="True"))
            await h.patch(kind, name, {"spec": {"replicas": 3}})
            await asyncio.sleep(900)
            assert len(h.infra.created) == 2
            await h.patch(kind, name, RESUME)
            planes, others = (3, 1) if kind is KubeadmControlPlane else (1, 3)
            await h.steady("one", planes, others, "v1.30.0")

    run()


def test_a_paused_machine_is_not_deleted_until_it_is_resumed() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 1)
            await h.steady("one", 1, 1, "v1.30.0")
            (worker,) = await workers(h)
            await h.patch(Machine, worker.metadata.name, PAUSE)
            await h.delete(Machine, worker.metadata.name)
            await asyncio.sleep(900)
            assert worker.metadata.name in h.alive().values()
            await h.patch(Machine, worker.metadata.name, RESUME)
            await h.gone(Machine, worker.metadata.name)
            await h.steady("one", 1, 1, "v1.30.0")

    run()


def test_the_machine_that_was_marked_goes_first() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 3, 3)
            await h.steady("one", 3, 3, "v1.30.0")
            marked = []
            for label in ("cluster.x-k8s.io/control-plane-name", "cluster.x-k8s.io/deployment-name"):
                machine = [m for m in await h.machines() if label in m.metadata.labels][1]
                mark = {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": "yes"}}}
                await h.patch(Machine, machine.metadata.name, mark)
                marked.append(machine.metadata.name)
            with Census(h) as census:
                census.rules = {"one-cp": between(1, 3), "one-md-0": between(2, 3)}
                await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 1}})
                await h.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 2}})
                for name in marked:
                    await h.gone(Machine, name)
                await h.steady("one", 1, 2, "v1.30.0")
            assert len(h.infra.created) == 6

    run()


def test_infrastructure_that_somebody_else_manages_is_taken_as_it_is() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            address = h.infra.hold_endpoint("default", "one", "", 6443)
            objects = manifest.cluster_objects("one", 1, 0)
            await h.plane.have(
                *[each for each in objects if each["kind"] != "GenericCluster"],
                {
                    "apiVersion": f"{generic.GROUP}/v1",
                    "kind": "GenericCluster",
                    "metadata": {"name": "one", "annotations": {"cluster.x-k8s.io/managed-by": "terraform"}},
                    "spec": {"controlPlaneEndpoint": {"host": address, "port": 6443}},
                },
            )
            await h.plane.settle(quiet=60)
            assert not h.infra.created
            provisioned = {"status": {"initialization": {"provisioned": True}}}
            from homeport.client.protocol import MergePatch

            await h.client.patch(generic.CLUSTER, Key("default", "one"), MergePatch(provisioned), subresource="status")
            await h.steady("one", 1, 0, "v1.30.0")

    run()
