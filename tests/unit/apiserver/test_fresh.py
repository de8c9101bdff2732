"""Servers in memory begin with what the first one of the process wrote, as objects of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from homeport.apiserver.auth.rbac.reconcile import ROLE
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.protocol import Query
from homeport.runtime.testing import shared_pki

Objects = dict[tuple[str, str], dict[str, Any]]


@asynccontextmanager
async def opened(database: Path | None = None, **options: Any) -> AsyncIterator[EmbeddedServer]:
    server = await EmbeddedServer.open(database, shared_pki(), **options)
    try:
        yield server
    finally:
        await server.close()


def objects(server: EmbeddedServer) -> Objects:
    store = server.store
    return {
        (bucket, record.name): orjson.loads(record.value)
        for bucket in store.buckets()
        for record in store.range(bucket)
    }


def comparable(found: Objects) -> Objects:
    for obj in found.values():
        meta = obj["metadata"]
        del meta["uid"], meta["creationTimestamp"], meta["resourceVersion"]
        for entry in meta.get("managedFields") or ():
            del entry["time"]
    return found


async def test_a_server_in_memory_begins_with_the_objects_of_one_on_disk(tmp_path: Path) -> None:
    async with opened(tmp_path / "state.db") as written, opened(), opened() as filled:
        assert filled.store.revision == written.store.revision
        assert comparable(objects(filled)) == comparable(objects(written))


async def test_objects_of_two_servers_share_neither_uid_nor_time() -> None:
    async with opened(clock=lambda: 1_000_000_000.0) as first, opened(clock=lambda: 1_700_000_000.0) as second:
        found, others = objects(first), objects(second)
    uids = {obj["metadata"]["uid"] for obj in (*found.values(), *others.values())}
    assert len(uids) == len(found) + len(others)
    assert {obj["metadata"]["creationTimestamp"] for obj in others.values()} == {"2023-11-14T22:13:20Z"}
    assert {
        entry["time"] for obj in others.values() for entry in obj["metadata"]["managedFields"]
    } == {"2023-11-14T22:13:20Z"}  # fmt: skip


async def test_each_service_network_has_the_first_of_its_own_addresses() -> None:
    for network, address in (("10.96.0.0/16", "10.96.0.1"), ("172.30.0.0/16", "172.30.0.1")) * 2:
        async with opened(service_network=network) as server:
            assert objects(server)["services", "default/kubernetes"]["spec"]["clusterIP"] == address


async def test_the_past_of_a_filled_server_can_be_watched() -> None:
    async with opened(), opened() as server:
        roles = objects(server)
        stream = server.client().watch(ROLE, Query(resource_version="1"), timeout=0)
        async with stream as events:
            seen = [event async for event in events if event.type != "BOOKMARK"]
    last = {event.object["metadata"]["name"]: event.object for event in seen}
    assert last == {name: obj for (bucket, name), obj in roles.items() if bucket == ROLE.qualified}


async def test_a_filled_server_writes_aggregated_roles_as_any_other() -> None:
    async with opened(), opened() as server:
        assert await server.aggregator.settle() == 0
        await server.client().create(
            {
                "metadata": {"name": "more", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
                "rules": [{"apiGroups": ["example.org"], "resources": ["widgets"], "verbs": ["get"]}],
            },
            kind=ROLE,
        )
        assert await server.aggregator.settle() == 3
