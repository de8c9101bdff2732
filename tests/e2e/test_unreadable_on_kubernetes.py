"""Objects on a real kube-apiserver that the controllers can't read: named everywhere until they are mended or deleted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from conformance.runtime.world import until
from e2e.test_homeport_on_cluster import Replica, fetch
from e2e.test_webhook_on_kubernetes import PLATFORM, WITHOUT
from homeport.api.cluster.v1beta2 import Cluster
from homeport.app.kubernetes.install import prepare
from homeport.client import kubeconfig
from homeport.client.errors import BadRequest, Invalid
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.runtime.definition import CRD
from homeport.runtime.event import EVENT
from present import present
from realkube import RealKube

pytestmark = [pytest.mark.timeout(240)]

CLUSTER = Cluster.__resource__
BROKEN = {"clusterNetwork": {"apiServerPort": "many"}}


@pytest.fixture
async def client(kube: RealKube) -> AsyncIterator[HttpClient]:
    """Of a server with Clusters that accepts any content in them, as with definitions of another project or version."""
    async with HttpClient(kubeconfig.load(kube.kubeconfig)) as made:
        await prepare(made, PLATFORM, print)
        crd = await made.get(CRD, Key("", f"{CLUSTER.plural}.{CLUSTER.group}"))
        for version in crd["spec"]["versions"]:
            anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            version["schema"] = {"openAPIV3Schema": anything}
        await made.replace(crd, kind=CRD)
        async with asyncio.timeout(60):
            while not await accepts_anything(made):  # noqa: ASYNC110 - it says nowhere that it has learnt of it
                await asyncio.sleep(0.1)
        yield made


async def accepts_anything(client: HttpClient) -> bool:
    try:
        await client.create(cluster("tried", BROKEN), Write(dry_run=True), kind=CLUSTER)
    except (Invalid, BadRequest):
        return False
    return True


def cluster(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def create(client: HttpClient, name: str, spec: dict[str, Any]) -> Key:
    await client.create(cluster(name, spec), kind=CLUSTER)
    return Key("default", name)


async def acted_on(client: HttpClient, key: Key) -> None:
    await until(client, CLUSTER, key, lambda found: bool(found.metadata.get("finalizers")))


async def until_readyz(url: str, holds: Callable[[str], bool], seconds: float = 30.0) -> None:
    """It is ready all the time: the others are worked on."""
    text = ""
    try:
        async with asyncio.timeout(seconds):
            while True:
                code, text = await asyncio.to_thread(fetch, url)
                if holds(text):
                    assert code == 200, text
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        pytest.fail(f"/readyz still says {text}")


async def event_of(client: HttpClient, key: Key) -> str:
    """The message of the warning, as soon as there is one."""
    query = Query(namespace=key.namespace, fields=f"involvedObject.name={key.name},reason=Unreadable")
    async with asyncio.timeout(30), client.watch(EVENT, query, initial_events=True) as events:
        async for event in events:
            if event.type == "ADDED":
                assert (event.object["type"], event.object["involvedObject"]["kind"]) == ("Warning", CLUSTER.kind)
                return str(event.object["message"])
    raise AssertionError("the watch ended")


def names(key: Key) -> str:
    return f"[!]{CLUSTER.qualified} {key}: "


async def test_an_object_that_can_not_be_read_is_named_until_it_is_mended_or_deleted_and_others_are_worked_on(
    kube: RealKube, client: HttpClient, replicas: list[Replica]
) -> None:
    before = await create(client, "before", BROKEN)
    common = ("--kubeconfig", str(kube.kubeconfig), "--namespace", "homeport-system", "--health", "127.0.0.1:0")
    replica = Replica(*common, *WITHOUT)
    replicas.append(replica)
    url = present(re.search(r"http://\S+", await asyncio.to_thread(replica.until, "health: ", seconds=120)))[0]
    await asyncio.to_thread(replica.until, "does not fit its type", str(before), "apiServerPort", seconds=120)
    await until_readyz(url, lambda text: text.startswith("ok") and names(before) in text, seconds=120)

    later = await create(client, "later", BROKEN)
    await asyncio.to_thread(replica.until, "does not fit its type", str(later), "apiServerPort")
    await until_readyz(url, lambda text: names(before) in text and names(later) in text)
    for key in (before, later):
        assert "clusterNetwork.apiServerPort" in await event_of(client, key)

    # One that becomes unreadable is neither given up nor an obstacle for the others.
    fine = await create(client, "fine", {})
    await acted_on(client, fine)
    await client.patch(CLUSTER, fine, MergePatch({"spec": BROKEN}))
    await until_readyz(url, lambda text: names(fine) in text)
    await acted_on(client, await create(client, "another", {}))

    await client.patch(CLUSTER, later, MergePatch({"spec": {"clusterNetwork": {"apiServerPort": 6443}}}))
    await acted_on(client, later)
    await until_readyz(url, lambda text: names(later) not in text and names(before) in text, seconds=5)
    await client.delete(CLUSTER, before)
    await client.patch(CLUSTER, fine, MergePatch({"spec": {"clusterNetwork": None}}))
    await until_readyz(url, lambda text: text == "ok", seconds=5)
    assert replica.terminate() == 0
