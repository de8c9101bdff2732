"""Pods of removed Deployments: whoever removes their permissions waits until they have ended, but not forever."""

from __future__ import annotations

import asyncio

from homeport.api.meta import Resource, Unstructured
from homeport.app.kubernetes.ending import ENDED_SECONDS, await_ended
from homeport.client.protocol import Client, Key
from homeport.runtime.testing import plane, virtual
from homeport.runtime.workload.kind import POD

DEPLOYMENT = Unstructured(
    apiVersion="apps/v1",
    kind="Deployment",
    metadata={"name": "controllers", "namespace": "default"},
    spec={"selector": {"matchLabels": {"control-plane": "controllers"}}},
)
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


async def have_pod(client: Client, name: str, label: str = "controllers", namespace: str = "default") -> None:
    meta = {"name": name, "namespace": namespace, "labels": {"control-plane": label}}
    await client.create({"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}}, kind=POD)


@virtual
async def test_it_waits_for_pods_of_these_deployments_alone() -> None:
    said: list[str] = []
    async with plane() as p:
        await p.client.create({"metadata": {"name": "elsewhere"}}, kind=NAMESPACE)
        await have_pod(p.client, "other", "others")
        await have_pod(p.client, "far", namespace="elsewhere")
        await await_ended(p.client, [DEPLOYMENT], said.append, p.clock)
        assert said == []
        await have_pod(p.client, "one")
        waiting = asyncio.create_task(await_ended(p.client, [DEPLOYMENT], said.append, p.clock))
        await asyncio.sleep(20)
        assert not waiting.done()
        await p.client.delete(POD, Key("default", "one"))
        async with asyncio.timeout(5):
            await waiting
    assert said == ["waiting for Pods of removed Deployments to end: default/one"]


@virtual
async def test_a_pod_that_never_ends_is_named_and_not_waited_for() -> None:
    said: list[str] = []
    async with plane() as p:
        await have_pod(p.client, "lost")
        async with asyncio.timeout(ENDED_SECONDS + 5):
            await await_ended(p.client, [DEPLOYMENT], said.append, p.clock)
    assert "Pods default/lost" in said[-1]
    assert "Their permissions are removed now" in said[-1]
