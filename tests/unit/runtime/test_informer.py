from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import Invalid, Unavailable
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.cache import key_of, uid_of, version_of
from homeport.runtime.clock import run_virtual
from homeport.runtime.definition import CRD
from homeport.runtime.informer import Informer, metadata_only
from homeport.runtime.informers import Informers
from homeport.runtime.testing import Plane, establish, plane, virtual
from present import present
from unit.runtime.runtime_sample import WIDGET, WIDGETS, SlowClient, Widget, widget

A = Key("default", "a")


class Follower:
    """Keeps the state that the handlers of an informer tell, and checks that they tell it in order."""

    def __init__(self, informer: Informer[Any]) -> None:
        self.state: dict[Key, Any] = {}
        self.told: list[str] = []
        informer.on_change(self._changed)

    def _changed(self, old: Any, new: Any, initial: bool) -> None:
        shown = new if new is not None else old
        key = key_of(shown)
        known = self.state.get(key)
        assert (known is None) == (old is None), "told of a change of what was not there, or twice of its appearance"
        if known is not None and new is not None:
            assert uid_of(known) == uid_of(new)
        self.told.append(("+" if old is None else "-" if new is None else "~") + key.name + ("!" if initial else ""))
        if new is None:
            del self.state[key]
        else:
            self.state[key] = new


class Flaky(SlowClient):
    """Besides being late, its watches end, fail or lose their past at random."""

    def __init__(self, inner: Any, chance: random.Random, p: Plane) -> None:
        super().__init__(inner, chance)
        self._plane = p
        self.calm = False

    @asynccontextmanager
    async def watch(self, kind: Any, *args: Any, **options: Any) -> Any:
        if not self.calm and self._chance.random() < 0.2:
            raise Unavailable("no connection")
        async with super().watch(kind, *args, **options) as events:
            yield self._broken(events)

    async def _broken(self, events: Any) -> Any:
        async for event in events:
            yield event
            luck = 1.0 if self.calm else self._chance.random()
            if luck < 0.1:
                return
            if luck < 0.2:
                raise Unavailable("the connection was lost")
            if luck < 0.3:
                await self._plane.server.store.compact(self._plane.server.store.revision)
                return


OPS = st.lists(st.tuples(st.sampled_from(["make", "change", "delete", "remake"]), st.sampled_from("abc")), max_size=30)


