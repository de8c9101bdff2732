"""Leases of replicas that died."""

from __future__ import annotations

import asyncio

from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.departed import Departed
from homeport.runtime.lease import LEASE
from homeport.runtime.testing import Plane, plane, virtual

LABEL = "runtime.homeport.dev/shard-group"


async def have(p: Plane, name: str, group: str = "homeport") -> None:
    meta = {"name": name, "namespace": "default", "labels": {LABEL: group}}
    await p.client.create({"metadata": meta, "spec": {"leaseDurationSeconds": 15}}, kind=LEASE)


@virtual
async def test_a_lease_that_nobody_renews_for_long_is_removed_and_others_stay() -> None:
    async with plane() as p:
        for name, group in (("dead", "homeport"), ("alive", "homeport"), ("theirs", "another")):
            await have(p, name, group)
        departed = Departed(p.client, Query(namespace="default", labels=f"{LABEL}=homeport"), 15.0, clock=p.clock)
        assert await departed.look() == []
        for turn in range(2):
            await asyncio.sleep(40)
            await p.client.patch(LEASE, Key("default", "alive"), MergePatch({"spec": {"leaseTransitions": turn}}))
        removed = await departed.look()
        assert removed == ["dead"]
        assert {each.name for each in (await p.client.list(LEASE, Query(namespace="default"))).items} == {
            "alive",
            "theirs",
        }
