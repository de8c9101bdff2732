from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.errors import Forbidden, NotFound, TooManyRequests, Unavailable
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Key, Query
from homeport.runtime.clock import LoopClock, run_virtual
from homeport.runtime.event import CORE, NEW, Recorder
from homeport.runtime.lease import LeaseLost
from homeport.runtime.occurrence import Limits
from realkube import RealKube, find_binaries

CONFIG = Resource("", "v1", "ConfigMap", "configmaps")


def thing(name: str = "a") -> Unstructured:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return Unstructured(apiVersion="v1", kind="ConfigMap", metadata=meta)


class Troubled:
    """A client on a bad day: what is in `trouble` is raised, one for each write."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.trouble: list[Exception] = []
        self.writes = 0
        self.old = False  # a server that does not know events.k8s.io

    def _meet(self, kind: Resource) -> None:
        self.writes += 1
        if self.trouble:
            raise self.trouble.pop(0)
        if self.old and kind == NEW:
            raise NotFound("the server could not find the requested resource")

    async def create(self, obj: Any, options: Any, *, kind: Resource) -> Any:
        self._meet(kind)
        return await self.inner.create(obj, options, kind=kind)

    async def patch(self, kind: Resource, key: Key, patch: Any, options: Any) -> Any:
        self._meet(kind)
        return await self.inner.patch(kind, key, patch, options)


class World:
    def __init__(self, client: Any, **more: Any) -> None:
        self.client = client
        self.troubled = Troubled(client)
        self.recorder = Recorder(self.troubled, "homeport", **more)  # type: ignore[arg-type]

    async def events(self, kind: Resource = CORE) -> list[Unstructured]:
        found = await self.client.list(kind, Query(namespace="default"))
        return sorted(found.items, key=lambda event: str(event["metadata"]["creationTimestamp"]))


@asynccontextmanager
async def embedded(folder: Path, **more: Any) -> AsyncIterator[World]:
    server = await EmbeddedServer.open(None, PKI.ensure(folder / "pki"))
    try:
        yield World(server.client(), **more)
    finally:
        await server.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with embedded(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def kube() -> Iterator[RealKube]:
    found = find_binaries()
    if isinstance(found, str):
        pytest.skip(found)
    with RealKube(found) as started:
        yield started


@pytest.fixture(params=["embedded", "real"])
async def any_world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    if request.param == "embedded":
        async with embedded(tmp_path) as made:
            yield made
        return
    client = HttpClient(load(request.getfixturevalue("kube").kubeconfig))
    try:
        await client.delete_all(CORE, Query(namespace="default"))
        yield World(client)
    finally:
        await client.close()


async def test_repeats_become_a_series_of_one_event(any_world: World) -> None:
    for _ in range(3):
        any_world.recorder.record(thing(), "Waiting", "no bootstrap data", warning=True)
    await any_world.recorder.flush()
    for _ in range(2):
        any_world.recorder.record(thing(), "Waiting", "no bootstrap data", warning=True)
    await any_world.recorder.flush()
    (event,) = await any_world.events(NEW)
    assert event["series"]["count"] == 5
    assert (event["reason"], event["note"], event["type"]) == ("Waiting", "no bootstrap data", "Warning")
    assert (event["regarding"]["name"], event["reportingController"]) == ("a", "homeport")
    (core,) = await any_world.events(CORE)
    assert core["message"] == "no bootstrap data"
    assert core["involvedObject"]["kind"] == "ConfigMap"


async def test_an_older_server_gets_counts_in_the_core_group(any_world: World) -> None:
    any_world.troubled.old = True
    for _ in range(2):
        for _ in range(2):
            any_world.recorder.record(thing(), "Waiting", "no bootstrap data")
        await any_world.recorder.flush()
    (event,) = await any_world.events()
    assert (event["count"], event["source"]["component"]) == (4, "homeport")
    assert event["firstTimestamp"] <= event["lastTimestamp"]


async def test_many_messages_of_one_reason_are_combined_and_the_latest_is_shown(any_world: World) -> None:
    for i in range(13):
        any_world.recorder.record(thing(), "Failed", f"attempt {i}")
        await any_world.recorder.flush()
    events = await any_world.events()
    messages = {event["message"]: event for event in events}
    assert len(messages) == 11
    combined = messages["(combined from similar events): attempt 12"]
    assert combined["series"]["count"] == 3


async def test_events_of_cluster_wide_objects_are_kept_in_default(any_world: World) -> None:
    node = Unstructured(apiVersion="v1", kind="Node", metadata={"name": "n", "uid": "u"})
    any_world.recorder.record(node, "Joined", "it joined")
    await any_world.recorder.flush()
    (event,) = await any_world.events()
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}


async def test_one_object_can_not_flood_the_others_out(world: World) -> None:
    for i in range(60):
        world.recorder.record(thing(), f"Reason{i}", "x")
    world.recorder.record(thing("b"), "Other", "x")
    await world.recorder.flush()
    events = await world.events()
    assert len([e for e in events if e["involvedObject"]["name"] == "a"]) == 25
    assert len([e for e in events if e["involvedObject"]["name"] == "b"]) == 1
    assert world.recorder.dropped == 35


async def test_what_waits_to_be_written_is_bounded(tmp_path: Path) -> None:
    async with embedded(tmp_path, limits=Limits(unwritten=5)) as world:
        for i in range(9):
            world.recorder.record(thing(f"n{i}"), "R", "x")
        assert world.recorder.dropped == 4
        await world.recorder.flush()
        assert len(await world.events()) == 5


async def test_an_event_that_expired_is_created_again(world: World) -> None:
    world.recorder.record(thing(), "R", "x")
    await world.recorder.flush()
    (event,) = await world.events()
    await world.client.delete(CORE, Key("default", event.name))
    world.recorder.record(thing(), "R", "x")
    await world.recorder.flush()
    (again,) = await world.events()
    assert again["series"]["count"] == 2


async def test_an_answer_that_got_lost_makes_no_second_event(world: World) -> None:
    world.recorder.record(thing(), "R", "x")
    (occurrence,) = world.recorder._unwritten
    await world.client.create(world.recorder._new_form(occurrence), kind=NEW)
    await world.recorder.flush()
    assert len(await world.events()) == 1
    assert world.recorder.dropped == 0


async def test_what_can_not_be_written_is_given_up_and_the_rest_goes_on(world: World) -> None:
    gone = Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "x", "namespace": "gone", "uid": "1"})
    world.troubled.trouble = [Forbidden("no"), LeaseLost("not ours")]
    world.recorder.record(thing("a"), "R", "x")
    world.recorder.record(thing("b"), "R", "x")
    world.recorder.record(gone, "R", "x")
    world.recorder.record(thing("c"), "R", "x")
    await world.recorder.flush()
    assert [e["involvedObject"]["name"] for e in await world.events()] == ["c"]
    assert world.recorder.dropped == 3
    assert world.recorder._new, "a missing namespace is no missing group"


async def test_what_is_pending_is_written_at_the_end(world: World) -> None:
    running = asyncio.create_task(world.recorder.run())
    await asyncio.sleep(0)
    world.recorder.record(thing(), "Last", "words")
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert [e["reason"] for e in await world.events()] == ["Last"]


def virtually(folder: Path, story: Any) -> None:
    async def main() -> None:
        clock = LoopClock()
        async with embedded(folder, clock=clock) as world:
            running = asyncio.create_task(world.recorder.run())
            await story(world)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    _run(main())


def _run(main: Coroutine[Any, Any, None]) -> None:
    run_virtual(main)


def test_a_server_that_is_away_gets_the_event_later(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.troubled.trouble = [Unavailable("away"), TooManyRequests("busy", retry_after=30), Unavailable("away")]
        world.recorder.record(thing(), "R", "x")
        await asyncio.sleep(20)
        assert await world.events() == []
        await asyncio.sleep(60)
        assert len(await world.events()) == 1
        assert world.recorder.dropped == 0

    virtually(tmp_path, story)


def test_a_server_that_stays_away_is_given_up(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.troubled.trouble = [Unavailable("away")] * 8
        world.recorder.record(thing(), "R", "x")
        await asyncio.sleep(600)
        assert world.recorder.dropped == 1
        assert world.troubled.writes == 8

    virtually(tmp_path, story)


def test_a_thing_that_happens_all_the_time_is_written_now_and_then(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        for _ in range(1000):
            world.recorder.record(thing(), "Waiting", "still")
            await asyncio.sleep(0.1)
        await asyncio.sleep(20)
        (event,) = await world.events()
        assert event["series"]["count"] == 1000
        assert world.troubled.writes <= 12

    virtually(tmp_path, story)


def test_the_same_after_a_long_time_is_another_event(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        for _ in range(2):
            world.recorder.record(thing(), "Waiting", "still")
            await asyncio.sleep(700)
        assert ["series" in event for event in await world.events()] == [False, False]

    virtually(tmp_path, story)
