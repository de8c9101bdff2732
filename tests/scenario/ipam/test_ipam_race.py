"""No address is given twice: with two replicas that know nothing of each other, late caches, and controllers that die.

Every state that the API ever shows is looked at, not only the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from campaign import CAMPAIGN
from homeport import ipam
from homeport.api.ipam.v1alpha2 import GROUP, InClusterIPPool
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim
from homeport.builtin.install import install as install_builtin
from homeport.capi.definition.kind import KINDS, render_definition
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.ipam.definition import definitions
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, plane, virtual
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from scenario.capi.fault import WRITES, Killer, Late

SEEDS = range(40) if CAMPAIGN else range(4)
FEW, ALL = 6, 9  # addresses at first, and at the end: as many as there are claims
POOL = Key("default", "machines")


class Witness:
    """Follows every address, and remembers whoever had one that somebody else had."""

    def __init__(self) -> None:
        self.holders: dict[str, set[str]] = {}
        self.twice: list[str] = []
        self.most = 0

    async def watch(self, p: Plane) -> None:
        seen: dict[str, str] = {}
        async with p.client.watch(IPAddress, Query(namespace="default"), initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                name, address = event.object.metadata.name, event.object.spec.address
                self.holders.setdefault(seen.pop(name, ""), set()).discard(name)
                if event.type == "DELETED":
                    continue
                seen[name] = address
                held = self.holders.setdefault(address, set())
                held.add(name)
                self.most = max(self.most, len(seen))
                if len(held) > 1:
                    self.twice.append(f"{address}: {sorted(held)}")


class Slow:
    """Each call takes its time, and others come in between."""

    def __init__(self, inner: Any, rng: random.Random) -> None:
        self._inner = inner
        self._rng = rng

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in (*WRITES, "get", "list"):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(self._rng.choice((0.0, 0.01, 0.5)))
            return await found(*args, **kwargs)

        return call


class Replica:
    """A manager that is started again whenever it was killed."""

    def __init__(self, p: Plane, rng: random.Random, install: Callable[[Manager], object] = ipam.install) -> None:
        self._plane = p
        self._rng = rng
        self._install = install
        self.mortal = True
        self.kills = 0

    async def run(self) -> None:
        while True:
            killer = Killer(lambda: self._rng.randint(1, 12) if self.mortal else 0)
            client = Late(Slow(killer.wrap(self._plane.server.client()), self._rng), self._rng, 3.0)
            manager = Manager(client, clock=self._plane.clock)
            self._install(manager)
            running = asyncio.create_task(manager.run())
            try:
                await killer.death(float("inf"))
            finally:
                self.kills += killer.kills
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def two_replicas(seed: int) -> AsyncIterator[tuple[Plane, list[Replica], Witness]]:
    newest = [replace(each, versions=each.versions[-1:]) for each in KINDS]
    needed = ("IPAddress", "IPAddressClaim", "Cluster")
    crds = [render_definition(each) for each in newest if each.versions[-1].__resource__.kind in needed]
    async with plane(crds=[*crds, *definitions()]) as p:
        hooks = Hooks()
        ipam.register(hooks, p.client)
        install_hooks(hooks, p.server)
        install_builtin(p.server, p.manager)
        await p.start()
        witness, replicas = Witness(), [Replica(p, random.Random(f"{seed} {n}")) for n in range(2)]
        tasks = [asyncio.create_task(each.run()) for each in replicas] + [asyncio.create_task(witness.watch(p))]
        try:
            yield p, replicas, witness
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def claim(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"poolRef": {"apiGroup": GROUP, "kind": "InClusterIPPool", "name": "machines"}},
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_no_address_is_given_twice(seed: int) -> None:
    _churn(seed)


@virtual
async def _churn(seed: int) -> None:
    rng = random.Random(seed)
    async with two_replicas(seed) as (p, replicas, witness):
        spec = {"addresses": [f"10.0.0.1-10.0.0.{FEW}"], "prefix": 24}
        await p.client.create(
            {"metadata": {"name": "machines", "namespace": "default"}, "spec": spec}, kind=InClusterIPPool.__resource__
        )
        names = [f"c-{n}" for n in range(ALL)]
        for _ in range(60):
            name = rng.choice(names)
            with contextlib.suppress(ApiError):  # there already, or not yet gone
                if rng.random() < 0.6:
                    await p.client.create(claim(name), kind=IPAddressClaim.__resource__)
                else:
                    await p.client.delete(IPAddressClaim, Key("default", name))
            await asyncio.sleep(rng.uniform(0.0, 2.0))
        for each in replicas:
            each.mortal = False
        more = {"spec": {"addresses": [f"10.0.0.1-10.0.0.{ALL}"]}}
        await p.client.patch(InClusterIPPool, POOL, MergePatch(more))
        for name in names:
            await _ensure(p, name)
        for name in names:
            await p.until(IPAddressClaim, Key("default", name), lambda c: c.status.address_ref is not None, timeout=600)
        await p.until(
            InClusterIPPool, POOL, lambda o: o.status.addresses is not None and o.status.addresses.free == 0, timeout=60
        )
        assert witness.twice == []
        assert witness.most == ALL
        assert sum(each.kills for each in replicas) > 3, "the faults did not strike"
        found = (await p.client.list(IPAddress, Query(namespace="default"))).items
        assert len({each.spec.address for each in found}) == len(found) == ALL


async def _ensure(p: Plane, name: str) -> None:
    """A claim that is there to stay."""
    key = Key("default", name)
    try:
        found = await p.client.get(IPAddressClaim, key)
        if found.metadata.deletion_timestamp:
            await p.gone(IPAddressClaim, key, timeout=600)
            raise NotFound("it went")
    except NotFound:
        await p.client.create(claim(name), kind=IPAddressClaim.__resource__)
