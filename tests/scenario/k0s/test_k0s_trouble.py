"""Controllers break, and those who look after them are killed: etcd keeps its quorum, and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from campaign import CAMPAIGN
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.k0s.v1beta2 import K0sControlPlane
from homeport.capi.name import PRE_TERMINATE_KCP_CLEANUP, REMEDIATE_MACHINE
from homeport.runtime.manager import Manager
from homeport.runtime.testing import virtual
from scenario.capi.fault import Killer
from scenario.k0s import manifest
from scenario.k0s.test_k0s_control_plane import NEXT, PLANE, members, ready, says, until, upgraded, workload
from scenario.nutanix.site import SECRET, Site, nutanix_site

SEEDS = range(20) if CAMPAIGN else range(1)


class Quorum:
    """Looks at etcd ten times a second."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.lost: list[float] = []
        self.looks = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            for cluster in self._site.fleet.clusters():
                if cluster.etcd.members and cluster.initialized:
                    self.looks += 1
                    if not cluster.etcd.elect():
                        self.lost.append(self._site.clock.now())


@asynccontextmanager
async def quorum_kept(site: Site) -> AsyncIterator[None]:
    quorum = Quorum(site)
    task = asyncio.create_task(quorum.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert quorum.looks > 3
    assert not quorum.lost


def power_off(site: Site, name: str) -> None:
    (vm,) = [each for each in site.vms() if each.name == name]
    site.prism.power.off(vm.ext_id)


async def controllers(site: Site) -> list[str]:
    return sorted(each.metadata.name for each in await site.list(Machine))


@virtual
async def test_a_broken_controller_is_replaced() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        async with quorum_kept(site):
            broken = (await controllers(site))[0]
            power_off(site, broken)
            await site.patch(Machine, broken, {"metadata": {"annotations": {REMEDIATE_MACHINE: ""}}})
            await site.gone(Machine, broken, 1800)
            await ready(site, 3)
        assert broken not in members(site)
        assert members(site) == set(await controllers(site))


@virtual
async def test_a_controller_is_not_replaced_when_that_would_cost_the_quorum() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        first, second, _ = await controllers(site)
        power_off(site, second)
        await site.condition(Machine, second, "InfrastructureReady", "False", timeout=300)
        await site.patch(Machine, first, {"metadata": {"annotations": {REMEDIATE_MACHINE: ""}}})
        await until(site, says("Remediating", "True", "RemediationDeferred", second), "it waits")
        await asyncio.sleep(600)
        assert len(members(site)) == 3
        assert len(await controllers(site)) == 3


@virtual
async def test_a_sick_controller_goes_first_when_the_control_plane_is_scaled_down() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        _, second, _ = await controllers(site)
        power_off(site, second)
        await site.condition(Machine, second, "InfrastructureReady", "False", timeout=300)
        async with quorum_kept(site):
            await site.patch(K0sControlPlane, PLANE, {"spec": {"replicas": 1}})
            await ready(site, 1, 3600)
        assert second not in members(site)


@virtual
async def test_a_machine_that_a_user_deletes_leaves_etcd_and_is_replaced() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        async with quorum_kept(site):
            gone = (await controllers(site))[1]
            await site.delete(Machine, gone)
            await site.gone(Machine, gone, 1800)
            assert gone not in members(site)
            await ready(site, 3)
        assert members(site) == set(await controllers(site))


def health_check() -> dict[str, Any]:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "check", "namespace": "default"},
        "spec": {
            "clusterName": "one",
            "selector": {"matchLabels": {"cluster.x-k8s.io/control-plane": ""}},
            "checks": {"nodeStartupTimeoutSeconds": 60},
        },
    }


@virtual
async def test_controllers_without_a_node_are_not_replaced_for_that() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        before = await controllers(site)
        await site.have(health_check())
        for name in before:
            await site.condition(Machine, name, "HealthCheckSucceeded", "False", timeout=900)
        await asyncio.sleep(600)
        assert await controllers(site) == before
        await ready(site, 3)


@virtual
async def test_labels_and_the_hook_of_machines_are_kept() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 1))
        await ready(site, 1)
        (name,) = await controllers(site)
        await site.patch(Machine, name, {"metadata": {"annotations": {PRE_TERMINATE_KCP_CLEANUP: None}}})
        template = {"machineTemplate": {"metadata": {"labels": {"tier": "control"}}}}
        await site.patch(K0sControlPlane, PLANE, {"spec": template})
        await site.until(
            Machine,
            name,
            lambda m: (
                m.metadata.labels.get("tier") == "control" and PRE_TERMINATE_KCP_CLEANUP in m.metadata.annotations
            ),
            what="label and hook",
        )


@virtual
async def test_a_kubeconfig_that_is_deleted_comes_back() -> None:
    async with nutanix_site() as site:
        spec: dict[str, Any] = {"kubeconfigSecretMetadata": {"labels": {"team": "a"}}}
        await site.have(*manifest.standalone("one", 1, **spec))
        await ready(site, 1)
        old = await site.get(SECRET, "one-kubeconfig")
        assert old.metadata["labels"]["team"] == "a"
        await site.delete(SECRET, "one-kubeconfig")
        await site.until(SECRET, "one-kubeconfig", lambda s: s.uid != old.uid, 60, what="another kubeconfig")


@virtual
async def test_a_restart_continues_where_the_controllers_were() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        for _ in range(8):
            await asyncio.sleep(7)
            await site.restart()
        await ready(site, 3)
        assert len(site.created) == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_controllers_that_are_killed_between_writes_never_cost_the_quorum(seed: int) -> None:
    rng = random.Random(seed)

    @virtual
    async def run() -> None:
        killer = Killer(lambda: rng.randint(2, 40))
        async with nutanix_site(start=False, seed=seed) as site:
            await begin(site, killer)
            await site.have(*manifest.standalone("one", 3, updateStrategy=rng.choice(["InPlace", "Recreate"])))
            await mortal(site, killer)
            await ready(site, 3, 3600)
            assert len(site.created) == 3, "a VM was made twice"
            async with quorum_kept(site):
                await site.patch(K0sControlPlane, PLANE, {"spec": {"version": NEXT}})
                await mortal(site, killer)
                await upgraded(site, NEXT, 3)
                await site.patch(K0sControlPlane, PLANE, {"spec": {"replicas": 1}})
                await mortal(site, killer)
                await ready(site, 1, 3600)
            assert members(site) == set(await controllers(site))
            assert workload(site).etcd.elect()
            await site.delete(Cluster, "one")
            await mortal(site, killer)
            await site.gone(Cluster, "one", 3600)
            await site.empty("one")
            assert killer.kills > 5, "the faults did not strike"

    run()


async def begin(site: Site, killer: Killer) -> None:
    site.plane.manager = Manager(killer.wrap(site.plane.server.client()), clock=site.clock)
    site.install(site.plane.manager)
    await site.plane.start()


async def mortal(site: Site, killer: Killer) -> None:
    while await killer.death(within=180.0):
        await site.plane.stop()
        await begin(site, killer)
