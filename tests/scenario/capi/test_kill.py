"""Controllers are killed at any point, also between two writes of one loop: the end is as if nothing had happened."""

from __future__ import annotations

import asyncio
import functools
import random

import pytest

from campaign import sample
from capikit.harness import Harness, harness
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from scenario.capi.census import Census, between
from scenario.capi.fault import Killer
from scenario.capi.shape import difference, shape

# `make campaign` runs all of them.
SEEDS = sample(range(10), 1)
QUIET = 150.0  # no write for so long: the end


@functools.cache
def undisturbed(version: str) -> dict[str, int]:
    @virtual
    async def run() -> dict[str, int]:
        async with harness(pace=REALISTIC) as h:
            await h.create("one", 3, 2)
            await end(h, "v1.30.0")
            if version != "v1.30.0":
                await upgrade(h, version)
                await end(h, version)
            return shape(h)

    return run()


async def upgrade(h: Harness, version: str) -> None:
    await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"version": version}})
    await h.patch(MachineDeployment, "one-md-0", {"spec": {"template": {"spec": {"version": version}}}})


async def end(h: Harness, version: str) -> None:
    await h.steady("one", 3, 2, version, timeout=7200)
    await h.plane.settle(quiet=QUIET)


async def live_and_die(h: Harness, killer: Killer) -> None:
    """Until nobody has died for long: then there was nothing left to write."""
    while await killer.death(within=QUIET):
        await h.restart()


async def same_end(h: Harness, version: str, machines: int = 5) -> None:
    await end(h, version)
    assert len(await h.machines()) == 5 == len(h.infra.machines)
    assert len(h.infra.created) == machines
    assert difference(shape(h), undisturbed(version)) == ""


@pytest.fixture(autouse=True)
def known_end() -> None:
    """Found out beforehand: no loop can run within another."""
    undisturbed("v1.30.0")
    undisturbed("v1.31.0")


@pytest.mark.parametrize("seed", SEEDS)
def test_controllers_killed_at_random_moments_change_nothing_about_the_end(seed: int) -> None:
    """20 kills each."""

    @virtual
    async def run() -> None:
        rng = random.Random(seed)
        async with harness(pace=REALISTIC) as h:
            with Census(h) as census:
                census.rules = {"one-cp": between(0, 3), "one-md-0": between(0, 2)}
                await h.create("one", 3, 2)
                for _ in range(20):
                    await asyncio.sleep(rng.expovariate(1 / 8))
                    await h.restart()
                await same_end(h, "v1.30.0")

    run()


def test_controllers_that_never_live_longer_than_one_write_make_the_same_cluster() -> None:
    """Killed after the first write of all, then after the second, and so on, until there is nothing left to write."""

    @virtual
    async def run() -> None:
        alive = True
        killer = Killer(lambda: 1 if alive else 0)
        async with harness(pace=REALISTIC, wrap=killer.wrap) as h:
            with Census(h) as census:
                census.rules = {"one-cp": between(0, 3), "one-md-0": between(0, 2)}
                await h.create("one", 3, 2)
                await live_and_die(h, killer)
                alive = False
                await h.restart()
                await same_end(h, "v1.30.0")
            assert killer.kills > 60

    run()


@pytest.mark.parametrize("seed", SEEDS)
def test_controllers_killed_after_some_writes_upgrade_the_cluster_all_the_same(seed: int) -> None:
    @virtual
    async def run() -> None:
        rng = random.Random(seed)
        lives = [0]
        killer = Killer(lambda: lives.pop() if lives else 0)
        async with harness(pace=REALISTIC, wrap=killer.wrap) as h:
            await h.create("one", 3, 2)
            await end(h, "v1.30.0")
            lives = [rng.randint(1, 15) for _ in range(20)]
            await h.restart()
            with Census(h) as census:
                census.rules = {"one-cp": between(2, 4), "one-md-0": between(2, 3)}
                await upgrade(h, "v1.31.0")
                await live_and_die(h, killer)
                await same_end(h, "v1.31.0", machines=10)
            assert killer.kills == 20

    run()


@pytest.mark.parametrize("seed", SEEDS)
def test_controllers_killed_after_some_writes_delete_the_cluster_all_the_same(seed: int) -> None:
    @virtual
    async def run() -> None:
        rng = random.Random(seed)
        lives = [0]
        killer = Killer(lambda: lives.pop() if lives else 0)
        async with harness(pace=REALISTIC, wrap=killer.wrap) as h:
            await h.create("one", 3, 2)
            await asyncio.sleep(rng.uniform(0, 300))
            lives = [rng.randint(1, 5) for _ in range(15)]
            await h.restart()
            await h.delete(Cluster, "one")
            await live_and_die(h, killer)
            await h.gone(Cluster, "one", timeout=3600)
            await h.plane.settle(quiet=30)
            assert not shape(h)
            assert not h.infra.machines
            assert not h.infra.balancers
            assert killer.kills > 5

    run()
