from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from homeport.api.meta import Resource
from homeport.client.errors import Conflict, TooManyRequests, Unavailable
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import run_virtual
from homeport.runtime.controller import Controller
from homeport.runtime.outcome import Terminal, Wait
from homeport.runtime.queue import Backoff
from homeport.runtime.testing import Plane, plane, virtual
from unit.runtime.runtime_sample import WIDGET, WIDGETS, Widget, widget

A = Key("default", "a")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")


class Script:
    """A reconciler that does what it is told, and remembers when it was asked for what."""

    def __init__(self, act: Callable[[Key, int], Any] = lambda key, time: None) -> None:
        self._act = act
        self.calls: list[tuple[str, float]] = []

    async def reconcile(self, key: Key) -> Wait | None:
        self.calls.append((key.name, asyncio.get_running_loop().time()))
        found = self._act(key, sum(name == key.name for name, _ in self.calls))
        if asyncio.iscoroutine(found):
            found = await found
        if isinstance(found, Exception):
            raise found
        wait: Wait | None = found
        return wait

    def pauses(self) -> list[float]:
        times = [when for _, when in self.calls]
        return [round(b - a, 3) for a, b in itertools.pairwise(times)]


def controlled(script: Script, **options: Any) -> Callable[[Plane], None]:
    def add(p: Plane) -> None:
        p.manager.add(Controller("script", Widget, script, clock=p.clock, **options))

    return add


