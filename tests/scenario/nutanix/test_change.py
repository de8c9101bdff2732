"""Clusters that change on Nutanix: more and fewer workers, other templates, newer versions of Kubernetes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from campaign import CAMPAIGN
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Query
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import NODE
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

NAME = "one"
DEPLOYMENT = f"{NAME}-md-0"
PLANE = f"{NAME}-kcp"
# As many as upstream's own tests have take a while: these are proven with the campaigns.
FEW, MANY = (10, 20) if CAMPAIGN else (3, 6)
NEWER = "v1.29.0"
NEWER_IMAGE = {"type": "name", "name": f"ubuntu-22.04-kube-{NEWER}"}


async def node_objects(site: Site) -> dict[str, Any]:
    (workload,) = site.fleet.clusters()
    return {each.name: each for each in (await workload.client().list(NODE)).items}


async def agree(site: Site, count: int) -> None:
    """VMs, Nodes and Machines are the same machines, each made once."""
    machines = {each.metadata.name: each for each in await site.list(Machine)}
    vms = {vm.name: vm for vm in site.vms()}
    found = await node_objects(site)
    assert len(machines) == count
    assert set(vms) == set(machines) == set(found)
    for name, machine in machines.items():
        assert machine.spec.provider_id == f"nutanix://{vms[name].ext_id}" == found[name]["spec"]["providerID"]
    assert len(set(site.created)) == len(site.created)


@virtual
async def test_workers_become_more_and_fewer_and_their_vms_with_them() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, FEW))
        await site.running(NAME, 1, FEW)
        await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": MANY}})
        await site.running(NAME, 1, MANY)
        await agree(site, 1 + MANY)
        await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": FEW}})
        await site.running(NAME, 1, FEW)
        await site.plane.settle(quiet=30)
        await agree(site, 1 + FEW)
        assert len(site.created) == 1 + MANY


@virtual
async def test_a_rollout_replaces_every_worker_and_taints_follow_without_one() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 2))
        await site.running(NAME, 1, 2)
        old = {vm.name for vm in site.vms() if "-md-" in vm.name}
        always = {"key": "team", "value": "blue", "effect": "NoSchedule", "propagation": "Always"}
        await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"template": {"spec": {"taints": [always]}}}})
        await site.plane.settle(quiet=30)
        assert {vm.name for vm in site.vms() if "-md-" in vm.name} == old  # a taint is no reason for new machines
        for name in old:
            assert "team" in _taints((await node_objects(site))[name])

        await site.have(manifest.template("bigger", manifest.machine_spec("32Gi")))
        first = {"key": "fresh", "effect": "PreferNoSchedule", "propagation": "OnInitialization"}
        spec = {"infrastructureRef": {"name": "bigger"}, "taints": [always, first]}
        await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"template": {"spec": spec}}})
        await site.until(
            MachineDeployment, DEPLOYMENT, lambda m: m.status.up_to_date_replicas == 2 == m.status.replicas
        )
        await site.running(NAME, 1, 2)
        await site.plane.settle(quiet=30)
        await agree(site, 3)
        fresh = {vm.name: vm for vm in site.vms() if "-md-" in vm.name}
        assert not set(fresh) & old
        assert {vm.memory_bytes >> 30 for vm in fresh.values()} == {32}
        nodes = await node_objects(site)
        assert all({"team", "fresh"} <= _taints(nodes[name]) for name in fresh)
        sets = await site.list(MachineSet)
        assert sorted(each.spec.replicas for each in sets) == [0, 2]

        await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"template": {"spec": {"taints": None}}}})
        await site.plane.settle(quiet=30)
        nodes = await node_objects(site)
        assert [_taints(nodes[name]) for name in fresh] == [{"fresh"}, {"fresh"}]  # that one was for their beginning


def _taints(node: Any) -> set[str]:
    return {each["key"] for each in (node.get("spec") or {}).get("taints") or ()}


@pytest.mark.parametrize(
    ("planes", "surge", "workers"), [(1, 1, 1), (3, 1, 0), (3, 0, 0)], ids=["single", "three", "one less first"]
)
def test_kubernetes_is_upgraded_from_another_image(planes: int, surge: int, workers: int) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site() as site:
            await site.have(*manifest.cluster_objects(NAME, planes, workers))
            await site.running(NAME, planes, workers)
            most = _watch_planes(site)
            for name in ("cp-newer", "worker-newer"):
                await site.have(manifest.template(name, manifest.machine_spec(image=NEWER_IMAGE)))
            rollout = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}}
            spec = {"infrastructureRef": {"name": "cp-newer"}}
            body = {"version": NEWER, "machineTemplate": {"spec": spec}, "rollout": rollout}
            await site.patch(KubeadmControlPlane, PLANE, {"spec": body})
            await _rolled_out(site, KubeadmControlPlane, PLANE, planes)
            assert max(most) == planes + surge
            if workers:
                worker = {"infrastructureRef": {"name": "worker-newer"}, "version": NEWER}
                await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"template": {"spec": worker}}})
                await _rolled_out(site, MachineDeployment, DEPLOYMENT, workers)
            await site.running(NAME, planes, workers)
            await site.plane.settle(quiet=30)
            await agree(site, planes + workers)
            nodes = await node_objects(site)
            assert {each["status"]["nodeInfo"]["kubeletVersion"] for each in nodes.values()} == {NEWER}
            (workload,) = site.fleet.clusters()
            assert len(workload.etcd.members) == planes

    run()


def _watch_planes(site: Site) -> list[int]:
    """How many VMs of control planes there were, at each request."""
    counts: list[int] = []
    told = site.prism.journal.on_entry

    def note(entry: Any) -> None:
        if told is not None:
            told(entry)
        counts.append(sum("-kcp-" in vm.name for vm in site.prism.world.vms))

    site.prism.journal.on_entry = note
    return counts


async def _rolled_out(site: Site, kind: Any, name: str, count: int) -> None:
    def done(obj: Any) -> bool:
        status = obj.status
        counts = {status.up_to_date_replicas, status.replicas, status.ready_replicas}
        return status.observed_generation == obj.metadata.generation and counts == {count}

    await site.until(kind, name, done, what=f"{count} machines as they are wanted")


class Watcher:
    """Notes every state in which a Cluster or its control plane does not say that it works."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.wrong: list[str] = []

    async def run(self, kind: Any) -> None:
        began = self._site.plane.clock.now()
        async with self._site.client.watch(kind, Query(namespace="default"), initial_events=True) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    now = self._site.plane.clock.now() - began
                    self.wrong += [f"{now:.1f} s: {kind.__name__} {each}" for each in _trouble(event.object)]


