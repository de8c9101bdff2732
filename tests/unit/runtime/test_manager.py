from __future__ import annotations

import asyncio
from typing import Any

import pytest

from homeport.client.errors import Unavailable
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.controller import Controller
from homeport.runtime.lease import LEASE, LeaseLost, LeaseTiming
from homeport.runtime.manager import Elected, Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.testing import Plane, establish, plane, virtual
from unit.runtime.runtime_sample import WIDGET, WIDGETS, Sizes, Widget, sized, widget

A = Key("default", "a")
TIMING = LeaseTiming(15.0, 10.0, 2.0)
MODE = Elected("kube-system", "leader", TIMING)
LOCK = Key("kube-system", "leader")


class Partition:
    """A client that can be cut off from its server."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.cut = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name == "watch":
            return found

        async def call(*args: Any, **options: Any) -> Any:
            if self.cut:
                raise Unavailable("no route to host")
            return await found(*args, **options)

        return call


class Note:
    def __init__(self, who: str, seen: list[tuple[str, str]]) -> None:
        self._who = who
        self._seen = seen

    async def reconcile(self, key: Key) -> Wait | None:
        self._seen.append((self._who, key.name))
        return None


def replica(p: Plane, who: str, seen: list[tuple[str, str]], client: Any = None) -> tuple[Manager, asyncio.Task[None]]:
    manager = Manager(client or p.server.client(), mode=MODE, clock=p.clock, who=who)
    manager.add(Controller("note", WIDGET, Note(who, seen), clock=p.clock))
    return manager, asyncio.create_task(manager.run(), name=who)


@virtual
async def test_one_replica_works_the_other_keeps_warm_and_takes_over_without_a_list() -> None:
    async with plane(crds=[WIDGETS]) as p:
        seen: list[tuple[str, str]] = []
        await p.have(widget("a"))
        _, first = replica(p, "first", seen)
        await asyncio.sleep(5)
        manager, second = replica(p, "second", seen)
        await asyncio.sleep(30)
        assert seen == [("first", "a")]
        assert manager.synced
        assert not manager.ready.is_set()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.sleep(3)  # released: no need to wait for the lease to run out
        assert seen == [("first", "a"), ("second", "a")]
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert (await p.client.get(LEASE, LOCK))["spec"]["holderIdentity"] == ""


@virtual
async def test_losing_the_lease_ends_the_manager_and_fences_its_writes() -> None:
    async with plane(crds=[WIDGETS]) as p:
        client = Partition(p.server.client())
        manager, task = replica(p, "first", [], client)
        await asyncio.sleep(5)
        assert await manager.client.create(widget("a"), kind=WIDGET)
        client.cut = True
        await asyncio.sleep(9.5)
        with pytest.raises(ExceptionGroup) as ended:
            await task
        assert ended.value.split(LeaseLost)[1] is None
        client.cut = False  # the network is back, the right to write is not
        with pytest.raises(LeaseLost):
            await manager.client.patch(WIDGET, A, MergePatch({"spec": {"size": 1}}))
        with pytest.raises(LeaseLost):
            manager.fence()
        assert not manager.ready.is_set()


@virtual
async def test_the_lease_is_released_only_when_the_last_reconcile_has_ended() -> None:
    order: list[str] = []

    class Slow:
        async def reconcile(self, key: Key) -> Wait | None:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                await asyncio.sleep(3)  # puts things in order first
                holder = (await p.client.get(LEASE, LOCK))["spec"]["holderIdentity"]
                order.append(f"ended while {holder} held it")
                raise
            return None

    async with plane(crds=[WIDGETS]) as p:
        manager = Manager(p.server.client(), mode=MODE, clock=p.clock, who="first")
        manager.add(Controller("slow", WIDGET, Slow(), clock=p.clock))
        await p.have(widget("a"))
        task = asyncio.create_task(manager.run())
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert order == ["ended while first held it"]
        assert (await p.client.get(LEASE, LOCK))["spec"]["holderIdentity"] == ""


@virtual
async def test_a_kind_that_is_not_there_yet_holds_up_its_own_controller_alone() -> None:
    def add(p: Plane) -> None:
        p.manager.add(Controller("sizes", Widget, Sizes(p), clock=p.clock))
        p.manager.add(Controller("lease", LEASE, Note("lease", seen), clock=p.clock))

    seen: list[tuple[str, str]] = []
    async with plane(add) as p:
        await p.client.create({"metadata": {"name": "x", "namespace": "default"}}, kind=LEASE)
        await asyncio.sleep(10)
        assert seen == [("lease", "x")]
        assert "could not find" in p.manager.health()["widgets.example.com"]
        await establish(p.client, WIDGETS)
        await p.have(widget("a", size=2))
        await p.until(Widget, A, sized(2), timeout=120)
        assert p.manager.health() == {}


@virtual
async def test_an_informer_that_is_asked_for_later_runs_as_well() -> None:
    async with plane(lambda p: None, crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        late = p.manager.informers.get(Widget)
        async with asyncio.timeout(10):
            await late.synced.wait()
        assert A in late.cache