@given(OPS, st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_whatever_happens_to_the_watch_handlers_end_with_the_truth(ops: list[tuple[str, str]], seed: int) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        async with plane(crds=[WIDGETS]) as p:
            client = Flaky(p.client, chance, p)
            informer: Informer[Widget] = Informer(client, Widget)
            follower = Follower(informer)
            run = asyncio.create_task(informer.run())
            for op, name in ops:
                await change(p, op, name)
                if chance.random() < 0.5:
                    await asyncio.sleep(chance.random() * 3)
            client.calm = True
            await asyncio.sleep(300)
            run.cancel()
            truth = {key_of(obj): obj for obj in (await p.client.list(Widget)).items}
            for state in ({key_of(obj): obj for obj in informer.cache}, follower.state):
                assert {k: (uid_of(o), version_of(o)) for k, o in state.items()} == {
                    k: (uid_of(o), version_of(o)) for k, o in truth.items()
                }
            assert informer.error == ""

    run_virtual(scenario(), seed=seed)


async def change(p: Plane, op: str, name: str) -> None:
    there = p.server.store.get("widgets.example.com", f"default/{name}") is not None
    key = Key("default", name)
    if op in ("delete", "remake") and there:
        await p.client.delete(WIDGET, key)
        there = False
    if op in ("make", "remake") and not there:
        await p.client.create(widget(name), kind=WIDGET)
    elif op == "change" and there:
        await p.client.patch(WIDGET, key, MergePatch({"spec": {"size": random.randrange(1000)}}))


@asynccontextmanager
async def running(informer: Informer[Any]) -> Any:
    task = asyncio.create_task(informer.run())
    try:
        yield
    finally:
        task.cancel()


async def shown(informer: Informer[Any], key: Key) -> None:
    async with asyncio.timeout(60):
        while key not in informer.cache:
            await informer.cache.news(key=key)


@virtual
async def test_a_relist_tells_the_differences_alone() -> None:
    async with plane(crds=[WIDGETS]) as p:
        await p.have(widget("same"), widget("changed"), widget("remade"), widget("gone"))
        informer: Informer[Widget] = Informer(p.client, Widget)
        follower = Follower(informer)
        async with running(informer):
            await informer.synced.wait()
        assert sorted(follower.told) == ["+changed!", "+gone!", "+remade!", "+same!"]
        follower.told.clear()
        for op, name in (("change", "changed"), ("remake", "remade"), ("delete", "gone"), ("make", "new")):
            await change(p, op, name)
        await p.server.store.compact(p.server.store.revision)
        async with running(informer):
            await asyncio.sleep(1)
        assert sorted(follower.told) == ["+new", "+remade", "-gone", "-remade", "~changed"]
        assert informer.restarts == 1


@virtual
async def test_a_lost_watch_is_resumed_without_a_new_list() -> None:
    class Cut:
        def __init__(self, inner: Any) -> None:
            self._inner = inner
            self.asked: list[str] = []
            self.list = inner.list

        @asynccontextmanager
        async def watch(self, kind: Any, query: Query, **options: Any) -> Any:
            self.asked.append("list" if options.get("initial_events") else "resume")
            async with self._inner.watch(kind, query, **options) as events:
                yield self._once(events)

        async def _once(self, events: Any) -> Any:
            async for event in events:
                yield event
                if event.type == "MODIFIED":
                    raise Unavailable("the connection was lost")

    async with plane(crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        client = Cut(p.client)
        informer: Informer[Widget] = Informer(client, Widget)  # type: ignore[arg-type]
        async with running(informer):
            for size in (1, 2):
                await asyncio.sleep(1)
                await p.client.patch(WIDGET, A, MergePatch({"spec": {"size": size}}))
            await asyncio.sleep(1)
        assert client.asked[:3] == ["list", "resume", "resume"]
        assert present(informer.cache.get(A)).spec.size == 2


@virtual
async def test_an_older_server_is_listed_page_by_page() -> None:
    class Older:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def watch(self, kind: Any, query: Query, *, initial_events: bool = False) -> Any:
            if initial_events:
                raise Invalid("sendInitialEvents is forbidden")
            return self._inner.watch(kind, query)

    async with plane(crds=[WIDGETS]) as p:
        await p.have(*(widget(f"w{n}") for n in range(1200)))
        informer: Informer[Widget] = Informer(Older(p.client), Widget)  # type: ignore[arg-type]
        async with running(informer):
            await informer.synced.wait()
            assert len(informer.cache) == 1200
            await p.have(widget("a"))
            await shown(informer, A)


@virtual
async def test_a_kind_may_appear_go_and_come_back() -> None:
    async with plane() as p:
        informer: Informer[Widget] = Informer(p.client, Widget)
        follower = Follower(informer)
        async with running(informer):
            await informer.settled.wait()
            assert "could not find the requested resource" in informer.error
            assert not informer.synced.is_set()
            await establish(p.client, WIDGETS)
            await informer.synced.wait()
            assert informer.error == ""
            await p.have(widget("a"))
            await shown(informer, A)
            first = present(informer.cache.get(A)).metadata.uid
            await p.client.delete(CRD, Key("", WIDGET.qualified))
            await p.gone(CRD, Key("", WIDGET.qualified), timeout=60)
            await asyncio.sleep(60)
            await establish(p.client, WIDGETS)
            await p.have(widget("a"))
            await asyncio.sleep(60)
            assert present(informer.cache.get(A)).metadata.uid != first
        assert follower.state.keys() == {A}


@virtual
async def test_an_optional_kind_that_the_server_lacks_is_empty_until_it_has_it() -> None:
    async with plane() as p:
        informer: Informer[Widget] = Informer(p.client, Widget)
        informer.optional = True
        follower = Follower(informer)
        async with running(informer):
            await informer.synced.wait()
            assert (informer.error, len(informer.cache)) == ("", 0)
            await establish(p.client, WIDGETS)
            await p.have(widget("a"))
            await asyncio.sleep(60)
            assert follower.state.keys() == {A}


@virtual
async def test_a_handler_added_late_gets_existing_objects() -> None:
    async with plane(crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        informer: Informer[Widget] = Informer(p.client, Widget)
        async with running(informer):
            await informer.synced.wait()
            assert Follower(informer).told == ["+a!"]


@virtual
async def test_a_handler_that_fails_keeps_nothing_from_the_others() -> None:
    def broken(old: Any, new: Any, initial: bool) -> None:
        raise ZeroDivisionError

    async with plane(crds=[WIDGETS]) as p:
        informer: Informer[Widget] = Informer(p.client, Widget)
        informer.on_change(broken)
        follower = Follower(informer)
        async with running(informer):
            await informer.synced.wait()
            await p.have(widget("a"))
            await shown(informer, A)
        assert follower.told == ["+a"]
        assert any("a handler failed" in line for line in p.logs.lines(A))


@virtual
async def test_bookmarks_move_the_revision_of_a_quiet_kind() -> None:
    class Marked:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        @asynccontextmanager
        async def watch(self, kind: Any, query: Query, **options: Any) -> Any:
            # The local client's watch ends with a bookmark.
            async with self._inner.watch(kind, query, timeout=5.0, **options) as events:
                yield events

    async with plane(crds=[WIDGETS]) as p:
        informer: Informer[Widget] = Informer(Marked(p.client), Widget)  # type: ignore[arg-type]
        async with running(informer):
            await informer.synced.wait()
            await p.client.create({"metadata": {"name": "other"}}, kind=NAMESPACE)
            async with asyncio.timeout(60):
                await informer.cache.news(revision=p.server.store.revision)


NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")


@virtual
async def test_a_server_that_was_put_back_in_time_is_listed_again() -> None:
    async with plane(crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        informer: Informer[Widget] = Informer(p.client, Widget)
        informer._revision = str(p.server.store.revision + 1000)  # of before the server was restored
        async with running(informer):
            await informer.synced.wait()
            assert len(informer.cache) == 1
        assert "put back in time" in "".join(p.logs.lines())


@virtual
async def test_namespaces_labels_and_everything_are_informers_of_their_own_and_shared() -> None:
    async with plane() as p:
        for name, labels in (("a", {"x": "1"}), ("b", {})):
            body = {"metadata": {"name": name, "namespace": "default", "labels": labels}}
            await p.client.create(body, kind=CONFIG_MAP)
        await p.client.create({"metadata": {"name": "c", "namespace": "kube-system"}}, kind=CONFIG_MAP)
        informers = Informers(p.client)
        everything, default = informers.get(CONFIG_MAP), informers.get(CONFIG_MAP, Query(namespace="default"))
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[None]] = []
            informers.start(lambda run, name: tasks.append(group.create_task(run, name=name)))
            labelled = informers.get(CONFIG_MAP, Query(labels="x=1"))  # after the start, and yet it runs
            assert informers.get(CONFIG_MAP, Query(labels="x=1")) is labelled
            for informer in informers:
                await informer.synced.wait()
            for task in tasks:
                task.cancel()
        counts = [len([o for o in i.cache if o.name in "abc"]) for i in (everything, default, labelled)]
        assert counts == [3, 2, 1]
        assert len(informers.of(CONFIG_MAP)) == 3


@virtual
async def test_an_informer_of_metadata_keeps_nothing_else() -> None:
    async with plane() as p:
        body = {"metadata": {"name": "a", "namespace": "default", "labels": {"x": "1"}}, "data": {"big": "x" * 1000}}
        await p.client.create(body, kind=CONFIG_MAP)
        informer = Informer(p.client, metadata_only(CONFIG_MAP))
        async with running(informer):
            await informer.synced.wait()
        found = present(informer.cache.get(A))
        assert found.metadata.labels == {"x": "1"}
        assert not hasattr(found, "data")
        assert metadata_only(CONFIG_MAP) is metadata_only(CONFIG_MAP)


@virtual
async def test_caches_do_not_keep_managed_fields_and_writing_back_does_not_lose_them() -> None:
    async with plane() as p:
        await p.client.create({"metadata": {"name": "a", "namespace": "default"}, "data": {"k": "1"}}, kind=CONFIG_MAP)
        informer: Informer[Unstructured] = Informer(p.client, CONFIG_MAP)
        async with running(informer):
            await informer.synced.wait()
        found = present(informer.cache.get(A))
        assert "managedFields" not in found.metadata
        written = await p.client.replace({**found, "data": {"k": "2"}}, kind=CONFIG_MAP)
        assert [entry["manager"] for entry in written.metadata["managedFields"]] == ["user"]


@virtual
async def test_a_look_keeps_the_objects_that_are_known_already_and_takes_what_has_changed() -> None:
    async with plane(crds=[WIDGETS]) as p:
        await p.have(widget("same"), widget("changed"), widget("remade"))
        slimmed: list[str] = []

        def slim(found: Widget) -> Widget:
            slimmed.append(found.metadata.name)
            return found

        informer: Informer[Widget] = Informer(p.client, Widget, slim=slim)
        follower = Follower(informer)
        await informer.look()
        known = informer.cache.get(Key("default", "same"))
        slimmed.clear()
        follower.told.clear()
        await change(p, "change", "changed")
        await change(p, "remake", "remade")
        await informer.look()
        assert sorted(follower.told) == ["+remade", "-remade", "~changed"]
        assert sorted(slimmed) == ["changed", "remade"]
        assert informer.cache.get(Key("default", "same")) is known
