"""Topologies on caches that are behind by a random time: no machine too many, and nothing left."""

from __future__ import annotations

import random
from typing import Any

import pytest

from campaign import CAMPAIGN
from capikit import blueprint, generic
from capikit.harness import NAMESPACE, Harness, harness
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.client.protocol import Query
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from scenario.capi.fault import Late

pytestmark = pytest.mark.skipif(not CAMPAIGN, reason="make campaign runs it: it takes minutes")

WORKERS = {"a": 1, "b": 1}
KINDS = (generic.TEMPLATE, blueprint.CONFIG_TEMPLATE, generic.CLUSTER, MachineDeployment.__resource__)


async def changed(h: Harness, goal: str, **topology: Any) -> int:
    """How many machines were made by the end of it."""
    await h.patch(Cluster, "one", {"spec": {"topology": topology}})
    await h.until(Cluster, "one", blueprint.reconciled, 7200, what="its topology being reconciled")
    await h.plane.settle(150)
    await blueprint.steady(h, "one", 1, WORKERS, goal, timeout=7200)
    await h.plane.settle(150)
    return len(h.infra.created)


async def copies(h: Harness, kind: Any) -> list[str]:
    query = Query(namespace=NAMESPACE, labels="topology.cluster.x-k8s.io/owned")
    return [each.name for each in (await h.client.list(kind, query)).items]


@pytest.mark.parametrize("seed", range(10))
def test_every_change_replaces_each_machine_once(seed: int) -> None:
    @virtual
    async def run() -> None:
        rng = random.Random(seed)
        async with harness(wrap=lambda client: Late(client, rng, 5.0), pace=REALISTIC) as h:
            await blueprint.have_class(h)
            await h.plane.have(blueprint.topology("one", 1, WORKERS))
            assert await changed(h, "v1.30.0") == 3
            assert await changed(h, "v1.30.0", variables=[{"name": "image", "value": "debian"}]) == 6
            assert await changed(h, "v1.31.0", version="v1.31.0") == 9
            assert len(await copies(h, generic.TEMPLATE)) == 3
            await h.delete(Cluster, "one")
            await h.gone(Cluster, "one", 7200)
            await h.plane.settle(60)
            assert [await copies(h, kind) for kind in KINDS] == [[]] * len(KINDS)

    run()
