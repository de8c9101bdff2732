from __future__ import annotations

import asyncio
import gc
import random
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.api.meta import Resource, Unstructured
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.runtime.cache import uid_of, version_of
from homeport.runtime.clock import run_virtual
from homeport.runtime.controller import Controller
from homeport.runtime.informer import metadata_only
from homeport.runtime.lease import LeaseLost
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.own_write import OwnWrites
from homeport.runtime.testing import Plane, plane, virtual
from unit.runtime.runtime_sample import WIDGETS, SlowClient, widget

WIDGET = Resource("example.com", "v1", "Widget", "widgets")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SECRET = Resource("", "v1", "Secret", "secrets")
SELECTED = Query(labels="on=yes")
BY_NAME = Query(fields="metadata.name=a-child")
WRITE = Write(field_manager="test")


class Restless:
    """Writes at random, and each time checks that every cache shows at least what it last wrote for this key."""

    def __init__(self, manager: Manager, chance: random.Random) -> None:
        get = manager.informers.get
        self._client = manager.client
        self._chance = chance
        self._widgets = get(WIDGET).cache
        self._secrets = get(metadata_only(SECRET)).cache
        self._maps = [get(CONFIG_MAP), get(CONFIG_MAP, SELECTED), get(CONFIG_MAP, BY_NAME)]
        self._elsewhere = get(CONFIG_MAP, Query(namespace="kube-system"))
        self._last: dict[tuple[Resource, Key], Any] = {}  # the object as last written, or the uid of one deleted
        self.working: set[Key] = set()
        self.rounds = 0

    async def reconcile(self, key: Key) -> Wait | None:
        assert key not in self.working, "two reconciles of one key at the same time"
        self.working.add(key)
        try:
            self._check(key)
            if self._widgets.get(key) is None:
                return None
            self.rounds += 1
            for _ in range(self._chance.randrange(3)):
                await self._write(key)
                await asyncio.sleep(self._chance.random())
        finally:
            self.working.discard(key)
        return Wait("Again", after=self._chance.random() * 3) if self.rounds < 60 else None

    def _check(self, key: Key) -> None:
        child = Key(key.namespace, f"{key.name}-child")
        self._shows(self._widgets, WIDGET, key, True)
        self._shows(self._secrets, SECRET, child, True)
        last = self._last.get((CONFIG_MAP, child))
        labelled = isinstance(last, dict) and (last["metadata"].get("labels") or {}).get("on") == "yes"
        for informer, selected in zip(self._maps, (True, labelled, child.name == "a-child"), strict=True):
            self._shows(informer.cache, CONFIG_MAP, child, selected)
        assert len(self._elsewhere.cache) == 0

    def _shows(self, cache: Any, kind: Resource, key: Key, selected: bool) -> None:
        last = self._last.get((kind, key))
        if last is None:
            return
        known = cache.get(key)
        if isinstance(last, str):
            assert known is None or uid_of(known) != last, f"{kind.kind} {key} was deleted and is still shown"
        elif selected:
            assert known is not None, f"{kind.kind} {key} was written and is not shown"
            assert version_of(known) >= version_of(last), f"{kind.kind} {key}: a read of the past"
        else:
            assert known is None or version_of(known) >= version_of(last), f"{kind.kind} {key} left the selection"

    async def _write(self, key: Key) -> None:
        child = Key(key.namespace, f"{key.name}-child")
        kind = self._chance.choice((WIDGET, CONFIG_MAP, CONFIG_MAP, SECRET))
        where = key if kind is WIDGET else child
        last = self._last.get((kind, where))
        number = str(self._chance.random())
        made: Unstructured | str
        if kind is WIDGET:
            made = await self._client.patch(kind, where, MergePatch({"status": {"n": number}}), subresource="status")
        elif isinstance(last, Unstructured) and self._chance.random() < 0.4:
            await self._client.delete(kind, where)
            made = uid_of(last)
        else:
            labels = {"on": self._chance.choice(("yes", "no"))}
            meta = {"name": where.name, "namespace": where.namespace, "labels": labels}
            body = {"apiVersion": "v1", "kind": kind.kind, "metadata": meta, "data": {"n": "YQ=="}}
            made = await self._client.apply(body, WRITE, kind=kind, force=True)
        self._last[kind, where] = made


