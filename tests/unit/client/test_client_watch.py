from __future__ import annotations

import asyncio
import itertools
from typing import Any

import orjson
import pytest
from aiohttp import web

from homeport.api.meta import Object, Resource, resource
from homeport.client.config import Config
from homeport.client.errors import Expired, Forbidden, Internal, Unavailable
from homeport.client.http import HttpClient
from homeport.client.protocol import Event, Query
from homeport.client.wire import watch
from homeport.client.wire.retry import Retry
from unit.client.scripted_peer import Peer, failure, json, stream

CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps")
FROM_5 = Query("ns", resource_version="5")


@resource("", "v1", "ConfigMap", "configmaps")
class Map(Object):
    pass


def line(type_: str, name: str = "", version: str = "", **meta: Any) -> bytes:
    obj = {"kind": "ConfigMap", "metadata": {"name": name, "resourceVersion": version, **meta}}
    return orjson.dumps({"type": type_, "object": obj}) + b"\n"


GONE = (
    orjson.dumps(
        {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
    )
    + b"\n"
)


async def collect(client: HttpClient, query: Query, count: int, **options: Any) -> list[Event[Any]]:
    found: list[Event[Any]] = []
    async with asyncio.timeout(10), client.watch(CONFIGMAPS, query, **options) as events:
        while len(found) < count:
            found.append(await anext(events))
    return found


async def test_events_are_read_however_the_pieces_fall(peer: Peer, client: HttpClient) -> None:
    whole = line("ADDED", "a", "6") + line("MODIFIED", "a", "7") + line("DELETED", "a", "8")
    hold = asyncio.Event()
    for size in (1, 7, 64, len(whole)):
        pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
        peer.says(stream(*pieces, then=hold))
        found = await collect(client, FROM_5, 3)
        assert [(e.type, e.resource_version) for e in found] == [("ADDED", "6"), ("MODIFIED", "7"), ("DELETED", "8")]
    asked = peer.asked[0].query
    assert asked.pop("timeoutSeconds").isdigit()
    assert asked == {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "5"}
    hold.set()


async def test_a_line_larger_than_any_buffer_is_read(peer: Peer, client: HttpClient) -> None:
    hold = asyncio.Event()
    peer.says(stream(line("ADDED", "a", "6", annotations={"x": "y" * 1_000_000}), then=hold))
    (event,) = await collect(client, FROM_5, 1)
    assert len(event.object.metadata["annotations"]["x"]) == 1_000_000
    hold.set()


async def test_typed_events(peer: Peer, client: HttpClient) -> None:
    hold = asyncio.Event()
    peer.says(stream(line("ADDED", "a", "6"), line("BOOKMARK", "", "9"), then=hold))
    async with client.watch(Map, FROM_5) as events:
        first, second = await anext(events), await anext(events)
    assert isinstance(first.object, Map)
    assert first.object.metadata.name == "a"
    assert (second.type, second.resource_version, second.initial_events_end) == ("BOOKMARK", "9", False)
    hold.set()


async def test_a_lost_connection_is_resumed_from_the_last_version(peer: Peer, client: HttpClient) -> None:
    hold = asyncio.Event()
    peer.says(
        stream(line("ADDED", "a", "6"), line("BOOKMARK", "", "8"), cut=True),
        failure(503, "ServiceUnavailable"),
        stream(line("ADDED", "b", "9"), then=hold),
    )
    found = await collect(client, FROM_5, 3)
    assert [event.resource_version for event in found] == ["6", "8", "9"]
    assert [asked.query["resourceVersion"] for asked in peer.asked] == ["5", "8", "8"]
    hold.set()


async def test_a_watch_that_the_server_ends_goes_on(peer: Peer, client: HttpClient) -> None:
    hold = asyncio.Event()
    peer.says(stream(line("ADDED", "a", "6")), stream(), stream(line("ADDED", "b", "9"), then=hold))
    found = await collect(client, FROM_5, 2)
    assert [event.object.name for event in found] == ["a", "b"]
    assert [asked.query["resourceVersion"] for asked in peer.asked] == ["5", "6", "6"]
    hold.set()


async def test_a_server_that_ends_every_watch_at_once_is_asked_less_and_less_often(peer: Peer) -> None:
    number = itertools.count(6)

    async def one_event(request: web.Request) -> web.StreamResponse:
        return await stream(line("BOOKMARK", "", str(next(number))))(request)

    peer.says(one_event)
    async with HttpClient(Config(peer.url), retry=Retry(first_seconds=0.1)) as client:
        began = asyncio.get_running_loop().time()
        await collect(client, FROM_5, 5)
        # Half of 0.1 + 0.2 + 0.4 + 0.8, at least.
        assert asyncio.get_running_loop().time() - began >= 0.75
    assert [asked.query["resourceVersion"] for asked in peer.asked] == ["5", "6", "7", "8", "9"]


async def test_a_watch_that_lived_for_some_seconds_is_asked_for_again_at_once(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "SHORT_SECONDS", 0.0)
    peer.says(stream(line("ADDED", "a", "6")), stream(line("ADDED", "b", "7")))
    async with HttpClient(Config(peer.url), retry=Retry(first_seconds=60.0, cap_seconds=60.0)) as client:
        assert [event.object.name for event in await collect(client, FROM_5, 2)] == ["a", "b"]


async def test_half_a_line_is_not_an_event(peer: Peer, client: HttpClient) -> None:
    hold = asyncio.Event()
    peer.says(
        stream(line("ADDED", "a", "6") + line("ADDED", "b", "7")[:20], cut=True),
        stream(line("ADDED", "b", "7"), then=hold),
    )
    found = await collect(client, FROM_5, 2)
    assert [event.object.name for event in found] == ["a", "b"]
    hold.set()


async def test_an_expired_version_is_raised_from_an_event_and_from_an_answer(peer: Peer, client: HttpClient) -> None:
    peer.says(stream(line("ADDED", "a", "6") + GONE))
    with pytest.raises(Expired, match="too old"):
        await collect(client, FROM_5, 2)
    peer.says(failure(410, "Expired", "too old"))
    with pytest.raises(Expired):
        await collect(client, FROM_5, 1)
    peer.says(stream(line("ADDED", "a", "6"), cut=True), failure(410, "Gone", "too old"))
    with pytest.raises(Exception, match="too old") as caught:
        await collect(client, FROM_5, 2)
    assert caught.value.http_code == 410  # type: ignore[attr-defined]


async def test_a_refusal_is_raised_on_entering(peer: Peer, client: HttpClient) -> None:
    peer.says(failure(403, "Forbidden"))
    with pytest.raises(Forbidden):
        async with client.watch(CONFIGMAPS):
            raise AssertionError("not reached")


async def test_resuming_ends_after_its_attempts(peer: Peer, client: HttpClient) -> None:
    peer.says(stream(line("ADDED", "a", "6"), cut=True), failure(500, "InternalError", "down"))
    with pytest.raises(Internal, match="down"):
        await collect(client, FROM_5, 2)
    assert len(peer.asked) == 5


async def test_initial_events_are_not_resumed_before_their_end(peer: Peer, client: HttpClient) -> None:
    peer.says(stream(line("ADDED", "a", "6"), cut=True))
    with pytest.raises(Unavailable, match="lost before it could be resumed"):
        await collect(client, Query("ns"), 2, initial_events=True)
    assert peer.asked[0].query["sendInitialEvents"] == "true"
    assert peer.asked[0].query["resourceVersionMatch"] == "NotOlderThan"
    with pytest.raises(Unavailable, match="lost before it could be resumed"):
        await collect(client, Query("ns"), 2)


async def test_initial_events_are_resumed_after_their_end(peer: Peer, client: HttpClient) -> None:
    hold = asyncio.Event()
    end = line("BOOKMARK", "", "20", annotations={"k8s.io/initial-events-end": "true"})
    peer.says(stream(line("ADDED", "a", "6"), end, cut=True), stream(line("ADDED", "b", "21"), then=hold))
    found = await collect(client, Query("ns"), 3, initial_events=True)
    assert [event.initial_events_end for event in found] == [False, True, False]
    resumed = peer.asked[1].query
    assert resumed["resourceVersion"] == "20"
    assert "sendInitialEvents" not in resumed
    hold.set()


@resource("", "v1", "ConfigMap", "configmaps")
class Strict(Object):
    data: dict[str, str] = {}


async def test_a_bookmark_ends_the_initial_events_though_its_object_does_not_fit_the_type(
    peer: Peer, client: HttpClient
) -> None:
    hold = asyncio.Event()
    meta = {"resourceVersion": "20", "annotations": {"k8s.io/initial-events-end": "true"}}
    empty = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta, "data": None}  # as kube-apiserver sends it
    peer.says(stream(orjson.dumps({"type": "BOOKMARK", "object": empty}) + b"\n", then=hold))
    query = Query("ns", lenient=True)
    async with asyncio.timeout(10), client.watch(Strict, query, initial_events=True) as events:
        event = await anext(events)
    assert (event.type, event.resource_version, event.initial_events_end) == ("BOOKMARK", "20", True)
    assert isinstance(event.object, Strict)
    hold.set()