def _trouble(obj: Any) -> list[str]:
    said = [each for each in obj.status.conditions if each["type"] in ("Available", "ControlPlaneAvailable")]
    wrong = [f"{each['type']} {each['status']}: {each['message']}" for each in said if each["status"] != "True"]
    if isinstance(obj, KubeadmControlPlane) and not obj.status.ready_replicas:
        wrong.append("0 ready")
    return wrong


@virtual
async def test_a_cluster_is_available_all_the_time_while_its_control_plane_is_upgraded() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 3, 0))
        await site.running(NAME, 3)
        await site.until(Cluster, NAME, lambda c: not _trouble(c))
        await site.until(KubeadmControlPlane, PLANE, lambda k: not _trouble(k))
        watcher = Watcher(site)
        tasks = [asyncio.create_task(watcher.run(kind)) for kind in (Cluster, KubeadmControlPlane)]
        try:
            await site.patch(KubeadmControlPlane, PLANE, {"spec": {"version": NEWER}})
            await site.until(
                KubeadmControlPlane,
                PLANE,
                lambda k: [(v.version, v.replicas) for v in k.status.versions] == [(NEWER, 3)],
                timeout=3600,
            )
            await site.running(NAME, 3)
            await site.plane.settle(quiet=60)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert watcher.wrong == []
