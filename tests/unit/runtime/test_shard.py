from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.cache import key_of
from homeport.runtime.clock import run_virtual
from homeport.runtime.controller import Controller
from homeport.runtime.lease import LEASE, LeaseTiming
from homeport.runtime.manager import Manager, Sharded
from homeport.runtime.outcome import Wait
from homeport.runtime.shard import Shards
from homeport.runtime.sharetable import Table
from homeport.runtime.testing import Plane, plane, virtual
from present import present
from unit.runtime.runtime_sample import WIDGET, WIDGETS, widget

TIMING = LeaseTiming(15.0, 10.0, 2.0)
MODE = Sharded("kube-system", "widgets", TIMING)


class World:
    """Who works on what, over all replicas: nobody may work on a key that another works on."""

    def __init__(self, p: Plane, chance: random.Random) -> None:
        self.p = p
        self.chance = chance
        self.working: dict[Key, str] = {}
        self.rounds: Counter[str] = Counter()
        self.last: dict[Key, tuple[str, float]] = {}
        self.replicas: dict[str, tuple[Manager, asyncio.Task[None]]] = {}

    def join(self, who: str, client: Any = None) -> Manager:
        manager = Manager(client or self.p.server.client(), mode=MODE, clock=self.p.clock, who=who)
        manager.add(Controller("share", WIDGET, _Worker(self, who), workers=3, clock=self.p.clock))
        self.replicas[who] = manager, asyncio.create_task(manager.run(), name=f"replica {who}")
        return manager

    async def leave(self, who: str) -> None:
        _, task = self.replicas.pop(who)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def end(self) -> None:
        for who in list(self.replicas):
            await self.leave(who)


def _table(manager: Manager) -> Table:
    shards = manager._tenure
    assert isinstance(shards, Shards)
    return present(shards.table)


class _Worker:
    def __init__(self, world: World, who: str) -> None:
        self._world = world
        self._who = who

    async def reconcile(self, key: Key) -> Wait | None:
        world = self._world
        assert key not in world.working, f"{key}: {self._who} and {world.working[key]} at the same time"
        world.working[key] = self._who
        try:
            await asyncio.sleep(world.chance.random())
        finally:
            del world.working[key]
        world.rounds[self._who] += 1
        world.last[key] = self._who, world.p.clock.monotonic()
        return Wait("Again", after=1.0, quiet=True)


@given(st.integers(0, 2**32))
@example(33610)  # one comes and goes before the others have agreed on it
@settings(deadline=None, max_examples=12)
def test_replicas_come_and_go_and_no_key_is_in_two_hands(seed: int) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        async with plane(crds=[WIDGETS]) as p:
            await p.have(*(widget(f"w{n}") for n in range(20)))
            world = World(p, chance)
            world.join("r0")
            for number in range(1, 8):
                await asyncio.sleep(chance.random() * 20)
                if len(world.replicas) > 1 and chance.random() < 0.4:
                    await world.leave(chance.choice(sorted(world.replicas)))
                else:
                    world.join(f"r{number}")
                for manager, task in world.replicas.values():
                    if task.done():
                        task.result()
                    assert not manager.controllers[0].metrics.counts["error"], p.logs.text()
            await asyncio.sleep(30)
            began = p.clock.monotonic()
            await asyncio.sleep(5)
            assert len(world.last) == 20
            assert all(when > began for _, when in world.last.values()), "a key is in nobody's hands"
            table = _table(next(iter(world.replicas.values()))[0])
            assert table.members == tuple(sorted(world.replicas))
            for key, (who, _) in world.last.items():
                assert who == table.owner(str(key))
            await world.end()

    run_virtual(scenario(), seed=seed)


