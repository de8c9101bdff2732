"""Controllers are killed at any point, also between two writes: the topology ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import functools
import random
import re
from collections import Counter

import pytest

from campaign import CAMPAIGN
from capikit import blueprint
from capikit.blueprint import steady
from capikit.harness import Harness, harness
from homeport.api.cluster.v1beta2 import Cluster
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from scenario.capi.fault import Killer
from scenario.capi.shape import difference, shape
from scenario.topology.look import QUIET

# `make campaign` runs all of them.
KILLS = 25 if CAMPAIGN else 12
SEEDS = range(10 if CAMPAIGN else 1)
_HASH = re.compile(r'(one-(?:[abc]-)?|template-hash(?:": "|=))[bcdfghjklmnpqrstvwxz2456789]{8,10}\b')
WORKERS = {"a": 1, "b": 1}


def change() -> dict[str, object]:
    """A version and a variable at once, one deployment less and another more."""
    workers = [blueprint.deployment(name) for name in ("a", "c")]
    variables = [{"name": "image", "value": "debian"}]
    return {
        "spec": {"topology": {"version": "v1.31.0", "variables": variables, "workers": {"machineDeployments": workers}}}
    }


@functools.cache
def undisturbed(changed: bool) -> dict[str, int]:
    @virtual
    async def run() -> dict[str, int]:
        async with harness(pace=REALISTIC) as h:
            await begin(h)
            await end(h, WORKERS, "v1.30.0")
            if changed:
                await h.patch(Cluster, "one", change())
                await end(h, {"a": 1, "c": 1}, "v1.31.0")
            return drawn(h)

    return run()


def drawn(h: Harness) -> dict[str, int]:
    """What is there, without the hashes of names that are drawn, which are in names, too."""
    found: Counter[str] = Counter()
    for line, count in shape(h).items():
        found[_HASH.sub(r"\1HASH", line)] += count
    return dict(found)


async def begin(h: Harness) -> None:
    await h.plane.have(*blueprint.whole_class(), blueprint.topology("one", 1, WORKERS))


async def end(h: Harness, workers: dict[str, int], version: str) -> None:
    await steady(h, "one", 1, workers, version, timeout=7200)
    await h.plane.settle(quiet=QUIET)


async def live_and_die(h: Harness, killer: Killer) -> None:
    """Until nobody has died for long: then there was nothing left to write."""
    while await killer.death(within=QUIET):
        await h.restart()


@pytest.fixture(params=[False])
def known_end(request: pytest.FixtureRequest) -> dict[str, int]:
    """Found out beforehand: no loop can run within another."""
    return undisturbed(request.param)


@pytest.mark.skipif(not CAMPAIGN, reason="takes minutes; make campaign runs it")
def test_controllers_that_never_live_longer_than_one_write_make_the_same_cluster(known_end: dict[str, int]) -> None:
    @virtual
    async def run() -> None:
        alive = True
        killer = Killer(lambda: 1 if alive else 0)
        async with harness(pace=REALISTIC, wrap=killer.wrap) as h:
            await begin(h)
            await live_and_die(h, killer)
            alive = False
            await h.restart()
            await end(h, WORKERS, "v1.30.0")
            assert killer.kills > 60
            assert len(h.infra.created) == 3
            assert difference(drawn(h), known_end) == ""

    run()


@pytest.mark.parametrize("known_end", [True], indirect=True)
@pytest.mark.parametrize("seed", SEEDS)
def test_controllers_killed_after_some_writes_change_the_cluster_all_the_same(
    seed: int, known_end: dict[str, int]
) -> None:
    @virtual
    async def run() -> None:
        rng = random.Random(seed)
        lives = [0]
        killer = Killer(lambda: lives.pop() if lives else 0)
        async with harness(pace=REALISTIC, wrap=killer.wrap) as h:
            await begin(h)
            await end(h, WORKERS, "v1.30.0")
            lives = [rng.randint(1, 8) for _ in range(KILLS)]
            await h.restart()
            await h.patch(Cluster, "one", change())
            await live_and_die(h, killer)
            await end(h, {"a": 1, "c": 1}, "v1.31.0")
            # Every part was replaced once: the control plane, one of the workers; one is new.
            assert len(h.infra.created) == 6
            assert difference(drawn(h), known_end) == ""
            assert killer.kills == KILLS

    run()


@pytest.mark.parametrize("seed", SEEDS)
def test_controllers_killed_after_some_writes_delete_the_cluster_all_the_same(seed: int) -> None:
    @virtual
    async def run() -> None:
        rng = random.Random(seed)
        lives = [0]
        killer = Killer(lambda: lives.pop() if lives else 0)
        async with harness(pace=REALISTIC, wrap=killer.wrap) as h:
            await begin(h)
            await asyncio.sleep(rng.uniform(0, 2))
            lives = [rng.randint(1, 5) for _ in range(8)]
            await h.restart()
            await h.delete(Cluster, "one")
            await live_and_die(h, killer)
            await h.gone(Cluster, "one", timeout=3600)
            await h.plane.settle(quiet=30)
            kinds = {line.split()[0] for line in shape(h)}
            assert kinds == {
                "clusterclasses.cluster.x-k8s.io",
                "genericclustertemplates.infrastructure.example.com",
                "genericmachinetemplates.infrastructure.example.com",
                "kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io",
                "kubeadmcontrolplanetemplates.controlplane.cluster.x-k8s.io",
            }
            assert sum(shape(h).values()) == 6
            assert not h.infra.machines

    run()
