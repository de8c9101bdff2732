"""Whoever is killed while a control plane of k0s grows, is upgraded and shrinks: etcd never loses its quorum."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from campaign import sample
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.k0s.v1beta2 import K0sControlPlane
from homeport.runtime.manager import Manager
from homeport.runtime.testing import virtual
from scenario.capi.fault import Killer
from scenario.k0s import manifest
from scenario.k0s.quorum import quorum_kept
from scenario.k0s.test_k0s_control_plane import NEXT, PLANE, members, ready, upgraded, workload
from scenario.nutanix.site import Site, nutanix_site

SEEDS = sample(range(100), 2)
STRATEGIES = ("InPlace", "Recreate", "RecreateDeleteFirst")


async def begin(site: Site, killer: Killer) -> None:
    site.plane.manager = Manager(killer.wrap(site.plane.server.client()), clock=site.clock)
    site.install(site.plane.manager)
    await site.plane.start()


async def mortal(site: Site, killer: Killer) -> None:
    """Starts the manager again each time it is killed, until it has nothing to write for a while."""
    while await killer.death(within=180.0):
        await site.plane.stop()
        await begin(site, killer)


class Crash:
    """Power-cycles one VM of the control plane after the other, only while etcd can do without it."""

    def __init__(self, site: Site, rng: random.Random) -> None:
        self._site = site
        self._rng = rng
        self.crashes = 0

    def strike(self) -> None:
        etcd = workload(self._site).etcd
        voters = sorted(each.name for each in etcd.voters)
        if len(voters) < 3 or not all(etcd.alive(name) for name in voters):
            return
        victim = self._rng.choice(voters)
        for vm in self._site.vms():
            if vm.name == victim and vm.power == "ON":
                self._site.prism.power.restart(vm.ext_id)
                self.crashes += 1

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._rng.uniform(1, 90))
            self.strike()


@asynccontextmanager
async def crashes(site: Site, rng: random.Random) -> AsyncIterator[Crash]:
    crash = Crash(site, rng)
    task = asyncio.create_task(crash.run())
    try:
        yield crash
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def change(site: Site, killer: Killer, spec: dict[str, object]) -> None:
    await site.patch(K0sControlPlane, PLANE, {"spec": spec})
    await mortal(site, killer)


async def names(site: Site) -> set[str]:
    return {each.metadata.name for each in await site.list(Machine)}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_manager_that_is_killed_between_writes_never_costs_the_quorum(seed: int) -> None:
    rng = random.Random(seed)

    @virtual
    async def run() -> None:
        killer = Killer(lambda: rng.randint(2, 25))
        async with nutanix_site(start=False, seed=seed) as site, quorum_kept(site) as quorum:
            await begin(site, killer)
            await site.have(*manifest.standalone("one", 1))
            await mortal(site, killer)
            await ready(site, 1, 3600)
            await change(site, killer, {"replicas": 3, "updateStrategy": STRATEGIES[seed % 3]})
            await ready(site, 3, 3600)
            assert len(site.created) == 3, "a VM was made twice"
            await change(site, killer, {"version": NEXT})
            await upgraded(site, NEXT, 3)
            assert members(site) == await names(site)
            assert quorum.most >= 3
            assert killer.kills > 5, "the faults did not strike"

    run()


@pytest.mark.parametrize("seed", SEEDS)
def test_machines_that_crash_in_an_upgrade_never_cost_the_quorum(seed: int) -> None:
    """The manager is killed as well."""
    rng = random.Random(seed)

    @virtual
    async def run() -> None:
        killer = Killer(lambda: rng.randint(10, 60))
        async with nutanix_site(start=False, seed=seed) as site:
            await begin(site, killer)
            await site.have(*manifest.standalone("one", 3, updateStrategy=STRATEGIES[seed % 3]))
            await mortal(site, killer)
            await ready(site, 3, 3600)
            async with quorum_kept(site):
                async with crashes(site, rng) as crash:
                    await change(site, killer, {"version": NEXT})
                    await asyncio.sleep(300)
                assert crash.crashes > 2, "no machine crashed"
                await mortal(site, killer)
                await upgraded(site, NEXT, 3)
                await change(site, killer, {"replicas": 1, "updateStrategy": "Recreate"})
                await ready(site, 1, 3600)
            assert members(site) == await names(site)
            await site.delete(Cluster, "one")
            await mortal(site, killer)
            await site.gone(Cluster, "one", 3600)
            await site.empty("one")

    run()