class Mortal:
    """A client that stops answering, as after kill -9: nothing of its process reaches the server any more."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name == "watch":
            return found

        async def call(*args: Any, **options: Any) -> Any:
            if self.dead:
                await asyncio.Event().wait()
            return await found(*args, **options)

        return call


@virtual
async def test_the_keys_of_a_dead_replica_are_in_other_hands_within_one_lease_duration() -> None:
    chance = random.Random(1)
    async with plane(crds=[WIDGETS]) as p:
        await p.have(*(widget(f"w{n}") for n in range(30)))
        world = World(p, chance)
        client = Mortal(p.server.client())
        world.join("dies", client)
        world.join("lives")
        world.join("too")
        for _ in range(5):
            await asyncio.sleep(chance.uniform(10, 20))
            assert sum(who == "dies" for who, _ in world.last.values()) > 3
        client.dead = True
        _, task = world.replicas.pop("dies")
        task.cancel()  # its controllers stop at once; that its release hangs is what a kill looks like to the others
        died = p.clock.monotonic()
        while any(who == "dies" or when < died for who, when in world.last.values()):
            await asyncio.sleep(0.25)
            assert p.clock.monotonic() - died < TIMING.duration + 2, "not taken over in time"
        took = p.clock.monotonic() - died
        assert took <= TIMING.duration, took  # the work of a round included
        await world.end()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("seed", range(6))
def test_leases_that_somebody_deletes_put_no_key_into_two_hands(seed: int) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        async with plane(crds=[WIDGETS]) as p:
            await p.have(*(widget(f"w{n}") for n in range(20)))
            world = World(p, chance)
            for number in range(3):
                world.join(f"r{number}")
            for _ in range(12):
                await asyncio.sleep(chance.uniform(0, 20))
                found = (await p.client.list(LEASE, Query(namespace=MODE.namespace))).items
                await p.client.delete(LEASE, key_of(chance.choice(found)))
                if chance.random() < 0.3:  # one that never saw it
                    await asyncio.sleep(chance.random())
                    world.join(f"late{len(world.replicas)}")
                for who, (manager, task) in list(world.replicas.items()):
                    assert not manager.controllers[0].metrics.counts["error"], p.logs.text()
                    if task.done():  # it lost its Lease, and is started again
                        await asyncio.gather(task, return_exceptions=True)
                        world.join(who)
            await asyncio.sleep(60)
            for manager, _ in world.replicas.values():
                assert not manager.controllers[0].metrics.counts["error"], p.logs.text()
            await world.end()

    run_virtual(scenario(), seed=seed)


@virtual
async def test_requests_that_are_not_answered_do_not_keep_a_replica_from_renewing_its_leases() -> None:
    async with plane(crds=[WIDGETS]) as p:
        busy = Mortal(p.server.client())
        managers = [
            Manager(busy, mode=MODE, clock=p.clock, who="a", leases=p.server.client()),
            Manager(p.server.client(), mode=MODE, clock=p.clock, who="b"),
        ]
        running = [asyncio.create_task(each.run()) for each in managers]
        await asyncio.sleep(30)
        busy.dead = True
        await asyncio.sleep(60)
        assert not any(each.done() for each in running)
        assert _table(managers[1]).members == ("a", "b")
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@virtual
async def test_a_replica_that_stood_still_works_no_more_when_it_wakes_up() -> None:
    """Its lease lapsed, the others took its keys; that it could still renew its own record must not bring it back."""
    async with plane(crds=[WIDGETS]) as p:
        shards = Shards(
            p.client, "kube-system", "g", "a", lost=_nothing, won=lambda gained: None, timing=TIMING, clock=p.clock
        )
        await shards.join()
        run = asyncio.create_task(shards.run())
        while not shards.agreed:  # noqa: ASYNC110  (virtual seconds)
            await asyncio.sleep(0.1)
        assert shards.mine("x")
        run.cancel()  # frozen
        await asyncio.gather(run, return_exceptions=True)
        await asyncio.sleep(20)
        assert not shards.mine("x")
        assert not await shards.lease.renew()
        assert not shards.mine("x")


async def _nothing() -> None: ...


@virtual
async def test_what_belongs_together_stays_together() -> None:
    async with plane(crds=[WIDGETS]) as p:
        where: dict[str, set[str]] = {}

        def cluster_of(key: Key) -> str:
            return key.name.split("-")[0]

        class Note:
            def __init__(self, who: str) -> None:
                self._who = who

            async def reconcile(self, key: Key) -> Wait | None:
                where.setdefault(cluster_of(key), set()).add(self._who)
                return None

        tasks = []
        for who in ("a", "b", "c"):
            manager = Manager(p.server.client(), mode=MODE, clock=p.clock, who=who)
            manager.add(
                Controller("share", WIDGET, Note(who), shard_of=lambda key, obj: cluster_of(key), clock=p.clock)
            )
            tasks.append(asyncio.create_task(manager.run()))
        await asyncio.sleep(60)
        await p.have(*(widget(f"c{n % 10}-{n}") for n in range(100)))
        await asyncio.sleep(5)
        assert len(where) == 10
        assert all(len(replicas) == 1 for replicas in where.values())
        assert len(set.union(*where.values())) > 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=12)
def test_replicas_are_killed_and_no_key_is_in_two_hands(seed: int) -> None:
    """Nothing of a killed one reaches the server: its lease has to run out."""

    async def scenario() -> None:
        chance = random.Random(seed)
        async with plane(crds=[WIDGETS]) as p:
            await p.have(*(widget(f"w{n}") for n in range(20)))
            world = World(p, chance)
            clients = {who: Mortal(p.server.client()) for who in ("r0", "r1", "r2")}
            for who, client in clients.items():
                world.join(who, client)
            dying = []
            for number in range(3, 9):
                await asyncio.sleep(chance.random() * 25)
                who = chance.choice(sorted(world.replicas))
                clients[who].dead = True
                _, killed = world.replicas.pop(who)
                killed.cancel()
                dying.append(killed)
                clients[f"r{number}"] = Mortal(p.server.client())
                world.join(f"r{number}", clients[f"r{number}"])
                for manager, task in world.replicas.values():
                    if task.done():
                        task.result()
                    assert not manager.controllers[0].metrics.counts["error"], p.logs.text()
            await asyncio.sleep(40)
            began = p.clock.monotonic()
            await asyncio.sleep(5)
            assert all(when > began for _, when in world.last.values()), "a key is in nobody's hands"
            assert len(world.last) == 20
            await world.end()
            await asyncio.gather(*dying, return_exceptions=True)

    run_virtual(scenario(), seed=seed)


@virtual
async def test_shares_become_even_when_work_comes_to_one_of_them() -> None:
    async with plane(crds=[WIDGETS]) as p:
        loads: list[str] = []
        members = [_member(p, who, lambda: loads) for who in ("a", "b", "c")]
        for each in members:
            await each.join()
        running = [asyncio.create_task(each.run()) for each in members]
        await asyncio.sleep(30)
        first = present(members[0].table)
        loads += [name for name in (f"cluster {n}" for n in range(3000)) if first.owner(name) == "b"]
        assert sum(members[1].mine(each) for each in loads) == len(loads)
        await asyncio.sleep(45)
        for each in members:
            assert sum(each.mine(name) for name in loads) < 1.1 * len(loads) / 3
        assert present(members[0].table).epoch == first.epoch + 1
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@virtual
async def test_a_shard_that_is_too_large_for_even_shares_causes_no_new_tables() -> None:
    async with plane(crds=[WIDGETS]) as p:
        loads = ["cluster large"] * 50 + ["cluster small"]
        members = [_member(p, who, lambda: loads) for who in ("a", "b")]
        for each in members:
            await each.join()
        running = [asyncio.create_task(each.run()) for each in members]
        await asyncio.sleep(60)
        first = present(members[0].table)
        assert first.owner("cluster large") != first.owner("cluster small")
        await asyncio.sleep(300)
        assert present(members[0].table).epoch == first.epoch
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@virtual
async def test_a_new_member_causes_work_only_for_what_moves() -> None:
    async with plane(crds=[WIDGETS]) as p:
        await p.have(*(widget(f"w{n}") for n in range(30)))
        rounds: Counter[tuple[str, str]] = Counter()

        class Once:
            def __init__(self, who: str) -> None:
                self._who = who

            async def reconcile(self, key: Key) -> Wait | None:
                rounds[self._who, key.name] += 1
                return None

        def join(who: str) -> asyncio.Task[None]:
            manager = Manager(p.server.client(), mode=MODE, clock=p.clock, who=who)
            manager.add(Controller("share", WIDGET, Once(who), clock=p.clock))
            return asyncio.create_task(manager.run())

        tasks = [join("a")]
        await asyncio.sleep(60)
        assert [rounds["a", f"w{n}"] for n in range(30)] == [1] * 30
        tasks.append(join("b"))
        await asyncio.sleep(60)
        moved = {name for who, name in rounds if who == "b"}
        assert 5 < len(moved) < 25
        assert sum(rounds.values()) == 30 + len(moved), "what stayed was reconciled again"
        for name in sorted(moved):
            body = MergePatch({"metadata": {"labels": {"changed": "yes"}}})
            await p.client.patch(WIDGET, Key("default", name), body)
        await asyncio.sleep(5)
        assert {name for name in moved if rounds["a", name] > 1} == set(), "a change of another replica's object"
        assert all(rounds["b", name] == 2 for name in moved)
        tasks.pop().cancel()
        await asyncio.sleep(60)
        assert all(rounds["a", name] == 2 for name in moved), "what came back was not looked at"
        assert sum(rounds.values()) == 30 + 3 * len(moved)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _member(p: Plane, who: str, loads: Callable[[], list[str]]) -> Shards:
    client = p.server.client()
    return Shards(
        client,
        "kube-system",
        "g",
        who,
        lost=_nothing,
        won=lambda gained: None,
        loads=loads,
        timing=TIMING,
        clock=p.clock,
    )


@virtual
async def test_an_object_that_gets_into_another_shard_is_never_worked_on_by_two_replicas() -> None:
    async with plane(crds=[WIDGETS]) as p:
        working: dict[Key, str] = {}
        done: Counter[str] = Counter()

        class Slow:
            def __init__(self, who: str, manager: Manager) -> None:
                self._who, self._manager = who, manager

            async def reconcile(self, key: Key) -> Wait | None:
                assert key not in working, f"{self._who} and {working[key]}"
                working[key] = self._who
                try:
                    for _ in range(20):
                        await asyncio.sleep(1)
                        self._manager.fence()  # as before every write
                finally:
                    del working[key]
                done[self._who] += 1
                return Wait("Again", after=1.0, quiet=True)

        def shard_of(key: Key, obj: Any) -> str:
            return str(obj.metadata.get("labels", {}).get("cluster") or key) if obj is not None else str(key)

        tasks, managers = [], []
        for who in ("a", "b", "c"):
            manager = Manager(p.server.client(), mode=MODE, clock=p.clock, who=who)
            manager.add(Controller("share", WIDGET, Slow(who, manager), shard_of=shard_of, clock=p.clock))
            tasks.append(asyncio.create_task(manager.run()))
            managers.append(manager)
        await p.have(widget("w"))
        await asyncio.sleep(60)
        table = _table(managers[0])
        key = Key("default", "w")
        first = table.owner(str(key))
        other = next(f"c{n}" for n in range(100) if table.owner(f"c{n}") != first)
        assert set(done) == {first}
        await p.client.patch(WIDGET, key, MergePatch({"metadata": {"labels": {"cluster": other}}}))
        before = done[first]
        await asyncio.sleep(60)
        assert done[table.owner(other)] >= 1
        assert done[first] == before  # what it had in work ended at the next write
        assert all(not m.controllers[0].metrics.counts["error"] for m in managers)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@virtual
async def test_a_member_is_not_mistaken_for_dead_because_an_answer_came_late() -> None:
    """A list that takes long tells how things were when it was asked for."""

    class Late:
        def __init__(self, inner: Any) -> None:
            self._inner = inner
            self.delay = 0.0

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        async def list(self, *args: Any, **options: Any) -> Any:
            found = await self._inner.list(*args, **options)
            await asyncio.sleep(self.delay)
            return found

    async with plane(crds=[WIDGETS]) as p:
        world = World(p, random.Random(0))
        client = Late(p.server.client())
        late = world.join("a", client)
        world.join("b")
        await asyncio.sleep(30)
        client.delay = 14.0  # longer than a silent member is believed in
        for _ in range(100):
            await asyncio.sleep(1)
            shards = late._tenure
            assert isinstance(shards, Shards)
            assert shards.members == ("a", "b")
        await world.end()
