"""Objects that can't be read when the controllers start are not missing: nothing is made or removed in their place."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Object
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.apiserver.verb.write import encoder
from homeport.capi.name import CONTROL_PLANE_LABEL
from homeport.runtime.clock import rfc3339
from homeport.runtime.testing import virtual
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

NAME = "one"
PLANE, DEPLOYMENT = f"{NAME}-kcp", f"{NAME}-md-0"
WHILE = 600.0


async def rewrite(site: Site, kind: type[Object], name: str, spec: Any) -> Any:
    """Its spec as another program left it in the store, which no admission has looked at. Gives the one before."""
    store, resource = site.plane.server.store, kind.__resource__
    for bucket in store.buckets():
        for record in store.range(bucket):
            body = orjson.loads(record.value)
            if record.name == f"default/{name}" and body.get("kind") == resource.kind:
                before = body["spec"]
                body["spec"] = spec
                await store.put(bucket, record.name, encoder(body), expect=None)
                return before
    raise AssertionError(f"{resource.kind} {name} does not exist")


async def break_one(site: Site, kind: type[Object], *, control_plane: bool) -> tuple[str, Any]:
    """While no controller runs. Gives its name and its spec."""
    machines = await site.list(kind)
    name = min(m.metadata.name for m in machines if (CONTROL_PLANE_LABEL in m.metadata.labels) == control_plane)
    await site.plane.stop()
    before = await rewrite(site, kind, name, "not an object")
    await site.begin()
    return name, before


def vms(site: Site) -> set[str]:
    return {vm.name for vm in site.vms()}


@pytest.mark.parametrize("kind", [Machine, NutanixMachine], ids=lambda kind: kind.__name__)
def test_a_worker_that_can_not_be_read_is_not_replaced(kind: type[Object]) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site() as site:
            await site.have(*manifest.cluster_objects(NAME, 1, 2))
            await site.running(NAME, 1, 2)
            before = vms(site)
            name, spec = await break_one(site, kind, control_plane=False)
            await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": 3}})
            (owner,) = await site.list(MachineSet)
            words = (f"{kind.__name__} default/{name} can't be read", "mend it")
            await site.condition(MachineSet, owner.metadata.name, "ScalingUp", "True", *words)
            await asyncio.sleep(WHILE)
            assert vms(site) == before
            await rewrite(site, kind, name, spec)
            await site.running(NAME, 1, 3)
            assert before < vms(site)

    run()


@pytest.mark.parametrize("kind", [Machine, KubeadmConfig], ids=lambda kind: kind.__name__)
def test_a_control_plane_machine_that_can_not_be_read_is_not_replaced(kind: type[Object]) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site() as site:
            await site.have(*manifest.cluster_objects(NAME, 3, 0))
            await site.running(NAME, 3)
            before = vms(site)
            await asyncio.sleep(60)
            name, spec = await break_one(site, kind, control_plane=True)
            await site.patch(KubeadmControlPlane, PLANE, {"spec": {"rollout": {"after": rfc3339(site.clock.now())}}})
            words = (f"{kind.__name__} default/{name} can't be read", "mend it")
            rolling = "ScalingUp" if kind is Machine else "RollingOut"
            await site.condition(KubeadmControlPlane, PLANE, rolling, "True", *words)
            await asyncio.sleep(WHILE)
            assert vms(site) == before
            (workload,) = site.fleet.clusters()
            assert len(workload.etcd.members) == 3
            await rewrite(site, kind, name, spec)
            await site.until(KubeadmControlPlane, PLANE, lambda k: not vms(site) & before, 7200, what="rolled out")
            await site.running(NAME, 3)

    run()


@virtual
async def test_a_set_that_can_not_be_read_is_not_made_again() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        (owner,) = await site.list(MachineSet)
        await site.plane.stop()
        spec = await rewrite(site, MachineSet, owner.metadata.name, "not an object")
        await site.begin()
        words = (f"MachineSet default/{owner.metadata.name} can't be read", "mend it")
        await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": 2}})
        await site.condition(MachineDeployment, DEPLOYMENT, "ScalingUp", "True", *words)
        await asyncio.sleep(WHILE)
        await rewrite(site, MachineSet, owner.metadata.name, spec)
        await site.running(NAME, 1, 2)
        assert [each.metadata.name for each in await site.list(MachineSet)] == [owner.metadata.name]


@virtual
async def test_a_cluster_keeps_its_control_plane_until_workers_that_can_not_be_read_are_gone() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        name, spec = await break_one(site, Machine, control_plane=False)
        await site.delete(Cluster, NAME)
        await site.condition(Cluster, NAME, "Deleting", "True", f"Machine default/{name} can't be read", timeout=600)
        await asyncio.sleep(WHILE)
        assert name in vms(site)
        assert not (await site.get(KubeadmControlPlane, PLANE)).metadata.deletion_timestamp
        await rewrite(site, Machine, name, spec)
        await site.gone(Cluster, NAME, 3600)
        await site.empty(NAME)


@virtual
async def test_the_infrastructure_of_a_cluster_stays_while_a_machine_of_it_can_not_be_read() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        name, spec = await break_one(site, NutanixMachine, control_plane=True)
        await site.delete(NutanixCluster, NAME)
        words = ("UnreadableObjects", f"NutanixMachine default/{name} can't be read")
        await site.condition(NutanixCluster, NAME, "Ready", "False", *words, timeout=600)
        await asyncio.sleep(WHILE)
        assert name in vms(site)
        assert await site.list(NutanixCluster)
        await rewrite(site, NutanixMachine, name, spec)
