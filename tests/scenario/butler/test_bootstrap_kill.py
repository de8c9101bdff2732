"""A management cluster whose controllers are killed after some of their writes, again and again."""

from __future__ import annotations

import random

import pytest

from campaign import CAMPAIGN
from homeport.api.butler.v1alpha1 import ClusterBootstrap
from homeport.runtime.testing import virtual
from scenario.butler.management import MGMT, bootstrap, bootstrapped, consoles
from scenario.butler.stage import tenants
from scenario.butler.test_bootstrap_trouble import OFF
from scenario.capi.fault import Killer

SEEDS = range(8) if CAMPAIGN else range(1)


@pytest.mark.parametrize("provider", ["harvester", "nutanix"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.timeout(600)
def test_controllers_that_die_between_writes_make_one_cluster(seed: int, provider: str) -> None:
    rng = random.Random(seed)

    @virtual
    async def run() -> None:
        killer = Killer(lambda: rng.randint(1, 25))
        async with tenants(provider, wrap=killer.wrap) as stage:
            await stage.have(bootstrap(stage, addons=OFF))
            while await killer.death(within=120.0):
                await stage.restart()
            await bootstrapped(stage)
            started = sum(text.count("bootstrap request received") for text in consoles(stage).values())
            assert started == 1, "etcd was started twice"
            assert sorted(stage.site.created) == ["mgmt-cp-0", "mgmt-cp-1", "mgmt-cp-2"], "a VM was made twice"
            await stage.client.delete(ClusterBootstrap, MGMT)
            while await killer.death(within=120.0):
                await stage.restart()
            await stage.plane.gone(ClusterBootstrap, MGMT, 1800)
            assert await stage.vms() == []
            assert killer.kills > 4, "the faults did not strike"

    run()