async def test_a_watch_from_nowhere_is_resumed_once_a_change_was_seen(peer: Peer, client: HttpClient) -> None:
    hold = asyncio.Event()
    peer.says(
        stream(line("ADDED", "b", "9"), line("ADDED", "a", "3"), line("MODIFIED", "a", "10"), cut=True),
        stream(line("DELETED", "a", "11"), then=hold),
    )
    found = await collect(client, Query("ns", resource_version="0"), 4)
    assert found[-1].type == "DELETED"
    assert peer.asked[1].query["resourceVersion"] == "10"
    hold.set()


async def test_a_timeout_is_sent_to_the_server_and_ends_the_watch(peer: Peer, quick: Retry) -> None:
    peer.says(stream(line("ADDED", "a", "6")))
    async with (
        HttpClient(Config(peer.url), retry=quick) as client,
        client.watch(CONFIGMAPS, FROM_5, timeout=0.2) as events,
    ):
        found = [event async for event in events]
    assert peer.asked[0].query["timeoutSeconds"] == "1"
    assert [event.object.name for event in found] == ["a"]


async def test_an_event_that_can_not_be_read_is_an_error(peer: Peer, client: HttpClient) -> None:
    peer.says(stream(b"nonsense\n"))
    with pytest.raises(Internal, match="configmaps: the server's answer can't be read"):
        await collect(client, FROM_5, 1)


async def test_watches_do_not_use_up_the_connections_of_requests(peer: Peer, client: HttpClient) -> None:
    hold = asyncio.Event()
    peer.says(stream(then=hold))
    async with asyncio.timeout(20):
        contexts = [client.watch(CONFIGMAPS, FROM_5) for _ in range(150)]
        for context in contexts:
            await context.__aenter__()
        peer.says(json({"metadata": {"name": "a"}, "items": []}))
        assert (await client.list(CONFIGMAPS)).items == []
        for context in contexts:
            await context.__aexit__(None, None, None)
    hold.set()


async def test_a_watch_that_was_left_is_not_opened_again(peer: Peer, client: HttpClient) -> None:
    peer.says(stream(line("ADDED", "a", "6")))
    async with asyncio.timeout(10), client.watch(CONFIGMAPS, FROM_5) as events:
        await anext(events)
    with pytest.raises(RuntimeError, match="the watch is closed"):
        await anext(events)
    assert len(peer.asked) == 1
