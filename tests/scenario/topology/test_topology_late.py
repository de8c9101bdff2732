"""Topologies on caches that are behind by a random time: no machine too many, and nothing left."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from capikit import blueprint, generic
from capikit.yard import NAMESPACE, Yard, yard
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.client.protocol import Query
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from scenario.capi.fault import Late

pytestmark = pytest.mark.skipif(
    not os.environ.get("HOMEPORT_CAMPAIGN"), reason="make campaign runs it: it takes minutes"
)

WORKERS = {"a": 1, "b": 1}
KINDS = (generic.TEMPLATE, blueprint.CONFIG_TEMPLATE, generic.CLUSTER, MachineDeployment.__resource__)


async def changed(y: Yard, goal: str, **topology: Any) -> int:
    """How many machines were made by the end of it."""
    await y.patch(Cluster, "one", {"spec": {"topology": topology}})
    await y.until(Cluster, "one", blueprint.reconciled, 7200, what="its topology being reconciled")
    await y.plane.settle(150)
    await blueprint.steady(y, "one", 1, WORKERS, goal, timeout=7200)
    await y.plane.settle(150)
    return len(y.infra.created)


async def copies(y: Yard, kind: Any) -> list[str]:
    query = Query(namespace=NAMESPACE, labels="topology.cluster.x-k8s.io/owned")
    return [each.name for each in (await y.client.list(kind, query)).items]


@pytest.mark.parametrize("seed", range(10))
def test_every_change_replaces_each_machine_once(seed: int) -> None:
    @virtual
    async def run() -> None:
        rng = random.Random(seed)
        async with yard(wrap=lambda client: Late(client, rng, 5.0), pace=REALISTIC) as y:
            await blueprint.have_class(y)
            await y.plane.have(blueprint.topology("one", 1, WORKERS))
            assert await changed(y, "v1.30.0") == 3
            assert await changed(y, "v1.30.0", variables=[{"name": "image", "value": "debian"}]) == 6
            assert await changed(y, "v1.31.0", version="v1.31.0") == 9
            assert len(await copies(y, generic.TEMPLATE)) == 3
            await y.delete(Cluster, "one")
            await y.gone(Cluster, "one", 7200)
            await y.plane.settle(60)
            assert [await copies(y, kind) for kind in KINDS] == [[]] * len(KINDS)

    run()
