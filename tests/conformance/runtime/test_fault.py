"""Whatever happens between a controller and its server, every object reaches its goal and nothing is done twice."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from conformance.runtime.front import refusing
from conformance.runtime.sample import CONFIG_MAP, WIDGET, OneChild, Widget, right_size, sizes, widget
from conformance.runtime.world import World, running, until
from homeport.api.meta import Unstructured
from homeport.client.credential import TokenFile
from homeport.client.errors import Conflict
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.clock import SystemClock
from homeport.runtime.controller import Controller
from homeport.runtime.informer import Informer
from homeport.runtime.lease import LEASE, LeaseTiming
from homeport.runtime.manager import Elected, Manager
from homeport.runtime.outcome import Wait


async def make(world: World, ns: str, first: int, last: int) -> None:
    for n in range(first, last):
        await world.client.create(widget(f"w{n}", ns, n + 1), kind=WIDGET)


async def all_right(world: World, ns: str, number: int) -> None:
    for n in range(number):
        await until(world.client, Widget, Key(ns, f"w{n}"), right_size)


async def test_objects_reach_their_goal_and_are_then_left_alone(world: World, ns: str) -> None:
    manager = Manager(world.client)
    sizes(manager, ns)
    await make(world, ns, 0, 3)
    async with running(manager):
        await make(world, ns, 3, 6)
        await all_right(world, ns, 6)
        await world.client.patch(WIDGET, Key(ns, "w0"), MergePatch({"spec": {"size": 77}}))
        found = await until(world.client, Widget, Key(ns, "w0"), lambda w: w.status.size == 77)
        assert found.status.conditions[0]["observedGeneration"] == 2


async def test_a_server_that_restarts_in_mid_watch(world: World, ns: str) -> None:
    manager = Manager(world.client)
    reconciler = sizes(manager, ns)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(running(manager))
        await make(world, ns, 0, 3)
        await all_right(world, ns, 3)
        if world.name == "local":  # controllers in its process end with it
            await stack.aclose()
        await world.restart()
        if world.name == "local":
            manager = Manager(world.client)
            reconciler = sizes(manager, ns)
            await stack.enter_async_context(running(manager))
        await make(world, ns, 3, 6)
        await all_right(world, ns, 6)
        assert len(reconciler.informer.cache) == 6
        assert manager.health() == {}


async def test_a_past_that_is_gone_is_listed_again(world: World, ns: str) -> None:
    """While nobody watched: one changed, one was deleted, one made again, one is new."""
    await make(world, ns, 0, 4)
    informer: Informer[Widget] = Informer(world.client, Widget, Query(namespace=ns))
    told: list[tuple[str, str]] = []

    def note(old: Any, new: Any, initial: bool) -> None:
        shown = new if new is not None else old
        told.append(("+" if old is None else "-" if new is None else "~", shown.metadata.name))

    async with asyncio.TaskGroup() as group:
        first = group.create_task(informer.run())
        await informer.synced.wait()
        first.cancel()
    informer.on_change(note)
    told.clear()
    await world.client.patch(WIDGET, Key(ns, "w0"), MergePatch({"spec": {"size": 9}}))
    for name in ("w1", "w2"):
        await world.client.delete(WIDGET, Key(ns, name))
    await world.client.create(widget("w2", ns, 5), kind=WIDGET)
    await make(world, ns, 4, 5)
    await world.forget()
    informer._client = world.client
    async with asyncio.TaskGroup() as group, asyncio.timeout(30):
        again = group.create_task(informer.run())
        while Key(ns, "w4") not in informer.cache:
            await informer.cache.news(key=Key(ns, "w4"))
        again.cancel()
    assert sorted(told) == [("+", "w2"), ("+", "w4"), ("-", "w1"), ("-", "w2"), ("~", "w0")]
    assert informer.restarts == 1


async def test_a_storm_of_conflicts(world: World, ns: str) -> None:
    """Eight writers count in one object by read and replace; none may lose another's step."""
    key = Key(ns, "counter")
    await world.client.create({"metadata": {"name": key.name, "namespace": ns}, "data": {"n": "0"}}, kind=CONFIG_MAP)
    conflicts = 0

    class Count:
        def __init__(self, client: Any) -> None:
            self._client = client
            self.steps = 0

        async def reconcile(self, key: Key) -> Wait | None:
            nonlocal conflicts
            if self.steps == 5:
                return None
            found = await self._client.get(CONFIG_MAP, key)
            found["data"]["n"] = str(int(found["data"]["n"]) + 1)
            try:
                await self._client.replace(found, kind=CONFIG_MAP)
            except Conflict:
                conflicts += 1
                raise
            self.steps += 1
            return Wait("More", after=0.0)

    async with AsyncExitStack() as stack:
        for n in range(8):
            manager = Manager(world.client)
            query = Query(namespace=ns, fields="metadata.name=counter")
            manager.add(Controller(f"count-{n}", CONFIG_MAP, Count(manager.client), query=query))
            await stack.enter_async_context(running(manager))
        await until(world.client, CONFIG_MAP, key, lambda found: found["data"]["n"] == "40")
    assert conflicts > 0, "nobody was in anybody's way: the test tested nothing"


