"""Where nothing changed nothing is written: not after a restart, not when manifests are applied again, not ever."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from capikit import blueprint
from capikit.blueprint import CLASS, steady
from capikit.yard import Yard, yard
from homeport.api.cluster.v1beta2 import Cluster, ClusterClass
from homeport.client.protocol import Write
from homeport.runtime.testing import virtual
from scenario.topology.look import QUIET

LONG = 3600.0 if os.environ.get("HOMEPORT_CAMPAIGN") else 900.0


def manifests() -> list[dict[str, Any]]:
    workers = {"a": 1, "b": 1}
    return [*blueprint.whole_class(), blueprint.topology("one", 1, workers, variables={"machine": {"cores": 4}})]


async def apply(y: Yard) -> None:
    """As `kubectl apply --server-side` does."""
    for each in manifests():
        await y.client.apply(each, Write(field_manager="kubectl"), kind=y.plane.resource(each), force=True)


async def at_rest(y: Yard) -> int:
    await y.until(ClusterClass, CLASS, blueprint.class_ready)
    await steady(y, "one", 1, {"a": 1, "b": 1})
    return await y.plane.settle(quiet=QUIET)


@virtual
async def test_nothing_is_written_when_nothing_changed() -> None:
    async with yard() as y:
        await apply(y)
        revision = await at_rest(y)
        made = list(y.infra.created)
        for _ in range(2):
            await apply(y)
            assert await y.plane.settle(quiet=QUIET) == revision, await news(y, revision)
            await y.restart()
            assert await y.plane.settle(quiet=QUIET) == revision, await news(y, revision)
        # What a client writes that knows no defaults: the list as it stands in the manifest.
        topology = manifests()[-1]["spec"]["topology"]
        await y.patch(Cluster, "one", {"spec": {"topology": topology}})
        await y.patch(ClusterClass, CLASS, {"spec": blueprint.cluster_class()["spec"]})
        assert await y.plane.settle(quiet=QUIET) == revision, await news(y, revision)
        assert y.infra.created == made


@virtual
async def test_a_cluster_at_rest_stays_at_rest() -> None:
    async with yard() as y:
        await apply(y)
        revision = await at_rest(y)
        await asyncio.sleep(LONG)
        kept = [change for change in await changes(y, revision) if not change.startswith(("secrets", "nodes"))]
        assert kept == []


async def news(y: Yard, revision: int) -> str:
    return "\n".join(await changes(y, revision))


async def changes(y: Yard, revision: int) -> list[str]:
    """What was written since then."""
    store = y.plane.server.store
    return [
        f"{bucket} {record.name}: {record.value.decode()[:2000]}"
        for bucket in store.buckets()
        for record in store.range(bucket)
        if record.revision > revision
    ]