@given(st.integers(0, 2**32), st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_no_reconcile_reads_the_past_however_late_the_caches_are(seed: int, workers: int) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        async with plane(crds=[WIDGETS]) as p:
            manager = Manager(SlowClient(p.server.client(), chance), clock=p.clock)
            reconciler = Restless(manager, chance)
            controller = Controller("restless", WIDGET, reconciler, workers=workers, resync=7.0, clock=p.clock)
            for kind, query in ((CONFIG_MAP, None), (CONFIG_MAP, SELECTED), (CONFIG_MAP, BY_NAME)):
                controller.map(kind, lambda obj: [Key(obj.namespace, obj.name.removesuffix("-child"))], query=query)
            controller.map(metadata_only(SECRET), lambda obj: [Key(obj.metadata.namespace, "a")])
            controller.map(CONFIG_MAP, lambda obj: [], query=Query(namespace="kube-system"))
            manager.add(controller)
            await p.have(*(widget(name) for name in "abc"))
            async with asyncio.timeout(600):
                run = asyncio.create_task(manager.run())
                while reconciler.rounds < 60:
                    await asyncio.sleep(1)
                    if run.done():
                        run.result()
                    assert not controller.metrics.counts["error"], p.logs.text()
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
            assert controller.metrics.counts["error"] == 0, p.logs.text()

    run_virtual(scenario(), seed=seed)


@virtual
async def test_a_key_that_waits_for_the_cache_holds_up_no_worker() -> None:
    class Stuck(SlowClient):
        async def _late(self, events: Any) -> Any:
            async for event in events:
                if event.type == "MODIFIED":
                    await asyncio.sleep(100)
                yield event

    class WriteOnce:
        def __init__(self, client: Any) -> None:
            self._client = client
            self.done: list[tuple[str, float]] = []

        async def reconcile(self, key: Key) -> Wait | None:
            self.done.append((key.name, asyncio.get_running_loop().time() - start))
            if key.name == "writes" and len(self.done) == 1:
                await self._client.patch(WIDGET, key, MergePatch({"status": {"n": 1}}), subresource="status")
                return Wait("Again", after=1.0)
            return None

    async with plane(crds=[WIDGETS]) as p:
        manager = Manager(Stuck(p.server.client(), random.Random(0)), clock=p.clock)
        reconciler = WriteOnce(manager.client)
        controller = manager.add(Controller("once", WIDGET, reconciler, workers=1, clock=p.clock))
        await p.have(widget("writes"))
        start = asyncio.get_running_loop().time()
        run = asyncio.create_task(manager.run())
        await asyncio.sleep(10)
        assert list(controller.held) == [Key("default", "writes")]
        controller.queue.add(Key("default", "other"))
        await asyncio.sleep(200)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        (_, first), other, again = reconciler.done[:3]
        assert first < 1
        assert other[0] == "other"
        assert other[1] < 11
        assert again[0] == "writes"
        assert 100 <= again[1] < 102
        assert any(
            "the cache does not show the last write yet" in line for line in p.logs.lines(Key("default", "writes"))
        )


@virtual
async def test_dry_runs_and_other_writers_do_not_delay_a_key() -> None:
    seen: list[int] = []

    class Dry:
        def __init__(self, p: Plane) -> None:
            self._p = p

        async def reconcile(self, key: Key) -> Wait | None:
            if len(seen) >= 5:
                return None
            patch = MergePatch({"spec": {"size": 9}})
            await self._p.manager.client.patch(WIDGET, key, patch, Write(dry_run=True))
            await self._p.client.patch(WIDGET, key, MergePatch({"metadata": {"labels": {"n": str(len(seen))}}}))
            seen.append(1)
            return Wait("Again", after=1.0)

    async with plane(lambda p: p.manager.add(Controller("dry", WIDGET, Dry(p), clock=p.clock)), crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        await p.settle(quiet=2.0)
        assert len(seen) == 5
        assert not p.manager.controllers[0]._expected


async def test_a_write_that_outlasts_the_lease_is_given_up() -> None:
    class Hanging:
        get = list = watch = close = None

        async def patch(self, *args: Any, **options: Any) -> Any:
            await asyncio.Event().wait()

    left = [0.05]

    def fence() -> float:
        if not left:
            raise LeaseLost("gone")
        return left.pop()

    client: Any = OwnWrites(Hanging(), fence=fence)  # type: ignore[arg-type]
    with pytest.raises(LeaseLost):
        await client.patch(WIDGET, Key("default", "a"), MergePatch({}))


@virtual
async def test_a_task_that_outlives_its_reconcile_keeps_none_of_the_written_objects() -> None:
    written: list[weakref.ref[Any]] = []
    tasks: list[asyncio.Task[Any]] = []

    class Starter:
        """As a reconcile that begins to watch a workload cluster, which goes on for as long as the cluster exists."""

        def __init__(self, client: Any) -> None:
            self._client = client

        async def reconcile(self, key: Key) -> Wait | None:
            if not tasks:
                tasks.append(asyncio.create_task(self._write_later(key)))
                await self._write(key, 1)
            return None

        async def _write_later(self, key: Key) -> None:
            await asyncio.sleep(5)
            await self._write(key, 2)
            await asyncio.sleep(1000)

        async def _write(self, key: Key, number: int) -> None:
            patch = MergePatch({"status": {"n": number}})
            written.append(weakref.ref(await self._client.patch(WIDGET, key, patch, subresource="status")))

    def install(p: Plane) -> None:
        p.manager.add(Controller("starter", WIDGET, Starter(p.manager.client), clock=p.clock))

    async with plane(install, crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        await asyncio.sleep(10)
        gc.collect()
        assert [each() for each in written] == [None, None]
        assert not tasks[0].done()
        tasks[0].cancel()
