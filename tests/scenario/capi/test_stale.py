"""Caches that are behind by a random time: no Machine too many, none too few, at no moment."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from campaign import CAMPAIGN
from capikit import manifest
from capikit.harness import Harness, harness
from homeport.api.cluster.v1beta2 import MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from scenario.capi.census import Census, between
from scenario.capi.fault import Late

SEEDS = range(10 if CAMPAIGN else 1)


def late(seed: int, most: float) -> dict[str, Any]:
    rng = random.Random(seed)
    return {"wrap": lambda client: Late(client, rng, most), "pace": REALISTIC}


def rolling(surge: int, unavailable: int) -> dict[str, object]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


async def change_template(h: Harness, number: int, **spec: object) -> None:
    await h.plane.have(manifest.template(f"one-md-{number}"))
    template = {"spec": {"infrastructureRef": {"name": f"one-md-{number}"}}}
    await h.patch(MachineDeployment, "one-md-0", {"spec": {"template": template, **spec}})


async def at_rest(h: Harness, control_planes: int, workers: int, version: str = "v1.30.0") -> None:
    await h.steady("one", control_planes, workers, version, timeout=7200)
    await h.plane.settle(quiet=150)
    assert len(h.infra.machines) == control_planes + workers == len(await h.machines())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cluster_comes_up_and_changes_size_without_a_machine_too_many(seed: int) -> None:
    @virtual
    async def run() -> None:
        async with harness(**late(seed, 5.0)) as h:
            with Census(h) as census:
                census.rules = {"one-cp": between(0, 3), "one-md-0": between(0, 3)}
                await h.create("one", 3, 3)
                await at_rest(h, 3, 3)
                assert len(h.infra.created) == 6
                census.rules = {"one-cp": between(1, 3), "one-md-0": between(3, 6)}
                await h.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 6}})
                await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 1}})
                await at_rest(h, 1, 6)
                assert len(h.infra.created) == 9
                census.rules = {"one-cp": between(1, 3), "one-md-0": between(2, 6)}
                await h.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 2}})
                await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 3}})
                await at_rest(h, 3, 2)
                assert len(h.infra.created) == 11

    run()


@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1), (2, 1)])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_rollout_keeps_its_bounds_at_every_moment(seed: int, surge: int, unavailable: int) -> None:
    @virtual
    async def run() -> None:
        async with harness(**late(seed, 5.0)) as h:
            await h.create("one", 1, 4)
            await at_rest(h, 1, 4)
            with Census(h) as census:
                census.rules = {"one-md-0": between(4 - unavailable, 4 + surge)}
                await change_template(h, 1, rollout={"strategy": rolling(surge, unavailable)})
                await at_rest(h, 1, 4)
                assert len(h.infra.created) == 9
                assert census.most["one-md-0"] > 4 or not surge

    run()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rollout_that_is_scaled_and_changed_in_the_middle_keeps_its_bounds(seed: int) -> None:
    @virtual
    async def run() -> None:
        rng = random.Random(seed)
        async with harness(**late(seed, 5.0)) as h:
            await h.create("one", 1, 3)
            await at_rest(h, 1, 3)
            with Census(h) as census:
                census.rules = {"one-md-0": between(3, 4)}
                await change_template(h, 1)
                await asyncio.sleep(rng.uniform(20, 150))
                census.rules = {"one-md-0": between(3, 6)}
                await h.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 5}})
                await asyncio.sleep(rng.uniform(0, 150))
                await change_template(h, 2)
                await at_rest(h, 1, 5)
                census.rules = {"one-md-0": between(2, 6)}
                await change_template(h, 3, replicas=2)
                await at_rest(h, 1, 2)

    run()


@pytest.mark.parametrize("surge", [1, 0])
@pytest.mark.parametrize("seed", SEEDS)
def test_an_upgrade_of_the_control_plane_has_one_machine_too_many_at_most(seed: int, surge: int) -> None:
    @virtual
    async def run() -> None:
        async with harness(**late(seed, 5.0)) as h:
            await h.create("one", 3, 1)
            await at_rest(h, 3, 1)
            with Census(h) as census:
                # Without surge, a Machine may be seen to be healthy before it says that it is available.
                census.rules = {"one-cp": between(1 + surge, 3 + surge), "one-md-0": between(1, 2)}
                strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}
                await h.patch(
                    KubeadmControlPlane, "one-cp", {"spec": {"version": "v1.31.0", "rollout": {"strategy": strategy}}}
                )
                await at_rest(h, 3, 1, "v1.31.0")
                assert len(h.infra.created) == 7
                (workload,) = h.fleet.clusters()
                assert len(workload.etcd.members) == 3

    run()
