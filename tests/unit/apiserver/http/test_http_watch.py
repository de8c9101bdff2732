from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest

from unit.apiserver.http.http_serving import ADMIN, TABLE, WIDGETS, Api, serving, until, widget

BOOKMARKED = "watch=1&allowWatchBookmarks=true"


class Lines:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> dict[str, Any]:
        event: dict[str, Any] = orjson.loads(await self.response.content.readline())
        return event

    async def rest(self) -> list[dict[str, Any]]:
        return [orjson.loads(line) async for line in self.response.content]


@asynccontextmanager
async def watching(api: Api, query: str = "watch=1", **headers: str) -> AsyncIterator[Lines]:
    sent = {"Authorization": f"Bearer {ADMIN}", **headers}
    async with api.session.get(f"{api.base}{WIDGETS}?{query}", headers=sent) as response:
        assert response.status == 200, await response.text()
        yield Lines(response)


async def test_events_come_as_lines_in_order(api: Api) -> None:
    await api.post(WIDGETS, widget("a"))
    async with watching(api) as lines:
        first = await lines.next()
        assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "a")
        await api.post(WIDGETS, widget("b"))
        await api.call("DELETE", f"{WIDGETS}/a")
        assert [(await lines.next())["type"] for _ in range(2)] == ["ADDED", "DELETED"]


async def test_the_bytes_of_an_event_are_those_of_a_get(api: Api) -> None:
    async with watching(api) as lines:
        await api.post(WIDGETS, widget("a", color="red"))
        line = await lines.response.content.readline()
    got = await api.get(f"{WIDGETS}/a")
    assert line == b'{"type":"ADDED","object":%s}\n' % got.body


async def test_a_watch_ends_after_its_timeout_with_a_bookmark(api: Api) -> None:
    await api.post(WIDGETS, widget("a"))
    async with watching(api, f"{BOOKMARKED}&timeoutSeconds=1") as lines:
        events = await lines.rest()
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["resourceVersion"] == str(api.registry.store.revision)
    assert len(api.server.watches) == 0


async def test_bookmarks_come_from_time_to_time_and_carry_revisions_of_other_kinds() -> None:
    async with serving(bookmark_seconds=0.05) as api:
        revision = api.registry.store.revision
        async with watching(api, f"{BOOKMARKED}&resourceVersion={revision}") as lines:
            await api.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
            while (event := await lines.next())["object"]["metadata"]["resourceVersion"] == str(revision):
                assert event["type"] == "BOOKMARK"
            assert event["type"] == "BOOKMARK"
            assert event["object"]["kind"] == "Widget"


async def test_no_bookmarks_come_unasked() -> None:
    async with serving(bookmark_seconds=0.02) as api, watching(api, "watch=1&timeoutSeconds=1") as lines:
        assert await lines.rest() == []


async def test_a_streamed_list_ends_with_a_marked_bookmark(api: Api) -> None:
    await api.post(WIDGETS, widget("a"))
    query = f"{BOOKMARKED}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with watching(api, query) as lines:
        assert (await lines.next())["type"] == "ADDED"
        end = await lines.next()
    assert end["type"] == "BOOKMARK"
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_an_empty_streamed_list_still_says_that_it_is_complete(api: Api) -> None:
    query = f"{BOOKMARKED}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with watching(api, query) as lines:
        assert (await lines.next())["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_of_compacted_history_reports_that_inside_the_stream(api: Api) -> None:
    for name in ("a", "b", "c"):
        await api.post(WIDGETS, widget(name))
    await api.registry.store.compact(api.registry.store.revision)
    async with watching(api, "watch=1&resourceVersion=1") as lines:
        (event,) = await lines.rest()
    assert event["type"] == "ERROR"
    assert (event["object"]["reason"], event["object"]["code"]) == ("Expired", 410)


async def test_a_client_that_leaves_is_noticed_at_once(api: Api) -> None:
    async with watching(api) as lines:
        assert len(api.server.watches) == 1
        lines.response.close()
    async with asyncio.timeout(5):
        await until(lambda: len(api.server.watches) == 0)


async def test_a_client_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeport.apiserver.http.watch.SLOW_SECONDS", 0.05)
    async with serving() as api:
        _, writer = await asyncio.open_connection("127.0.0.1", api.port, limit=1024)
        head = f"GET {WIDGETS}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"
        writer.write(head.encode())
        async with asyncio.timeout(20):
            await until(lambda: len(api.server.watches) == 1)
            transport = writer.transport
            assert isinstance(transport, asyncio.Transport)
            transport.pause_reading()
            number = 0
            while len(api.server.watches):
                number += 1
                await api.post(WIDGETS, widget(f"big-{number}", free={"text": "x" * 500_000}))
        writer.close()


async def test_a_watch_can_be_had_as_a_table(api: Api) -> None:
    await api.post(WIDGETS, widget("a", color="red"))
    async with watching(api, Accept=TABLE) as lines:
        first = await lines.next()
        await api.post(WIDGETS, widget("b", color="blue"))
        second = await lines.next()
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Color", "Replicas", "Age"]
    assert first["object"]["rows"][0]["cells"][:2] == ["a", "red"]
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_a_watch_can_be_had_as_metadata_alone(api: Api) -> None:
    await api.post(WIDGETS, widget("a", color="red"))
    form = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    async with watching(api, Accept=form) as lines:
        event = await lines.next()
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" not in event["object"]


async def test_the_old_watch_path_and_a_watch_of_one_object_work(api: Api) -> None:
    for name in ("a", "b"):
        await api.post(WIDGETS, widget(name))
    path = "/apis/example.com/v1/watch/namespaces/default/widgets/b?timeoutSeconds=1"
    got = await api.get(path)
    assert [orjson.loads(line)["object"]["metadata"]["name"] for line in got.body.splitlines()] == ["b"]
    single = await api.get(f"{WIDGETS}/a?watch=1")
    assert single.json["kind"] == "Widget"


async def test_a_websocket_watch_is_refused_clearly(api: Api) -> None:
    headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
    refused = await api.get(f"{WIDGETS}?watch=1", headers=headers)
    assert refused.status == 400
    assert "WebSocket" in refused.message


async def test_draining_ends_watches_cleanly(api: Api) -> None:
    async with watching(api) as lines:
        drained = asyncio.create_task(api.server.drain(5))
        assert await lines.rest() == []  # the stream ends properly: no error for a cut connection
        await drained
    with pytest.raises(aiohttp.ClientConnectorError):
        await api.get(WIDGETS)


async def test_watches_are_counted_while_they_last(api: Api) -> None:
    async with watching(api):
        text = (await api.get("/metrics")).body.decode()
    (line,) = [each for each in text.splitlines() if each.startswith("apiserver_longrunning_requests{")]
    assert 'resource="widgets"' in line
    assert line.endswith(" 1.0")


async def test_a_watch_over_old_http_is_refused(api: Api) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(f"GET {WIDGETS}?watch=1 HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n\r\n".encode())
    assert (await reader.readline()).endswith(b"400 Bad Request\r\n")
    writer.close()