@given(st.integers(0, 2**32), st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_every_change_is_reconciled_and_no_key_twice_at_once(seed: int, workers: int) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        working: set[str] = set()
        seen: dict[str, int] = {}

        async def act(key: Key) -> Wait | None:
            assert key.name not in working
            working.add(key.name)
            try:
                known = cache.get(key)
                await asyncio.sleep(chance.random() * 2)
                if chance.random() < 0.3:
                    raise chance.choice([Conflict("race"), Unavailable("down"), ValueError("bug")])
                seen[key.name] = known.spec.size if known is not None else -1
            finally:
                working.discard(key.name)
            return None

        script = Script(lambda key, n: act(key))
        async with plane(controlled(script, workers=workers), crds=[WIDGETS]) as p:
            cache = p.manager.informers.get(Widget).cache
            for number in range(40):
                name = chance.choice("abcd")
                if p.server.store.get("widgets.example.com", f"default/{name}") is None:
                    await p.have(widget(name, size=number))
                elif chance.random() < 0.2:
                    await p.client.delete(WIDGET, Key("default", name))
                else:
                    await p.client.patch(WIDGET, Key("default", name), MergePatch({"spec": {"size": number}}))
                await asyncio.sleep(chance.random())
            await asyncio.sleep(600)
            for name, size in seen.items():
                record = cache.get(Key("default", name))
                assert size == (record.spec.size if record is not None else -1), f"{name}: a change was lost"

    run_virtual(scenario(), seed=seed)


@virtual
async def test_a_wait_brings_the_key_back_at_its_time() -> None:
    script = Script(lambda key, n: Wait("NotYet", "soon", after=30.0) if n < 3 else None)
    async with plane(controlled(script), crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        await asyncio.sleep(10)
        assert p.manager.controllers[0].waits[A].message == "soon"
        await asyncio.sleep(100)
        assert script.pauses() == [30.0, 30.0]
        assert p.manager.controllers[0].waits == {}


@virtual
async def test_conflicts_come_back_at_once_and_growing() -> None:
    script = Script(lambda key, n: Conflict("race") if n < 6 else None)
    backoff = Backoff(first=0.01, jitter=0.0)
    async with plane(controlled(script, backoff=backoff), crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        await asyncio.sleep(100)
        assert script.pauses() == pytest.approx([0.01, 0.02, 0.04, 0.08, 0.16])
        assert p.manager.controllers[0].metrics.counts["conflict"] == 5


@virtual
async def test_a_server_that_says_when_to_come_back_is_obeyed() -> None:
    answers = [TooManyRequests("slow down", retry_after=7), Unavailable("restarting", retry_after=3)]
    script = Script(lambda key, n: answers[n - 1] if n <= 2 else None)
    async with plane(controlled(script), crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        await asyncio.sleep(100)
        assert script.pauses() == pytest.approx([7.0, 3.0], abs=0.1)


@virtual
async def test_a_terminal_error_waits_for_a_change_of_the_object() -> None:
    script = Script(lambda key, n: Terminal("Hopeless", "size is odd") if n == 1 else None)
    async with plane(controlled(script), crds=[WIDGETS]) as p:
        await p.have(widget("a", size=1))
        await asyncio.sleep(3600)
        assert len(script.calls) == 1
        assert p.manager.controllers[0].waits[A].reason == "Hopeless"
        await p.client.patch(WIDGET, A, MergePatch({"spec": {"size": 2}}))
        await asyncio.sleep(1)
        assert len(script.calls) == 2


@virtual
async def test_a_broken_object_does_not_stop_the_others() -> None:
    script = Script(lambda key, n: ZeroDivisionError("bug") if key.name == "bad" else None)
    async with plane(controlled(script, workers=1), crds=[WIDGETS]) as p:
        await p.have(widget("bad"), *(widget(f"w{n}") for n in range(5)))
        await asyncio.sleep(3600)
        counts = p.manager.controllers[0].metrics.counts
        assert counts["done"] == 5
        assert 10 < counts["error"] < 40  # again and again, less and less often
        assert "ZeroDivisionError" in p.logs.text(Key("default", "bad"))


@virtual
async def test_a_cancellation_that_is_not_meant_for_the_worker_does_not_end_it() -> None:
    """A library cancels what the reconcile waits for."""

    async def wait_in_vain() -> None:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(1, future.cancel)
        await future

    script = Script(lambda key, time: wait_in_vain() if time == 1 else None)
    async with plane(controlled(script, workers=1), crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        await asyncio.sleep(60)
        assert [name for name, _ in script.calls] == ["a", "a"]
        await p.have(widget("b"))
        await asyncio.sleep(10)
        assert script.calls[-1][0] == "b"


@virtual
async def test_a_resync_looks_at_everything_and_after_what_users_did() -> None:
    script = Script()
    async with plane(controlled(script, resync=1000.0), crds=[WIDGETS]) as p:
        await p.have(*(widget(f"w{n}") for n in range(20)))
        await asyncio.sleep(800)
        assert len(script.calls) == 20
        await asyncio.sleep(250)
        assert len(script.calls) == 40


@virtual
async def test_predicates_owners_and_maps_decide_what_wakes_a_key() -> None:
    script = Script()

    def add(p: Plane) -> None:
        controller = Controller("script", Widget, script, clock=p.clock, predicate=lambda old, new: False)
        controller.own(CONFIG_MAP)
        controller.map(CONFIG_MAP, lambda obj: [Key("default", obj["data"]["wakes"])] if "data" in obj else [])
        p.manager.add(controller)

    async with plane(add, crds=[WIDGETS]) as p:
        (owner,) = await p.have(widget("a"))
        await p.settle()
        assert script.calls == []
        reference = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "name": "a",
            "uid": owner.uid,
            "controller": True,
        }
        meta = {"name": "child", "namespace": "default", "ownerReferences": [reference]}
        await p.client.create({"metadata": meta}, kind=CONFIG_MAP)
        await p.client.create(
            {"metadata": {"name": "m", "namespace": "default"}, "data": {"wakes": "x"}}, kind=CONFIG_MAP
        )
        await p.settle()
        assert [name for name, _ in script.calls] == ["a", "x"]
        # Whoever loses something is told, not only who gets it.
        await p.client.patch(CONFIG_MAP, Key("default", "m"), MergePatch({"data": {"wakes": "y"}}))
        await p.settle()
        assert sorted(name for name, _ in script.calls[2:]) == ["x", "y"]


@virtual
async def test_shutting_down_cancels_what_waits_and_takes_no_new_key() -> None:
    state: list[str] = []

    async def act(key: Key) -> None:
        try:
            state.append(f"begin {key.name}")
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            state.append(f"cancelled {key.name}")
            raise

    script = Script(lambda key, n: act(key))
    async with plane(controlled(script, workers=2), crds=[WIDGETS]) as p:
        await p.have(widget("a"), widget("b"), widget("c"))
        await asyncio.sleep(10)
        await p.stop()
        assert sorted(state) == ["begin a", "begin b", "cancelled a", "cancelled b"]


@virtual
async def test_depth_waiting_times_and_retries_are_exported() -> None:
    script = Script(lambda key, n: Unavailable("down") if n == 1 else None)
    name = "exported"

    def value(metric: str) -> float:
        return REGISTRY.get_sample_value(metric, {"controller": name}) or 0.0

    async with plane(crds=[WIDGETS]) as p:
        p.manager.add(Controller(name, Widget, script, workers=1, clock=p.clock))
        await p.have(*(widget(f"w{n}") for n in range(4)))
        await p.start()
        await asyncio.sleep(10)
        assert value("homeport_queue_retries_total") == 4
        assert value("homeport_queue_depth") == 0
        assert value("homeport_queue_wait_seconds_count") == 8
        p.manager.controllers[0].queue.add(A, after=0.0)
        assert value("homeport_queue_depth") == 1
        assert REGISTRY.get_sample_value("homeport_cache_objects", {"kind": "widgets.example.com"}) == 4
