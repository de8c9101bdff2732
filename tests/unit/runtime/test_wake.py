"""What wakes a controller besides the kinds it was made for."""

from __future__ import annotations

import asyncio

import pytest

from homeport.api.meta import Resource, Unstructured
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.controller import Controller
from homeport.runtime.informer import Informer
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Scope
from homeport.runtime.share import Share
from homeport.runtime.testing import Plane, plane, virtual
from homeport.runtime.wake import own_key
from homeport.runtime.work import key_in_work
from unit.runtime.runtime_sample import WIDGET, WIDGETS, Sizes, Widget, widget

A = Key("default", "a")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SECRET = Resource("", "v1", "Secret", "secrets")


class Noting:
    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.in_work: list[Key | None] = []

    async def reconcile(self, key: Key) -> Wait | None:
        self.keys.append(key)
        self.in_work.append(key_in_work())
        return None


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def noting(p: Plane) -> tuple[Noting, Controller]:
    made = Noting()
    return made, p.manager.add(Controller("noting", CONFIG_MAP, made))


@virtual
async def test_a_key_is_woken_from_outside_unless_it_is_somebody_elses() -> None:
    async with plane() as p:
        made, controller = noting(p)
        controller.share = Share(lambda shard: shard != "theirs", lambda key, obj: key.name, controller.cache, p.clock)
        await p.start()
        controller.wake(Key("default", "ours"))
        controller.wake(Key("default", "theirs"))
        await p.settle()
        assert made.keys == [Key("default", "ours")]


@virtual
async def test_all_keys_are_woken() -> None:
    async with plane() as p:
        made, controller = noting(p)
        await p.start()
        await p.have(config_map("a"), config_map("b"))
        await p.settle()
        made.keys.clear()
        controller.wake_all()
        await p.settle()
        assert sorted(made.keys) == [Key("default", "a"), Key("default", "b")]


@virtual
async def test_a_kind_is_watched_from_the_middle_of_the_work_on() -> None:
    async with plane() as p:
        made, controller = noting(p)
        await p.start()
        await p.have({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "before"}})
        controller.watch(SECRET, lambda obj: [Key("default", f"for-{obj.name}")])
        await p.settle()
        await p.have({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "after"}})
        await p.settle()
        assert made.keys == [Key("default", "for-before"), Key("default", "for-after")]


async def test_only_a_controller_of_a_manager_can_watch() -> None:
    with pytest.raises(RuntimeError, match="belongs to no manager"):
        Controller("alone", CONFIG_MAP, Noting()).watch(SECRET, lambda obj: ())


@virtual
async def test_a_reconcile_knows_its_key() -> None:
    async with plane() as p:
        made, controller = noting(p)
        await p.start()
        controller.wake(Key("default", "a"))
        await p.settle()
        assert made.in_work == [Key("default", "a")]
        assert key_in_work() is None


async def test_an_informer_that_changes_servers_tells_what_differs() -> None:
    async with plane() as one, plane() as two:
        await one.have(config_map("both"), config_map("first"))
        await two.have(config_map("second"), config_map("both"))
        informer: Informer[Unstructured] = Informer(one.client, CONFIG_MAP, measured=False)
        told: list[tuple[str, str]] = []
        informer.on_change(lambda old, new, initial: told.append((old.name if old else "", new.name if new else "")))
        running = asyncio.create_task(informer.run())
        await informer.synced.wait()
        assert sorted(told) == [("", "both"), ("", "first")]
        told.clear()
        running.cancel()
        informer.use(two.client)
        assert not informer.synced.is_set()
        running = asyncio.create_task(informer.run())
        await informer.synced.wait()
        # An object of the same name is another one on another server.
        assert sorted(told) == [("", "both"), ("", "second"), ("both", ""), ("first", "")]
        running.cancel()


@virtual
async def test_a_dropped_informer_asks_no_more() -> None:
    async with plane() as p:
        informer = p.manager.informers.get(SECRET)
        _, _ = noting(p)
        await p.start()
        p.manager.informers.drop(SECRET)
        await p.settle()
        await p.have({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "unseen"}})
        await p.settle()
        assert len(informer.cache) == 0
        assert p.manager.informers.of(SECRET) == []


@virtual
async def test_unneeded_fields_are_dropped_before_caching() -> None:
    def slim(obj: Unstructured) -> Unstructured:
        obj.pop("data", None)
        return obj

    async with plane() as p:
        await p.have({**config_map("a"), "data": {"x": "y"}})
        informer: Informer[Unstructured] = Informer(p.client, CONFIG_MAP, slim=slim)
        running = asyncio.create_task(informer.run())
        await informer.synced.wait()
        changed = await p.client.patch(CONFIG_MAP, Key("default", "a"), MergePatch({"data": {"x": "z"}}))
        while informer.cache.revision < int(changed.resource_version):
            await informer.cache.news(revision=int(changed.resource_version))
        assert [("data" in obj) for obj in informer.cache] == [False]
        running.cancel()


@virtual
async def test_a_status_of_our_own_is_no_reason_to_look_again_but_one_of_others_is() -> None:
    async with plane(crds=(WIDGETS,)) as p:
        sizes = Sizes(p)
        p.manager.add(Controller("sizes", Widget, sizes, clock=p.clock, status_wakes=False))
        await p.start()
        await p.have(widget("a", size=1))
        await p.until(Widget, Key("default", "a"), lambda w: w.status.size == 1)
        await p.settle()
        assert len(sizes.seen) == 1
        await p.client.patch(Widget, Key("default", "a"), MergePatch({"status": {"size": 7}}), subresource="status")
        await p.until(Widget, Key("default", "a"), lambda w: w.status.size == 1)
        await p.settle()
        assert len(sizes.seen) == 2


