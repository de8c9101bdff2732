"""No address has two owners: with two replicas that know nothing of each other, late caches, and controllers that die.

Every state that the API ever shows is looked at, not only the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import pytest

from campaign import CAMPAIGN
from homeport.api.butler.v1alpha1 import IPAllocation, NetworkPool
from homeport.api.meta import Resource
from homeport.builtin.install import install as install_builtin
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Key, Query
from homeport.platforms.butler.definition import definitions
from homeport.platforms.butler.network.install import install_network
from homeport.runtime.testing import Plane, plane, virtual
from scenario.ipam.test_ipam_race import Replica

SEEDS = range(40) if CAMPAIGN else range(3)
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
SPACE = "butler-system"
POOL = Key(SPACE, "tenants")
NAMES = [f"a-{n}" for n in range(6)]
SIZE, EACH = 18, 3  # addresses of the pool: exactly enough for all


class Witness:
    """Follows every allocation, and remembers each address that two had at the same time."""

    def __init__(self) -> None:
        self.twice: list[str] = []
        self.most = 0

    async def watch(self, p: Plane) -> None:
        held: dict[str, set[int]] = {}
        async with p.client.watch(IPAllocation, Query(namespace=SPACE), initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                name, status = event.object.metadata.name, event.object.status
                held.pop(name, None)
                if event.type == "DELETED" or not status.start_address:
                    continue
                first, last = int(ip_address(status.start_address)), int(ip_address(status.end_address))
                mine = set(range(first, last + 1))
                self.twice += [f"{name} and {other}" for other, theirs in held.items() if mine & theirs]
                held[name] = mine
                self.most = max(self.most, len(held))


@asynccontextmanager
async def two_replicas(seed: int) -> AsyncIterator[tuple[Plane, list[Replica], Witness]]:
    async with plane(crds=definitions()) as p:
        install_builtin(p.server, p.manager)
        await p.start()
        await p.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, kind=NAMESPACE)
        witness = Witness()
        replicas = [Replica(p, random.Random(f"{seed} {n}"), install_network) for n in range(2)]
        tasks = [asyncio.create_task(each.run()) for each in replicas] + [asyncio.create_task(witness.watch(p))]
        try:
            yield p, replicas, witness
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def allocation(name: str) -> dict[str, Any]:
    spec = {
        "poolRef": {"name": POOL.name},
        "tenantClusterRef": {"name": name, "namespace": "default"},
        "type": "loadbalancer",
        "count": EACH,
    }
    return {"metadata": {"name": name, "namespace": SPACE}, "spec": spec}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_address_has_two_owners(seed: int) -> None:
    _churn(seed)


@virtual
async def _churn(seed: int) -> None:
    rng = random.Random(seed)
    async with two_replicas(seed) as (p, replicas, witness):
        spec = {"cidr": f"10.0.0.1-10.0.0.{SIZE}"}
        pool = {"metadata": {"name": POOL.name, "namespace": SPACE}, "spec": spec}
        await p.client.create(pool, kind=NetworkPool.__resource__)
        for _ in range(60):
            name = rng.choice(NAMES)
            with contextlib.suppress(ApiError):  # there already, or not yet gone
                if rng.random() < 0.6:
                    await p.client.create(allocation(name), kind=IPAllocation.__resource__)
                else:
                    await p.client.delete(IPAllocation, Key(SPACE, name))
            await asyncio.sleep(rng.uniform(0.0, 2.0))
        for each in replicas:
            each.mortal = False
        for name in NAMES:
            await _ensure(p, name)
        for name in NAMES:
            await p.until(IPAllocation, Key(SPACE, name), lambda a: a.status.phase == "Allocated", timeout=600)
        await p.until(NetworkPool, POOL, lambda o: o.status.allocated_ips == SIZE, timeout=120)
        assert witness.twice == []
        assert witness.most == len(NAMES)
        assert sum(each.kills for each in replicas) > 3, "the faults did not strike"


async def _ensure(p: Plane, name: str) -> None:
    """An allocation that is there to stay."""
    key = Key(SPACE, name)
    try:
        found = await p.client.get(IPAllocation, key)
        if found.metadata.deletion_timestamp:
            await p.gone(IPAllocation, key, timeout=600)
            raise NotFound("it went")
    except NotFound:
        await p.client.create(allocation(name), kind=IPAllocation.__resource__)
