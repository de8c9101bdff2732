"""Where nothing changed nothing is written: not after a restart, not when manifests are applied again, not ever."""

from __future__ import annotations

import asyncio
from typing import Any

from campaign import CAMPAIGN
from capikit import blueprint
from capikit.blueprint import CLASS, steady
from capikit.harness import Harness, harness
from homeport.api.cluster.v1beta2 import Cluster, ClusterClass
from homeport.client.protocol import Write
from homeport.runtime.testing import virtual
from scenario.topology.look import QUIET

LONG = 3600.0 if CAMPAIGN else 900.0


def manifests() -> list[dict[str, Any]]:
    workers = {"a": 1, "b": 1}
    return [*blueprint.whole_class(), blueprint.topology("one", 1, workers, variables={"machine": {"cores": 4}})]


async def apply(h: Harness) -> None:
    """As `kubectl apply --server-side` does."""
    for each in manifests():
        await h.client.apply(each, Write(field_manager="kubectl"), kind=h.plane.resource(each), force=True)


async def at_rest(h: Harness) -> int:
    await h.until(ClusterClass, CLASS, blueprint.class_ready)
    await steady(h, "one", 1, {"a": 1, "b": 1})
    return await h.plane.settle(quiet=QUIET)


@virtual
async def test_nothing_is_written_when_nothing_changed() -> None:
    async with harness() as h:
        await apply(h)
        revision = await at_rest(h)
        made = list(h.infra.created)
        for _ in range(2):
            await apply(h)
            assert await h.plane.settle(quiet=QUIET) == revision, await news(h, revision)
            await h.restart()
            assert await h.plane.settle(quiet=QUIET) == revision, await news(h, revision)
        # What a client writes that knows no defaults: the list as it stands in the manifest.
        topology = manifests()[-1]["spec"]["topology"]
        await h.patch(Cluster, "one", {"spec": {"topology": topology}})
        await h.patch(ClusterClass, CLASS, {"spec": blueprint.cluster_class()["spec"]})
        assert await h.plane.settle(quiet=QUIET) == revision, await news(h, revision)
        assert h.infra.created == made


@virtual
async def test_a_cluster_at_rest_stays_at_rest() -> None:
    async with harness() as h:
        await apply(h)
        revision = await at_rest(h)
        await asyncio.sleep(LONG)
        kept = [change for change in await changes(h, revision) if not change.startswith(("secrets", "nodes"))]
        assert kept == []


async def news(h: Harness, revision: int) -> str:
    return "\n".join(await changes(h, revision))


async def changes(h: Harness, revision: int) -> list[str]:
    """What was written since then."""
    store = h.plane.server.store
    return [
        f"{bucket} {record.name}: {record.value.decode()[:2000]}"
        for bucket in store.buckets()
        for record in store.range(bucket)
        if record.revision > revision
    ]
