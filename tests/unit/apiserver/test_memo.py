"""What is kept beside the bytes of an object: much while it changes, little when it does not."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.meta import Resource
from homeport.apiserver.view import Memo
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import plane, virtual

EVENT = Resource("", "v1", "Event", "events")
NEW_EVENT = Resource("events.k8s.io", "v1", "Event", "events")
SECRET = Resource("", "v1", "Secret", "secrets")
LONG = 120.0

made: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "default", "labels": {"color": "red"}},
    "involvedObject": {"kind": "Node", "name": "n", "namespace": "default"},
    "reason": "Tested",
    "message": "x" * 500,
    "type": "Normal",
}


@virtual
async def test_objects_that_do_not_change_are_found_by_label_and_in_each_version_as_before() -> None:
    async with plane() as p:
        await p.client.create(made, kind=EVENT)
        before = [await p.client.get(kind, Key("default", "a")) for kind in (EVENT, NEW_EVENT)]
        await asyncio.sleep(LONG)
        record = p.server.registry.store.get("events", "default/a")
        assert record is not None
        assert record.compressed
        assert record.memo is None or (record.memo.views, record.memo.labels) == (Memo().views, None)
        assert [await p.client.get(kind, Key("default", "a")) for kind in (EVENT, NEW_EVENT)] == before
        for query, count in ((Query(labels="color=red"), 1), (Query(labels="color=blue"), 0)):
            assert len((await p.client.list(NEW_EVENT, query)).items) == count


@virtual
async def test_a_cold_object_is_patched_and_leaves_the_selection_of_a_watch() -> None:
    async with plane() as p:
        body = {
            "metadata": {"name": "s", "namespace": "default", "labels": {"color": "red"}},
            "stringData": {"k": "v" * 900},
        }
        await p.client.create(body, kind=SECRET)
        query = Query(namespace="default", labels="color=red", fields="type=Opaque")
        async with p.client.watch(SECRET, query, initial_events=True) as events:
            first = await anext(events)
            while not first.initial_events_end:
                first = await anext(events)
            await asyncio.sleep(LONG)
            patch = MergePatch({"metadata": {"labels": {"color": "blue"}}})
            await p.client.patch(SECRET, Key("default", "s"), patch)
            gone = await anext(events)
        assert (gone.type, gone.object["data"]["k"]) == ("DELETED", "dnZ2" * 300)
        assert gone.object.metadata["labels"] == {"color": "red"}
