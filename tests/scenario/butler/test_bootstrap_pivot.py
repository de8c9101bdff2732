"""The pivot: a plane moves everything into the management cluster that it made, and steps back."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from homeport.api.butler.v1alpha1 import ClusterBootstrap, MachineRequest, ProviderConfig
from homeport.api.cluster.v1beta2 import Cluster
from homeport.app.kubernetes.bootstrap import Bootstrap, Files
from homeport.app.object.inventory import publish_inventory
from homeport.app.plane.standby import Standby
from homeport.app.platform import chosen
from homeport.client.errors import NotFound
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, Query
from homeport.machinery import condition
from homeport.move.discovery import discover, discover_kinds
from homeport.platforms.butler.bootstrap.file import read_bootstrap_file
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from homeport.runtime.testing import virtual
from scenario.butler.management import MGMT, bootstrap
from scenario.butler.stage import SECRET, Stage, tenants
from scenario.move.pair import Killed, Mortal

NAMES = ["mgmt-cp-0"]


def refused(path: str) -> str:
    raise OSError(path)


def steps(stage: Stage, folder: Path, said: list[str], client: Any = None) -> Bootstrap:
    objects = [stage.secret(), stage.config(), bootstrap(stage, single=True)]
    text = "---\n".join(json.dumps(each) + "\n" for each in objects).encode()
    file = read_bootstrap_file(text, "mgmt.yaml", refused)
    return Bootstrap(client or stage.client, file, Files.of(folder, "mgmt"), said.append, stage.site.clock)


async def attempt(stage: Stage, folder: Path, said: list[str], life: int = 0) -> None:
    """What the command does. `life`: after so many writes it is killed."""
    left = [life]
    work = steps(stage, folder, said, Mortal(stage.client, left) if life else None)
    mark = await work.begin()
    if not mark:
        await work.follow(1800)
        await work.save()
    async with HttpClient(work.target()) as target:
        await work.pivot(Mortal(target, left) if life else target)


async def movable(client: Any) -> set[str]:
    kinds = await discover_kinds(client, None)
    return {str(node) for node in (await discover(client, kinds)).selection().nodes}


async def check_one_side(stage: Stage, target: Any) -> None:
    """No Cluster is active on both sides, and no machine is lost."""
    here = {each.metadata.name: each for each in (await stage.client.list(Cluster, Query())).items}
    there = {each.metadata.name: each for each in (await target.list(Cluster, Query())).items}
    assert {*here, *there} == {"mgmt"}
    if "mgmt" in here and "mgmt" in there:
        assert here["mgmt"].spec.paused or there["mgmt"].spec.paused
    requests = [*(await stage.client.list(MachineRequest, Query())).items]
    requests += (await target.list(MachineRequest, Query())).items
    assert {each.metadata.name for each in requests} == set(NAMES)


@pytest.mark.parametrize("provider", ["harvester", "nutanix"])
@pytest.mark.timeout(600)
def test_a_pivot_that_is_killed_at_every_step_ends_with_one_active_side_and_nothing_lost(provider: str) -> None:
    @virtual
    async def run() -> None:
        with tempfile.TemporaryDirectory() as name:
            async with tenants(provider) as stage:
                folder, said, deaths = Path(name), list[str](), 0
                lives = itertools.cycle((1, 2, 7, 5, 13, 3, 9, 23))  # writes until the next death
                await publish_inventory(stage.client, chosen().inventory())
                work = steps(stage, folder, said)
                await work.begin()
                await work.follow(1800)
                await work.save()
                before, vms = await movable(stage.client), await stage.vms()
                assert {"Cluster butler-system/mgmt", "ProviderConfig butler-system/site"} <= before
                async with HttpClient(work.target()) as target:
                    while True:
                        try:
                            await attempt(stage, folder, said, next(lives))
                            break
                        except Killed:
                            deaths += 1
                        await check_one_side(stage, target)
                        if deaths % 5 == 0:
                            await stage.restart()
                    assert deaths > 5
                    assert await movable(stage.client) == set()
                    assert await movable(target) == before
                    cluster = await target.get(Cluster, Key(SYSTEM_NAMESPACE, "mgmt"))
                    assert not cluster.spec.paused
                    assert cluster.metadata.owner_references == []
                    bundle = await target.get(SECRET, Key(SYSTEM_NAMESPACE, "mgmt-talos"))
                    assert bundle["data"]["secrets.yaml"]
                    await target.get(ProviderConfig, Key(SYSTEM_NAMESPACE, "site"))
                    stays = await stage.client.get(ClusterBootstrap, MGMT)
                    assert stays.status.phase == "Ready"
                    assert condition.is_true(stays.status.conditions, "Pivoted")
                    standby = Standby(stage.client)
                    watching = asyncio.create_task(standby.run())
                    await standby.closed()
                    watching.cancel()
                    # Nothing is made again, even if the controllers of the plane ran on.
                    await stage.plane.settle(600)
                    assert await stage.vms() == vms
                    with pytest.raises(NotFound):
                        await stage.client.get(MachineRequest, Key(SYSTEM_NAMESPACE, "mgmt-cp-0"))
                    await attempt(stage, folder, said)  # once more: it is done already

    run()
