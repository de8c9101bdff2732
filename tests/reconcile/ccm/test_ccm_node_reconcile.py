"""Nodes on an API server, their machines in memory."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.meta import Resource
from homeport.capi.cloud import Address
from homeport.ccm.install import install
from homeport.ccm.node import NODE, SHUTDOWN, NodeReconciler, initialised
from homeport.client.protocol import Key, MergePatch, Query
from homeport.infra.error import Denied
from homeport.runtime.testing import Plane, plane, versions, virtual
from reconcile.ccm.cloud_kit import NEW, MemoryCloud, node

A = Key("", "a")
EVENT = Resource("events.k8s.io", "v1", "Event", "events")


def running(cloud: MemoryCloud) -> Any:
    return lambda p: install(p.manager, cloud)


async def unready(p: Plane, key: Key = A) -> None:
    patch = MergePatch({"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "Test"}]}})
    await p.client.patch(NODE, key, patch, subresource="status")


async def events(p: Plane, reason: str) -> list[Any]:
    await p.settle()
    return [each for each in (await p.client.list(EVENT, Query())).items if each["reason"] == reason]


def keys(found: Any) -> set[str]:
    return {each["key"] for each in (found.get("spec") or {}).get("taints") or ()}


@virtual
async def test_a_new_node_is_initialised_in_two_writes() -> None:
    async with plane() as p:
        await p.have(node("a"))
        done = await p.reconcile(NodeReconciler(p.manager, MemoryCloud("a")), A)
        assert done.error is None
        assert [key for _, key in done.written] == [A, A]
        found = await p.client.get(NODE, A)
    assert found["spec"] == {"providerID": "memory://a"}
    labels = found["metadata"]["labels"]
    assert labels["topology.kubernetes.io/zone"] == "z1"
    assert labels["topology.kubernetes.io/region"] == "r1"
    assert labels["node.kubernetes.io/instance-type"] == "small"
    assert found["status"]["addresses"] == [
        {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "Hostname", "address": "a"},
    ]


@virtual
async def test_a_node_that_is_well_is_not_written_again() -> None:
    cloud = MemoryCloud("a")
    async with plane(running(cloud)) as p:
        await p.have(node("a"))
        await p.until(NODE, A, initialised)
        await p.settle()
        before, asked = versions(p), len(cloud.asked)
        await asyncio.sleep(3600)
        assert versions(p) == before
        assert len(cloud.asked) - asked <= 13


@virtual
async def test_the_node_of_a_machine_that_is_gone_is_deleted_once_it_stops_answering() -> None:
    cloud = MemoryCloud("a", "b")
    async with plane(running(cloud)) as p:
        await p.have(node("a"), node("b"))
        await p.until(NODE, A, initialised)
        del cloud.machines["a"]
        await asyncio.sleep(900)
        await p.client.get(NODE, A)  # it answers: whatever the infrastructure says, it is there
        await unready(p)
        await p.gone(NODE, A)
        await p.client.get(NODE, Key("", "b"))
        assert len(await events(p, "DeletingNode")) == 1


@virtual
async def test_a_machine_that_goes_after_its_node_stopped_answering_is_noticed_within_a_minute() -> None:
    cloud = MemoryCloud("a")
    async with plane(running(cloud)) as p:
        await p.have(node("a"))
        await p.until(NODE, A, initialised)
        await unready(p)
        await asyncio.sleep(1800)
        asked = len(cloud.asked)
        assert asked < 60
        del cloud.machines["a"]
        await p.gone(NODE, A, 61)


@virtual
async def test_a_node_whose_machine_is_off_stays_and_is_tainted_until_it_is_on_again() -> None:
    cloud = MemoryCloud("a")
    async with plane(running(cloud)) as p:
        await p.have(node("a"))
        await p.until(NODE, A, initialised)
        cloud.change("a", shutdown=True)
        await unready(p)
        await p.until(NODE, A, lambda n: keys(n) == {SHUTDOWN})
        await asyncio.sleep(1800)
        assert keys(await p.client.get(NODE, A)) == {SHUTDOWN}
        cloud.change("a", shutdown=False)
        await p.until(NODE, A, lambda n: keys(n) == set(), 61)


@virtual
async def test_a_new_address_of_a_machine_becomes_the_node_s() -> None:
    cloud = MemoryCloud("a")
    async with plane(running(cloud)) as p:
        await p.have(node("a"))
        await p.until(NODE, A, initialised)
        cloud.change("a", addresses=(Address("InternalIP", "10.0.0.77"),))
        await p.until(NODE, A, lambda n: n["status"]["addresses"][0]["address"] == "10.0.0.77", 310)
        found = await p.client.get(NODE, A)
        assert found["status"]["addresses"][1] == {"type": "Hostname", "address": "a"}


@virtual
async def test_a_new_node_whose_machine_has_no_address_waits_for_one() -> None:
    cloud = MemoryCloud("a")
    addresses = cloud.machines["a"].addresses
    cloud.change("a", addresses=())
    async with plane(running(cloud)) as p:
        await p.have(node("a"))
        await asyncio.sleep(60)
        assert keys(await p.client.get(NODE, A)) == {NEW["key"]}
        cloud.change("a", addresses=addresses)
        await p.until(NODE, A, initialised, 61)


@virtual
async def test_a_new_node_without_a_machine_is_never_deleted() -> None:
    async with plane(running(MemoryCloud())) as p:
        await p.have(node("a", ready=False))
        await asyncio.sleep(3600)
        assert NEW["key"] in keys(await p.client.get(NODE, A))


@virtual
async def test_while_the_infrastructure_refuses_nothing_is_changed_and_it_is_reported_once() -> None:
    cloud = MemoryCloud("a")
    cloud.error = Denied("Prism Central: wrong password")
    async with plane(running(cloud)) as p:
        await p.have(node("a", ready=False, taints=(), provider_id="memory://a"))
        await asyncio.sleep(1800)
        (told,) = await events(p, "AccessDenied")
        assert "wrong password" in told["note"]
        cloud.error = None
        await p.until(NODE, A, lambda n: "topology.kubernetes.io/zone" in n["metadata"].get("labels", {}), 301)
    assert cloud.closed
