"""Kubernetes is upgraded on Harvester: every machine is replaced, and nothing of the old ones is left."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.kubevirt.v1alpha1 import KubevirtMachine
from homeport.providers.harvester.infracluster.resource import CLAIM, DATA_VOLUME, MACHINE_UID, SECRET, VM, VMI
from homeport.runtime.cache import labels_of
from homeport.runtime.testing import virtual
from homeport.sim.harvester.pace import Pace
from homeport.sim.harvester.world import WorldFile, WorldImage
from homeport.sim.machine.workload.kind import NODE
from scenario.harvester import manifest
from scenario.harvester.site import Site, harvester_site, world

NAME = "one"
PLANE = f"{NAME}-kcp"
DEPLOYMENT = f"{NAME}-md-0"
NEWER = "v1.31.0"
NEWER_IMAGE = f"ubuntu-22.04-kube-{NEWER}"
SLOW = Pace(bind=2.0, launch=4.0, start=2.0, agent=10.0, shutdown=4.0)


def two_images() -> WorldFile:
    found = world()
    newer = WorldImage(name=NEWER_IMAGE, size_bytes=2**31, virtual_size_bytes=10 * 2**30, os="ubuntu", agent=True)
    return msgspec.structs.replace(found, images=(*found.images, newer))


@pytest.mark.parametrize("restarts", [False, True], ids=["undisturbed", "with restarts"])
def test_an_upgrade_replaces_every_machine_and_leaves_nothing_of_the_old_ones(restarts: bool) -> None:
    @virtual
    async def run() -> None:
        async with harvester_site(world_file=two_images(), pace=SLOW) as site:
            await site.have(*manifest.cluster_objects(NAME, 3, 3))
            old = {each.metadata.name for each in await site.running(NAME, 3, 3)}
            await site.have(
                manifest.template("cp-newer", manifest.machine_spec(image=NEWER_IMAGE)),
                manifest.template("worker-newer", manifest.machine_spec("16Gi", image=NEWER_IMAGE)),
            )
            newer = {"version": NEWER, "machineTemplate": {"spec": {"infrastructureRef": {"name": "cp-newer"}}}}
            await site.patch(KubeadmControlPlane, PLANE, {"spec": newer})
            await rolled_out(site, KubeadmControlPlane, PLANE, restarts)
            worker = {"version": NEWER, "infrastructureRef": {"name": "worker-newer"}}
            await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"template": {"spec": worker}}})
            await rolled_out(site, MachineDeployment, DEPLOYMENT, restarts)
            new = {each.metadata.name for each in await site.running(NAME, 3, 3)}
            await site.plane.settle(quiet=60)
            assert len(new) == 6
            assert not new & old
            assert sorted(site.created) == sorted(new | old), "every VM was created once"
            await agree(site)
            await site.delete(Cluster, NAME)
            await site.gone(Cluster, NAME)
            await site.empty()

    run()


async def rolled_out(site: Site, kind: Any, name: str, restarts: bool) -> None:
    """Restarts hit VMs that are being created, and VMs that are being deleted."""
    if restarts:
        await interrupted(site, VM, lambda found: len(found) > 6)
        await interrupted(site, VM, lambda found: any(each.metadata.get("deletionTimestamp") for each in found))

    def done(obj: Any) -> bool:
        status = obj.status
        counts = {status.up_to_date_replicas, status.replicas, status.ready_replicas}
        return status.observed_generation == obj.metadata.generation and counts == {3}

    await site.until(kind, name, done, 3600, what="3 machines of the newer version")


async def interrupted(site: Site, kind: Any, state: Any) -> None:
    for _ in range(6000):
        if state(await site.there(kind)):
            return await site.restart()
        await asyncio.sleep(0.1)
    raise AssertionError("the moment for a restart did not come")


async def agree(site: Site) -> None:
    """Machines, Nodes and the objects on Harvester are those of the same six machines, all of the newer version."""
    machines = {each.metadata.name: each for each in await site.all(Machine)}
    uids = {each.metadata.name: each.metadata.uid for each in await site.all(KubevirtMachine)}
    assert set(uids) == set(machines)
    for kind in (VM, VMI):
        assert {each.name for each in await site.there(kind)} == set(machines), kind.kind
    for kind in (CLAIM, SECRET):
        owners = sorted(labels_of(each)[MACHINE_UID] for each in await site.there(kind))
        assert owners == sorted(uids.values()), kind.kind
    assert {labels_of(each)[MACHINE_UID] for each in await site.there(DATA_VOLUME)} <= set(uids.values())
    (workload,) = site.fleet.clusters()
    nodes = {each.name: each for each in (await workload.client().list(NODE)).items}
    assert set(nodes) == set(machines)
    assert {each["status"]["nodeInfo"]["kubeletVersion"] for each in nodes.values()} == {NEWER}
    for name, machine in machines.items():
        assert machine.spec.provider_id == nodes[name]["spec"]["providerID"]
    assert len(workload.etcd.members) == 3