@virtual
async def test_a_status_that_others_write_while_we_work_is_looked_at() -> None:
    async with plane(crds=(WIDGETS,)) as p:
        key = Key("default", "a")

        class Disturbed(Sizes):
            async def reconcile(self, key: Key) -> Wait | None:
                wait = await super().reconcile(key)
                if len(self.seen) == 1:  # after our own write, before the loop has ended
                    patch = MergePatch({"status": {"size": 7}})
                    await p.client.patch(Widget, key, patch, subresource="status")
                    await asyncio.sleep(1.0)
                return wait

        sizes = Disturbed(p)
        p.manager.add(Controller("sizes", Widget, sizes, clock=p.clock, status_wakes=False))
        await p.start()
        await p.have(widget("a", size=1))
        await p.settle()
        await asyncio.sleep(2.0)
        assert (await p.client.get(Widget, key)).status.size == 1
        assert len(sizes.seen) == 2


@virtual
async def test_labels_and_specs_that_change_beside_our_status_are_looked_at() -> None:
    async with plane(crds=(WIDGETS,)) as p:
        sizes = Sizes(p)
        p.manager.add(Controller("sizes", Widget, sizes, clock=p.clock, status_wakes=False))
        await p.start()
        await p.have(widget("a", size=1))
        await p.settle()
        for patch in ({"metadata": {"labels": {"a": "b"}}}, {"spec": {"size": 2}}):
            await p.client.patch(Widget, Key("default", "a"), MergePatch(patch))
            await p.settle()
        assert len(sizes.seen) == 3
        assert (await p.client.get(Widget, Key("default", "a"))).status.size == 2


class Labelling:
    """Gives its object, and the ConfigMap of the same name, a label; then goes on with both."""

    def __init__(self, p: Plane, *, locked: bool = True, failures: int = 0) -> None:
        self._client, self._locked, self._failures = p.manager.client, locked, failures
        self._widgets, self._maps = (p.manager.informers.get(kind).cache for kind in (WIDGET, CONFIG_MAP))
        self.looks = 0
        self.pause = 0.0  # between the writes and the end

    async def reconcile(self, key: Key) -> Wait | None:
        self.looks += 1
        for kind, cache in ((WIDGET, self._widgets), (CONFIG_MAP, self._maps)):
            found = cache.get(key)
            if found is not None and not found.metadata.get("labels"):
                state = {"resourceVersion": found.resource_version} if self._locked else {}
                await self._client.patch(kind, key, MergePatch({"metadata": {"labels": {"a": "b"}, **state}}))
        await asyncio.sleep(self.pause)
        if self._failures:
            self._failures -= 1
            raise RuntimeError("not to the end")
        return None

    def control(self, p: Plane) -> None:
        controller = Controller("labelling", WIDGET, self, clock=p.clock, own_writes_wake=False)
        p.manager.add(controller.map(CONFIG_MAP, own_key))


async def looks_at_both(p: Plane, made: Labelling) -> int:
    made.control(p)
    await p.have(config_map("a"), widget("a"))
    await p.start()
    await p.settle()
    await asyncio.sleep(5.0)
    assert {(await p.client.get(kind, A)).metadata["labels"]["a"] for kind in (WIDGET, CONFIG_MAP)} == {"b"}
    return made.looks


@virtual
async def test_whoever_goes_on_with_what_it_wrote_is_not_woken_by_that() -> None:
    async with plane(crds=(WIDGETS,)) as p:
        made = Labelling(p)
        assert await looks_at_both(p, made) == 1
        for kind in (WIDGET, CONFIG_MAP):  # others' changes count as ever
            await p.client.patch(kind, A, MergePatch({"metadata": {"annotations": {"by": "another"}}}))
            await p.settle()
        assert made.looks == 3


@virtual
async def test_a_write_over_a_state_that_it_did_not_know_wakes_its_writer() -> None:
    async with plane(crds=(WIDGETS,)) as p:
        assert await looks_at_both(p, Labelling(p, locked=False)) > 1


@virtual
async def test_a_loop_that_failed_after_its_writes_looks_again() -> None:
    async with plane(crds=(WIDGETS,)) as p:
        assert await looks_at_both(p, Labelling(p, failures=1)) > 1


@virtual
async def test_what_others_write_beside_the_own_writes_of_a_loop_is_looked_at() -> None:
    async with plane(crds=(WIDGETS,)) as p:
        made = Labelling(p)
        made.pause = 1.0
        made.control(p)
        await p.have(config_map("a"), widget("a"))
        await p.start()
        await p.until(CONFIG_MAP, A, lambda found: bool(found.metadata.get("labels")))
        await p.client.patch(CONFIG_MAP, A, MergePatch({"metadata": {"annotations": {"by": "another"}}}))
        await asyncio.sleep(5.0)
        assert made.looks == 2


@virtual
async def test_a_report_of_a_failure_does_not_end_the_pause_before_the_next_attempt() -> None:
    async with plane(crds=(WIDGETS,)) as p:

        class Failing(Sizes):
            async def _copy(self, scope: Scope[Widget]) -> Wait | None:
                raise RuntimeError(f"attempt {len(self.seen)} failed")

        failing = Failing(p)
        p.manager.add(Controller("failing", Widget, failing, clock=p.clock, own_writes_wake=False))
        await p.have(widget("a", size=1))
        await p.start()
        await asyncio.sleep(60.0)
        found = (await p.client.get(Widget, A)).status.conditions
        assert found[0]["message"] == f"attempt {len(failing.seen)} failed"
        assert len(failing.seen) < 20  # the pause doubles each time
