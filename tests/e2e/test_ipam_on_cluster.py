"""Two sets of IPAM controllers at once, without a Lease between them, on a real kube-apiserver over the wire."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaign import CAMPAIGN
from homeport import ipam
from homeport.api.ipam.v1alpha2 import GROUP, InClusterIPPool
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim
from homeport.capi.definition.kind import KINDS, render_definition
from homeport.client import kubeconfig
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch, Query
from homeport.ipam.definition import definitions
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager
from realkube import RealKube

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        not CAMPAIGN,
        reason="takes a server of its own: set HOMEPORT_CAMPAIGN (make campaign)",
    ),
]

COUNT = 24
NEEDED = ("IPAddress", "IPAddressClaim", "Cluster")


@asynccontextmanager
async def managers(config: Path, count: int) -> AsyncIterator[HttpClient]:
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(HttpClient(kubeconfig.load(config))) for _ in range(count + 1)]
        newest = [replace(each, versions=each.versions[-1:]) for each in KINDS]
        crds = [render_definition(each) for each in newest if each.versions[-1].__resource__.kind in NEEDED]
        await establish(clients[0], *crds, *definitions())
        tasks = []
        for each in clients[1:]:
            manager = Manager(each)
            ipam.install(manager)
            tasks.append(asyncio.create_task(manager.run()))
        try:
            yield clients[0]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def claim(name: str) -> dict[str, Any]:
    ref = {"apiGroup": GROUP, "kind": "InClusterIPPool", "name": "machines"}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"poolRef": ref}}


async def found(client: HttpClient, count: int) -> dict[str, str]:
    """The addresses, once there are so many, and each claim names its own."""
    async with asyncio.timeout(60):
        while True:
            held = (await client.list(IPAddress, Query(namespace="default"))).items
            claims = (await client.list(IPAddressClaim, Query(namespace="default"))).items
            if len(held) == count == sum(each.status.address_ref is not None for each in claims) == len(claims):
                return {each.metadata.name: each.spec.address for each in held}
            await asyncio.sleep(0.1)


async def test_a_real_server_keeps_two_of_them_apart(binaries: Any) -> None:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    # One of its own: definitions that others miss must not come from here.
    with RealKube(binaries) as kube:
        await _live(kube.kubeconfig)


async def _live(config: Path) -> None:
    async with managers(config, 2) as client:
        spec = {"addresses": [f"10.0.0.1-10.0.0.{COUNT}"], "prefix": 24}
        body = {"metadata": {"name": "machines", "namespace": "default"}, "spec": spec}
        await client.create(body, kind=InClusterIPPool.__resource__)
        names = [f"c-{n:02}" for n in range(COUNT)]
        await asyncio.gather(*(client.create(claim(each), kind=IPAddressClaim.__resource__) for each in names))
        held = await found(client, COUNT)
        assert sorted(held) == names
        assert len(set(held.values())) == COUNT
        for each in names[: COUNT // 2]:
            await client.delete(IPAddressClaim, Key("default", each))
        assert set(await found(client, COUNT // 2)) == set(names[COUNT // 2 :])
        more = {"spec": {"addresses": [f"10.0.0.1-10.0.0.{2 * COUNT}"]}}
        await client.patch(InClusterIPPool, Key("default", "machines"), MergePatch(more))
        await asyncio.gather(
            *(client.create(claim(each), kind=IPAddressClaim.__resource__) for each in names[: COUNT // 2])
        )
        held = await found(client, COUNT)
        assert len(set(held.values())) == COUNT
        for each in names:
            await client.delete(IPAddressClaim, Key("default", each))
        assert await found(client, 0) == {}
        await client.delete(InClusterIPPool, Key("default", "machines"))
        async with client.watch(InClusterIPPool, Query(namespace="default"), initial_events=True) as events:
            async for event in events:
                if event.type == "DELETED" or event.initial_events_end:
                    break