async def test_a_server_that_asks_to_come_back_later(world: World, ns: str) -> None:
    async with world.front() as front:
        front.answer, came = refusing(429, "TooManyRequests", times=6, retry_after=1)
        manager = Manager(front.client())
        sizes(manager, ns)
        await make(world, ns, 0, 2)
        async with running(manager):
            await all_right(world, ns, 2)
        assert len(came) == 6
        # Two keys, three refusals each, a second of rest after every one.
        assert came[-1] - came[0] >= 1.9


@pytest.mark.parametrize("delay", [0.2])
async def test_a_watch_that_is_late(world: World, ns: str, delay: float) -> None:
    async with world.front() as front:
        front.delay = delay
        manager = Manager(front.client())
        one = OneChild(manager, ns)
        controller = Controller("child", Widget, one, query=Query(namespace=ns))
        controller.map(CONFIG_MAP, lambda obj: [Key(ns, obj.metadata["labels"]["parent"])], query=one.informer.query)
        manager.add(controller)
        await make(world, ns, 0, 10)
        async with running(manager), asyncio.timeout(30):
            for n in range(10):
                while not one.informer.cache.by("parent", f"w{n}"):
                    await one.informer.cache.news(revision=one.informer.cache.revision + 1)
            await make(world, ns, 10, 12)
            for n in (10, 11):
                while not one.informer.cache.by("parent", f"w{n}"):
                    await one.informer.cache.news(revision=one.informer.cache.revision + 1)
        made = (await world.client.list(CONFIG_MAP, Query(namespace=ns, labels="parent"))).items
        assert sorted(obj.metadata["labels"]["parent"] for obj in made) == sorted(f"w{n}" for n in range(12))


async def test_connections_that_break_all_the_time(world: World, ns: str) -> None:
    async with world.front() as front:
        manager = Manager(front.client())
        reconciler = sizes(manager, ns)
        async with running(manager):
            for n in range(12):
                await make(world, ns, n, n + 1)
                if n % 3 == 0:
                    front.cut()
            await all_right(world, ns, 12)
            assert len(reconciler.informer.cache) == 12
        assert front.watches > 1, "no watch was cut"


async def test_a_connection_that_says_nothing_any_more(world: World, ns: str) -> None:
    async with world.front() as front:
        manager = Manager(front.client())
        sizes(manager, ns)
        async with running(manager):
            await make(world, ns, 0, 2)
            await all_right(world, ns, 2)
            front.stall()
            await make(world, ns, 2, 4)
            await world.client.delete(WIDGET, Key(ns, "w0"))
            front.cut()
            front.resume()
            for n in (2, 3):
                await until(world.client, Widget, Key(ns, f"w{n}"), right_size)


async def test_a_token_that_expires_and_is_renewed(world: World, ns: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    async with world.front() as front:
        valid = "first"
        refused = itertools.count()

        def guard(request: web.BaseRequest) -> web.Response | None:
            if request.headers.get("Authorization") == f"Bearer {valid}":
                return None
            next(refused)
            body = {
                "kind": "Status",
                "status": "Failure",
                "reason": "Unauthorized",
                "message": "Unauthorized",
                "code": 401,
            }
            return web.json_response(body, status=401)

        front.answer = guard
        manager = Manager(front.client(TokenFile(file)))
        reconciler = sizes(manager, ns)
        async with running(manager):
            await make(world, ns, 0, 2)
            await all_right(world, ns, 2)
            valid = "second"
            front.cut()
            await make(world, ns, 2, 3)
            async with asyncio.timeout(20):
                while not manager.health():  # noqa: ASYNC110  (there is nothing to watch: it can't see anything)
                    await asyncio.sleep(0.02)
            file.write_text("second")
            await all_right(world, ns, 3)
            assert reconciler.informer.restarts == 0
        assert next(refused) > 0


class JumpingClock(SystemClock):
    offset = 0.0

    def now(self) -> float:
        return super().now() + self.offset


def _is_newer(lease: Unstructured, than: str) -> bool:
    return lease.resource_version != than


async def test_a_leader_keeps_its_lease_when_the_clock_jumps(world: World, ns: str) -> None:
    clock = JumpingClock()
    timing = LeaseTiming(2.0, 1.5, 0.1)
    manager = Manager(world.client, mode=Elected(ns, "leader", timing), clock=clock)
    sizes(manager, ns)
    async with running(manager):
        for n, jump in enumerate((86_400.0, -172_800.0, 86_400.0)):
            clock.offset += jump
            before = (await world.client.get(LEASE, Key(ns, "leader"))).resource_version
            await make(world, ns, n, n + 1)
            await until(world.client, Widget, Key(ns, f"w{n}"), right_size)
            await until(world.client, LEASE, Key(ns, "leader"), partial(_is_newer, than=before))
        lease = await world.client.get(LEASE, Key(ns, "leader"))
        assert lease["spec"]["leaseTransitions"] == 0
        assert manager.lease is not None
        assert manager.lease.held
