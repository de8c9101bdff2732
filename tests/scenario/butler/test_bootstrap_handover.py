"""The controllers start in the new management cluster after everything has moved there, however often that is killed."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homeport.api.butler.v1alpha1 import ButlerConfig, TenantCluster
from homeport.api.cluster.v1beta2 import Cluster
from homeport.app.kubernetes.handover import hand_over
from homeport.app.kubernetes.install import DEPLOYMENT
from homeport.app.kubernetes.layout import COMBINED
from homeport.app.kubernetes.plan import Plan
from homeport.app.kubernetes.workload import PodOptions
from homeport.app.object.inventory import publish_inventory
from homeport.app.platform import chosen
from homeport.client.errors import NotFound
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, Query
from homeport.runtime.testing import virtual
from scenario.butler.stage import Stage, butler, is_ready, tenants
from scenario.butler.test_bootstrap_pivot import movable, steps
from scenario.move.pair import Killed, Mortal

WRITES = frozenset({"create", "replace", "patch", "apply", "delete"})
KEY = Key(COMBINED.namespace, COMBINED.name)
SHOP = Key("default", "shop")
PLAN = Plan(chosen(), pod=PodOptions(image="mirror.example.com/homeport:test"))


async def attempt(stage: Stage, folder: Path, life: int) -> None:
    """What the command does after the cluster is ready; it is killed after so many writes."""
    left, said = [life], list[str]()
    work = steps(stage, folder, said, Mortal(stage.client, left, verbs=WRITES))
    await work.begin()
    async with HttpClient(work.target()) as target:
        mortal: Any = Mortal(target, left, verbs=WRITES)
        await work.pivot(mortal)
        await hand_over(stage.client, mortal, PLAN, said.append, 600, stage.site.clock)


def lives_of() -> Iterator[int]:
    """Writes until the next death: some while objects move, then more each time until the installation is finished."""
    return itertools.chain((4, 15, 30, 60), itertools.count(1, 6))


async def deployed(target: HttpClient) -> Any:
    try:
        return await target.get(DEPLOYMENT, KEY)
    except NotFound:
        return None


@pytest.mark.timeout(600)
def test_controllers_are_installed_once_everything_has_moved_though_every_step_is_killed() -> None:
    @virtual
    async def run() -> None:
        with tempfile.TemporaryDirectory() as name:
            async with tenants("harvester") as stage:
                folder, deaths, lives = Path(name), {"moving": 0, "installing": 0}, lives_of()
                await publish_inventory(stage.client, chosen().inventory())
                work = steps(stage, folder, [])
                await work.begin()
                await work.follow(1800)
                await work.save()
                async with HttpClient(work.target()) as target:
                    while True:
                        try:
                            await attempt(stage, folder, next(lives))
                            break
                        except Killed:
                            left = await movable(stage.client)
                        deaths["moving" if left else "installing"] += 1
                        # Never two sets of controllers for the same objects.
                        assert not left or await deployed(target) is None
                    assert min(deaths.values()) > 2, f"the faults did not strike: {deaths}"
                    found = await deployed(target)
                    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == PLAN.pod.image
                    assert found["status"]["availableReplicas"] == 2
                    before = await target.list(DEPLOYMENT, Query(namespace=KEY.namespace))
                    await attempt(stage, folder, 1000)  # once more changes nothing
                    after = await target.list(DEPLOYMENT, Query(namespace=KEY.namespace))
                    assert [each.metadata for each in after.items] == [each.metadata for each in before.items]

    run()


@pytest.mark.parametrize("provider", ["harvester", "nutanix"])
@pytest.mark.timeout(600)
def test_a_tenant_of_the_new_cluster_is_ready_without_another_command(provider: str) -> None:
    pool = {"harvester": "10.40.0.230-10.40.0.240", "nutanix": "10.0.0.230-10.0.0.240"}[provider]

    @virtual
    async def run() -> None:
        with tempfile.TemporaryDirectory() as name:
            async with tenants(provider) as stage:
                folder = Path(name)
                await publish_inventory(stage.client, chosen().inventory())
                work = steps(stage, folder, [])
                await work.begin()
                await work.follow(1800)
                await work.save()
                await attempt(stage, folder, 0)
                await stage.plane.stop()  # whatever happens now is done by the new cluster
                shop = stage.tenant("shop", controlPlane={"type": "standalone"}, workers={"replicas": 1})
                async with HttpClient(work.target()) as target:
                    config = butler("ButlerConfig", "butler", "", {"platform": {"metalLBPool": pool}})
                    await target.create(config, kind=ButlerConfig.__resource__)
                    await target.create(shop, kind=TenantCluster.__resource__)
                    async with asyncio.timeout(1800):
                        while not is_ready(await target.get(TenantCluster, SHOP)):  # noqa: ASYNC110
                            await asyncio.sleep(5)
                    assert len(await stage.vms()) == 3
                    await target.delete(TenantCluster, SHOP)
                    async with asyncio.timeout(1800):
                        while (await target.list(TenantCluster, Query())).items:  # noqa: ASYNC110
                            await asyncio.sleep(5)
                    assert await stage.vms() == ["mgmt-cp-0"]
                    assert [each.metadata.name for each in (await target.list(Cluster, Query())).items] == ["mgmt"]

    run()
