"""A whole life without trouble says nothing that sounds like trouble."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import QUICK, REALISTIC
from homeport.sim.machine.pace import Pace as MachinePace
from homeport.sim.prism.pace import INSTANT, REAL, Pace
from scenario.nutanix import cni, manifest
from scenario.nutanix.site import Site, nutanix_site
from scenario.nutanix.test_topology import NAME as PILOT
from scenario.nutanix.test_topology import Pilot

NAME = "my-nutanix-cluster"
NEW = "v1.29.0"


async def upgrade(site: Site, control_planes: int, workers: int) -> None:
    spec = manifest.machine_spec(image={"type": "name", "name": f"ubuntu-22.04-kube-{NEW}"})
    await site.have(manifest.template("new-cp", spec), manifest.template("new-worker", spec))
    template = {"spec": {"infrastructureRef": {"name": "new-cp"}}}
    await site.patch(KubeadmControlPlane, f"{NAME}-kcp", {"spec": {"version": NEW, "machineTemplate": template}})
    await site.until(KubeadmControlPlane, f"{NAME}-kcp", lambda k: settled(k, control_planes), 3600)
    machine = {"version": NEW, "infrastructureRef": {"name": "new-worker"}}
    await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"template": {"spec": machine}}})
    await site.until(MachineDeployment, f"{NAME}-md-0", lambda m: settled(m, workers), 3600)


def settled(obj: Any, replicas: int) -> bool:
    s = obj.status
    counted = (s.replicas, s.ready_replicas, s.available_replicas, s.up_to_date_replicas)
    return bool(counted == (replicas,) * 4 and (s.observed_generation or 0) >= obj.metadata.generation)


@pytest.mark.parametrize(("pace", "machine_pace"), [(INSTANT, QUICK), (REAL, REALISTIC)], ids=["quick", "real"])
def test_create_scale_upgrade_and_delete_emit_no_warning(pace: Pace, machine_pace: MachinePace) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site(pace=pace, machine_pace=machine_pace) as site:
            await site.have(manifest.secret(), *manifest.cluster_objects(NAME, 3, 2, with_secret=False))
            await site.running(NAME, 3, 2, timeout=3600)
            for replicas in (4, 2):
                await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"replicas": replicas}})
                await site.running(NAME, 3, replicas, timeout=3600)
            for replicas in (5, 3):
                await site.patch(KubeadmControlPlane, f"{NAME}-kcp", {"spec": {"replicas": replicas}})
                await site.until(KubeadmControlPlane, f"{NAME}-kcp", partial(settled, replicas=replicas), 3600)
            await upgrade(site, 3, 2)
            await site.delete(Cluster, NAME)
            await site.gone(Cluster, NAME, timeout=3600)
            assert await warnings(site) == []

    run()


async def warnings(site: Site) -> list[str]:
    found = [each for each in await site.events() if each.get("type") != "Normal"]
    return [f"{each.get('reason')}: {each.get('note')}" for each in found]


@virtual
async def test_a_cluster_whose_network_comes_with_a_resource_set_emits_no_warning() -> None:
    """In the order of one manifest in which the set comes before what it names."""
    async with nutanix_site(cni=False) as site:
        objects = manifest.cluster_objects(NAME, 1, 1, with_secret=False)
        for each in objects:
            if each["kind"] == "Cluster":
                each["metadata"]["labels"] = {cni.LABEL: "calico"}
        brought = cni.delivered("calico", cni.calico())
        brought.sort(key=lambda each: each["kind"] != "ClusterResourceSet")
        await site.have(manifest.secret(), *objects)
        for each in brought:
            await site.have(each)
            await asyncio.sleep(1)
        await site.running(NAME, 1, 1, timeout=3600)
        await site.patch(KubeadmControlPlane, f"{NAME}-kcp", {"spec": {"replicas": 3}})
        await site.until(KubeadmControlPlane, f"{NAME}-kcp", lambda k: settled(k, 3), 3600)
        assert await warnings(site) == []


@virtual
async def test_a_cluster_of_a_class_emits_no_warning() -> None:
    async with nutanix_site() as site:
        pilot = Pilot(site)
        await pilot.make(1, 1)
        await pilot.topology(controlPlane={"replicas": 3})
        await pilot.running(3, {"crew": 1})
        await pilot.topology(version="v1.30.0")
        await pilot.running(3, {"crew": 1}, "v1.30.0")
        await site.delete(Cluster, PILOT)
        await site.gone(Cluster, PILOT, timeout=3600)
        assert await warnings(site) == []


@virtual
async def test_a_resource_that_stays_away_is_a_warning() -> None:
    async with nutanix_site() as site:
        objects = manifest.cluster_objects(NAME, 1, 0, with_secret=False)
        for each in objects:
            if each["kind"] == "Cluster":
                each["metadata"]["labels"] = {cni.LABEL: "calico"}
        brought = [each for each in cni.delivered("calico", cni.calico()) if each["kind"] == "ClusterResourceSet"]
        await site.have(manifest.secret(), *objects, *brought)
        await asyncio.sleep(60)
        assert any("create it" in each for each in await warnings(site))
