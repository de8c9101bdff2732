"""Caches that are behind by a random time: no Machine too many, none too few, at no moment."""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any

import pytest

from capikit import manifest
from capikit.yard import Yard, yard
from homeport.api.cluster.v1beta2 import MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from scenario.capi.census import Census, between
from scenario.capi.fault import Late

SEEDS = range(10 if os.environ.get("HOMEPORT_CAMPAIGN") else 1)


def late(seed: int, most: float) -> dict[str, Any]:
    rng = random.Random(seed)
    return {"wrap": lambda client: Late(client, rng, most), "pace": REALISTIC}


def rolling(surge: int, unavailable: int) -> dict[str, object]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


async def change_template(y: Yard, number: int, **spec: object) -> None:
    await y.plane.have(manifest.template(f"one-md-{number}"))
    template = {"spec": {"infrastructureRef": {"name": f"one-md-{number}"}}}
    await y.patch(MachineDeployment, "one-md-0", {"spec": {"template": template, **spec}})


async def at_rest(y: Yard, control_planes: int, workers: int, version: str = "v1.30.0") -> None:
    await y.steady("one", control_planes, workers, version, timeout=7200)
    await y.plane.settle(quiet=150)
    assert len(y.infra.machines) == control_planes + workers == len(await y.machines())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cluster_comes_up_and_changes_size_without_a_machine_too_many(seed: int) -> None:
    @virtual
    async def run() -> None:
        async with yard(**late(seed, 5.0)) as y:
            with Census(y) as census:
                census.rules = {"one-cp": between(0, 3), "one-md-0": between(0, 3)}
                await y.create("one", 3, 3)
                await at_rest(y, 3, 3)
                assert len(y.infra.created) == 6
                census.rules = {"one-cp": between(1, 3), "one-md-0": between(3, 6)}
                await y.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 6}})
                await y.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 1}})
                await at_rest(y, 1, 6)
                assert len(y.infra.created) == 9
                census.rules = {"one-cp": between(1, 3), "one-md-0": between(2, 6)}
                await y.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 2}})
                await y.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 3}})
                await at_rest(y, 3, 2)
                assert len(y.infra.created) == 11

    run()


@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1), (2, 1)])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_rollout_keeps_its_bounds_at_every_moment(seed: int, surge: int, unavailable: int) -> None:
    @virtual
    async def run() -> None:
        async with yard(**late(seed, 5.0)) as y:
            await y.create("one", 1, 4)
            await at_rest(y, 1, 4)
            with Census(y) as census:
                census.rules = {"one-md-0": between(4 - unavailable, 4 + surge)}
                await change_template(y, 1, rollout={"strategy": rolling(surge, unavailable)})
                await at_rest(y, 1, 4)
                assert len(y.infra.created) == 9
                assert census.most["one-md-0"] > 4 or not surge

    run()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rollout_that_is_scaled_and_changed_in_the_middle_keeps_its_bounds(seed: int) -> None:
    @virtual
    async def run() -> None:
        rng = random.Random(seed)
        async with yard(**late(seed, 5.0)) as y:
            await y.create("one", 1, 3)
            await at_rest(y, 1, 3)
            with Census(y) as census:
                census.rules = {"one-md-0": between(3, 4)}
                await change_template(y, 1)
                await asyncio.sleep(rng.uniform(20, 150))
                census.rules = {"one-md-0": between(3, 6)}
                await y.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 5}})
                await asyncio.sleep(rng.uniform(0, 150))
                await change_template(y, 2)
                await at_rest(y, 1, 5)
                census.rules = {"one-md-0": between(2, 6)}
                await change_template(y, 3, replicas=2)
                await at_rest(y, 1, 2)

    run()


@pytest.mark.parametrize("surge", [1, 0])
@pytest.mark.parametrize("seed", SEEDS)
def test_an_upgrade_of_the_control_plane_has_one_machine_too_many_at_most(seed: int, surge: int) -> None:
    @virtual
    async def run() -> None:
        async with yard(**late(seed, 5.0)) as y:
            await y.create("one", 3, 1)
            await at_rest(y, 3, 1)
            with Census(y) as census:
                # Without surge, a Machine may be seen to be healthy before it says that it is available.
                census.rules = {"one-cp": between(1 + surge, 3 + surge), "one-md-0": between(1, 2)}
                strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}
                await y.patch(
                    KubeadmControlPlane, "one-cp", {"spec": {"version": "v1.31.0", "rollout": {"strategy": strategy}}}
                )
                await at_rest(y, 3, 1, "v1.31.0")
                assert len(y.infra.created) == 7
                (workload,) = y.fleet.clusters()
                assert len(workload.etcd.members) == 3

    run()
