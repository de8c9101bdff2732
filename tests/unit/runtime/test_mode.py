"""Replicas that share and replicas of which one works: never both at a time, whoever comes and goes."""

from __future__ import annotations

import asyncio
import random
from typing import Any, cast

import pytest

from homeport.client.absence import find_object
from homeport.client.errors import Forbidden
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.runtime.clock import run_virtual
from homeport.runtime.controller import Controller
from homeport.runtime.lease import LEASE, LeaseLost, LeaseTiming
from homeport.runtime.manager import Common, Elected, Manager, Mode, Sharded
from homeport.runtime.outcome import Wait
from homeport.runtime.shard import TOGETHER
from homeport.runtime.testing import Plane, establish, plane, virtual
from unit.runtime.runtime_sample import WIDGET, WIDGETS, widget

TIMING = LeaseTiming(15.0, 10.0, 2.0)
ELECTED = Elected("kube-system", "widgets", TIMING)
SHARDED = Sharded("kube-system", "widgets", TIMING)
ELECTED_KEY = Key("kube-system", "widgets")
SPLIT = Common(ELECTED_KEY, "split", (Key("kube-system", "a"), Key("kube-system", "b")))
MODES: tuple[Mode, ...] = (ELECTED, SHARDED)


class Scene:
    """Who works, and in which mode."""

    def __init__(self, p: Plane) -> None:
        self.p = p
        self.working: dict[str, bool] = {}  # whether it works together with others
        self.worked: list[str] = []
        self.wrong: list[str] = []
        self.replicas: dict[str, asyncio.Task[None]] = {}
        self.managers: dict[str, Manager] = {}

    def join(
        self,
        who: str,
        mode: Mode,
        common: Common | None = None,
        before: tuple[Key, ...] = (),
        client: Client | None = None,
    ) -> Manager:
        scene = self
        shared = isinstance(mode, Sharded) or common is not None

        class Worker:
            async def reconcile(self, key: Key) -> Wait | None:
                others = [name for name, other in scene.working.items() if other is not shared]
                if others:  # a controller would survive an assertion that fails here
                    scene.wrong.append(f"{who} works while {others} do")
                scene.working[who] = shared
                try:
                    await asyncio.sleep(0.3)
                finally:
                    scene.working.pop(who, None)
                scene.worked.append(who)
                return Wait("Again", after=1.0, quiet=True)

        client = client or self.p.server.client()
        manager = Manager(client, mode=mode, clock=self.p.clock, who=who, common=common, before=before)
        manager.add(Controller("share", WIDGET, Worker(), workers=2, clock=self.p.clock))
        self.managers[who] = manager
        self.replicas[who] = asyncio.create_task(manager.run(), name=who)
        return manager

    async def leave(self, who: str) -> None:
        task = self.replicas.pop(who)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not self.wrong

    def who_worked(self) -> set[str]:
        found, self.worked = set(self.worked), []
        return found


class Slow:
    """An answer about a Lease of the others that has not changed arrives long after it was read."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._read = ""

    async def get(self, kind: Any, key: Key) -> Any:
        found = await self._client.get(kind, key)
        if key in SPLIT.leases:
            before, self._read = self._read, found.resource_version
            await asyncio.sleep(20 if before == self._read else 0)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class Blind(Slow):
    """May not read Leases of the others."""

    async def get(self, kind: Any, key: Key) -> Any:
        if key in SPLIT.leases:
            raise Forbidden("no Leases for you")
        return await self._client.get(kind, key)


class Counting:
    """Counts requests about Leases of the others; where `watched` is False, they may not be watched."""

    def __init__(self, client: Client, *, watched: bool = True) -> None:
        self._client = client
        self._watched = watched
        self.asked = 0

    async def get(self, kind: Any, key: Key) -> Any:
        self.asked += key in SPLIT.leases
        return await self._client.get(kind, key)

    def watch(self, kind: Any, query: Query, **options: Any) -> Any:
        if query.fields:
            self.asked += 1
            if not self._watched:
                raise Forbidden("no Leases for you")
        return self._client.watch(kind, query, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


async def scene_of(p: Plane) -> Scene:
    await establish(p.client, WIDGETS)
    await p.have(*(widget(f"w{number}") for number in range(12)))
    return Scene(p)


@virtual
async def test_a_replica_with_shards_waits_for_one_without_and_takes_over_when_it_goes() -> None:
    async with plane() as p:
        scene = await scene_of(p)
        scene.join("alone", ELECTED)
        await asyncio.sleep(10)
        scene.join("s1", SHARDED)
        scene.join("s2", SHARDED)
        await asyncio.sleep(60)
        assert scene.who_worked() == {"alone"}
        await scene.leave("alone")
        await asyncio.sleep(30)
        assert scene.who_worked() >= {"s1", "s2"}
        for who in ("s1", "s2"):
            await scene.leave(who)


@virtual
async def test_a_replica_without_shards_waits_for_the_last_one_that_shares() -> None:
    async with plane() as p:
        scene = await scene_of(p)
        scene.join("s1", SHARDED)
        scene.join("s2", SHARDED)
        await asyncio.sleep(30)
        scene.join("alone", ELECTED)
        await asyncio.sleep(30)
        assert scene.who_worked() == {"s1", "s2"}
        await scene.leave("s1")
        await asyncio.sleep(60)
        assert scene.who_worked() >= {"s2"}
        assert (await p.client.get(LEASE, Key("kube-system", "widgets")))["spec"]["holderIdentity"] == TOGETHER
        await scene.leave("s2")
        scene.who_worked()
        await asyncio.sleep(5)  # it was given back, so that nobody has to wait until it expires
        assert scene.who_worked() == {"alone"}
        await scene.leave("alone")


@virtual
async def test_a_replica_with_shards_stops_when_the_mode_is_no_longer_surely_theirs() -> None:
    async with plane() as p:
        scene = await scene_of(p)
        manager = scene.join("s1", SHARDED)
        await asyncio.sleep(10)
        assert manager.fence()
        await p.client.patch(LEASE, Key("kube-system", "widgets"), MergePatch({"spec": {"holderIdentity": "somebody"}}))
        await asyncio.sleep(3)
        with pytest.raises(LeaseLost):
            manager.fence()
        await scene.leave("s1")


@pytest.mark.parametrize("seed", range(8))
def test_whoever_comes_and_goes_both_never_work_at_a_time(seed: int) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        async with plane() as p:
            scene = await scene_of(p)
            for number in range(12):
                scene.join(f"r{number}", chance.choice(MODES))
                await asyncio.sleep(chance.uniform(0, 20))
                if len(scene.replicas) > 2 or chance.random() < 0.4:
                    await scene.leave(chance.choice(sorted(scene.replicas)))
            await asyncio.sleep(40)
            assert scene.worked
            for who in list(scene.replicas):
                await scene.leave(who)

    run_virtual(scenario())


@virtual
async def test_managers_with_a_common_lease_and_one_that_wants_it_alone_never_work_at_a_time() -> None:
    """As the Deployments of two layouts, of which one replaces the other while Pods of both run."""
    common = SPLIT
    parts = {name: Elected("kube-system", name, TIMING) for name in ("a", "b")}
    async with plane() as p:
        scene = await scene_of(p)
        scene.join("alone", ELECTED)
        await asyncio.sleep(10)
        for name, mode in parts.items():
            scene.join(f"{name}1", mode, common)
            scene.join(f"{name}2", mode, common)
        await asyncio.sleep(60)
        assert scene.who_worked() == {"alone"}
        await scene.leave("alone")
        await asyncio.sleep(30)
        working = scene.who_worked()
        assert {each[0] for each in working} == {"a", "b"}
        assert len(working) == 2, "one of each"
        scene.join("alone", ELECTED)
        first = next(each for each in working if each.startswith("a"))
        await scene.leave(first)
        await asyncio.sleep(60)
        heir = "a1" if first == "a2" else "a2"
        assert scene.who_worked() - {first} == {*(working - {first}), heir}
        for who in sorted(each for each in scene.replicas if each != "alone"):
            await scene.leave(who)
        scene.who_worked()
        await asyncio.sleep(5)  # the last of them gave it back, so that nobody has to wait until it expires
        assert scene.who_worked() == {"alone"}
        await scene.leave("alone")


@virtual
async def test_who_ends_before_it_worked_leaves_no_lease_behind() -> None:
    """A Pod that was started for a layout that is removed again: it may hold its own Lease, and does not work yet."""
    async with plane() as p:
        scene = await scene_of(p)
        scene.join("a1", Elected("kube-system", "a", TIMING), SPLIT)
        for _ in range(200):
            if await _holder(p, Key("kube-system", "a")):
                break
            await asyncio.sleep(0.01)
        await scene.leave("a1")
        assert await _holder(p, Key("kube-system", "a")) == await _holder(p, ELECTED_KEY) == ""
        scene.join("alone", ELECTED)
        await asyncio.sleep(5)
        assert scene.who_worked() == {"alone"}
        await scene.leave("alone")


async def _holder(p: Plane, key: Key) -> str:
    found = await find_object(p.client, LEASE, key)
    return "" if found is None else str(found["spec"].get("holderIdentity"))


async def _have_lease(p: Plane, key: Key, holder: str, seconds: int = 15) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": "2020-01-01T00:00:00.000000Z"}
    meta = {"name": key.name, "namespace": key.namespace}
    await p.client.create({"metadata": meta, "spec": spec}, kind=LEASE)


@virtual
async def test_one_that_does_all_the_work_waits_for_those_that_do_parts_of_it_and_know_no_common_lease() -> None:
    """As Deployments of the split layout of an older version."""
    others = SPLIT.leases
    async with plane() as p:
        scene = await scene_of(p)
        scene.join("a1", Elected("kube-system", "a", TIMING))
        await asyncio.sleep(10)
        scene.join("alone", ELECTED, before=others)
        await asyncio.sleep(60)
        assert scene.who_worked() == {"a1"}
        assert await _holder(p, ELECTED_KEY) == "", "it waits without the Lease"
        await scene.leave("a1")
        await asyncio.sleep(5)
        assert scene.who_worked() >= {"alone"}
        await scene.leave("alone")


@pytest.mark.parametrize("mode", MODES)
@virtual
async def test_leases_that_their_holders_left_behind_keep_others_for_one_duration_only(mode: Mode) -> None:
    """The common one included: they were killed together."""
    async with plane() as p:
        scene = await scene_of(p)
        for key, who in ((SPLIT.leases[1], "dead"), (ELECTED_KEY, "split")):
            await _have_lease(p, key, who)
        scene.join("alone", mode, before=SPLIT.leases)
        await asyncio.sleep(13)
        assert scene.who_worked() == set()
        await asyncio.sleep(9)
        assert scene.who_worked() == {"alone"}
        await scene.leave("alone")


@virtual
async def test_one_whose_own_lease_is_elsewhere_waits_for_them_too() -> None:
    away = Common(ELECTED_KEY, "away", (Key("default", "away"),))
    async with plane() as p:
        scene = await scene_of(p)
        scene.join("a1", Elected("kube-system", "a", TIMING))
        await asyncio.sleep(10)
        manager = scene.join("away", Elected("default", "away", TIMING), away, SPLIT.leases)
        await asyncio.sleep(60)
        assert scene.who_worked() == {"a1"}
        assert list(manager.waits()) == ["Lease kube-system/a"]
        await scene.leave("a1")
        await asyncio.sleep(5)
        assert scene.who_worked() >= {"away"}
        await scene.leave("away")
        assert await _holder(p, ELECTED_KEY) == await _holder(p, Key("default", "away")) == ""


@virtual
async def test_leases_that_were_left_behind_expire_together_and_not_one_after_the_other() -> None:
    async with plane() as p:
        scene = await scene_of(p)
        keys = [Key("kube-system", f"part-{number}") for number in range(8)]
        for key in keys:
            await _have_lease(p, key, "dead")
        scene.join("alone", ELECTED, before=tuple(keys))
        await asyncio.sleep(22)
        assert scene.who_worked() == {"alone"}
        await scene.leave("alone")


@virtual
async def test_a_slow_answer_does_not_make_a_lease_that_is_renewed_look_expired() -> None:
    """An answer that takes longer than the duration of the Lease shows what was so before that."""
    async with plane() as p:
        scene = await scene_of(p)
        scene.join("a1", Elected("kube-system", "a", LeaseTiming(15.0, 10.0, 5.0)))
        await asyncio.sleep(10)
        scene.join("alone", ELECTED, before=SPLIT.leases, client=cast(Client, Slow(p.server.client())))
        await asyncio.sleep(180)
        assert scene.who_worked() == {"a1"}
        assert await find_object(p.client, LEASE, ELECTED_KEY) is None, "it never took it"
        for who in ("alone", "a1"):
            await scene.leave(who)


@virtual
async def test_a_lease_that_was_deleted_may_still_have_a_holder_that_does_not_know_that() -> None:
    async with plane() as p:
        scene = await scene_of(p)
        await _have_lease(p, SPLIT.leases[0], "a1")
        scene.join("alone", ELECTED, before=SPLIT.leases)
        await asyncio.sleep(5)
        await p.client.delete(LEASE, SPLIT.leases[0])
        await asyncio.sleep(9)  # a holder stops itself ten seconds after its last renewal
        assert scene.who_worked() == set()
        await asyncio.sleep(15)
        assert scene.who_worked() == {"alone"}
        await scene.leave("alone")


@virtual
async def test_one_that_does_all_the_work_stops_when_those_that_do_parts_of_it_come_back() -> None:
    """All Pods of an older version are started again after a failure of the whole cluster, one later than ours."""
    async with plane() as p:
        scene = await scene_of(p)
        manager = scene.join("alone", ELECTED, before=SPLIT.leases)
        await asyncio.sleep(10)
        assert scene.who_worked() == {"alone"}
        await _have_lease(p, SPLIT.leases[1], "b1")
        await asyncio.sleep(30)
        with pytest.raises(LeaseLost):
            manager.fence()
        assert await _holder(p, ELECTED_KEY) == ""
        await scene.leave("alone")


@virtual
async def test_whoever_works_hears_of_those_that_come_back_at_once_and_asks_for_nothing_until_then() -> None:
    async with plane() as p:
        scene = await scene_of(p)
        await _have_lease(p, SPLIT.leases[0], "dead")
        client = Counting(p.server.client())
        manager = scene.join("alone", ELECTED, before=SPLIT.leases, client=cast(Client, client))
        await asyncio.sleep(60)
        assert scene.who_worked() == {"alone"}
        before = client.asked
        await p.client.delete(LEASE, SPLIT.leases[0])  # that of a dead one
        await asyncio.sleep(3600)
        assert client.asked - before <= 2 * 2 * 12, "one watch of each, renewed after five minutes or more"
        assert scene.who_worked() == {"alone"}
        await _have_lease(p, SPLIT.leases[1], "b1")
        await asyncio.sleep(0.5)
        with pytest.raises(LeaseLost):
            manager.fence()
        await scene.leave("alone")


@virtual
async def test_where_leases_of_others_may_not_be_watched_they_are_read() -> None:
    async with plane() as p:
        scene = await scene_of(p)
        client = Counting(p.server.client(), watched=False)
        manager = scene.join("alone", ELECTED, before=SPLIT.leases, client=cast(Client, client))
        await asyncio.sleep(10)
        assert scene.who_worked() == {"alone"}
        await _have_lease(p, SPLIT.leases[1], "b1")
        await asyncio.sleep(10)
        with pytest.raises(LeaseLost):
            manager.fence()
        await scene.leave("alone")


@pytest.mark.parametrize("mode", MODES)
@virtual
async def test_a_lease_for_years_is_reported_and_who_deletes_it_need_not_wait(mode: Mode) -> None:
    async with plane() as p:
        scene = await scene_of(p)
        await _have_lease(p, ELECTED_KEY, "harbour-7", seconds=315_360_000)
        manager = scene.join("alone", mode)
        await asyncio.sleep(10)
        assert manager.waits() == {}, "it may be a replica that works"
        await asyncio.sleep(3600)
        assert scene.who_worked() == set()
        assert f"kubectl delete lease -n {ELECTED_KEY.namespace} {ELECTED_KEY.name}" in str(manager.waits())
        await p.client.delete(LEASE, ELECTED_KEY)
        await asyncio.sleep(10)
        assert scene.who_worked() == {"alone"}
        assert manager.waits() == {}
        await scene.leave("alone")


@virtual
async def test_whoever_waits_reports_for_which_lease_and_what_to_do() -> None:
    async with plane() as p:
        scene = await scene_of(p)
        await _have_lease(p, SPLIT.leases[0], "harbour-7", seconds=315_360_000)
        manager = scene.join("alone", ELECTED, before=SPLIT.leases)
        await asyncio.sleep(3600)
        assert scene.who_worked() == set()
        (what, why), *more = manager.waits().items()
        assert (what, more) == ("Lease kube-system/a", [])
        assert "harbour-7" in why
        assert "kubectl delete lease -n kube-system a" in why
        await p.client.delete(LEASE, SPLIT.leases[0])
        await asyncio.sleep(20)
        assert scene.who_worked() == {"alone"}
        assert manager.waits() == {}
        part = scene.join("a1", Elected("kube-system", "a", TIMING), SPLIT)
        await asyncio.sleep(20)
        assert "alone" in part.waits()[f"Lease {ELECTED_KEY}"]
        await scene.leave("alone")
        await asyncio.sleep(10)
        assert part.waits() == {}
        await scene.leave("a1")


@virtual
async def test_whoever_may_not_read_a_lease_reports_that_and_waits() -> None:
    async with plane() as p:
        scene = await scene_of(p)
        manager = scene.join("alone", ELECTED, before=SPLIT.leases, client=cast(Client, Blind(p.server.client())))
        await asyncio.sleep(60)
        assert scene.who_worked() == set()
        assert "no Leases for you" in manager.waits()["Lease kube-system/a"]
        await scene.leave("alone")


@pytest.mark.parametrize("seed", range(8))
def test_whoever_of_two_layouts_comes_and_goes_both_never_work_at_a_time(seed: int) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        parts = [(Elected("kube-system", key.name, TIMING), SPLIT, ()) for key in SPLIT.leases]
        choices = [(ELECTED, None, SPLIT.leases if seed % 2 else ()), *parts]  # either way
        async with plane() as p:
            scene = await scene_of(p)
            for number in range(16):
                scene.join(f"r{number}", *chance.choice(choices))
                await asyncio.sleep(chance.uniform(0, 12))
                if len(scene.replicas) > 3 or chance.random() < 0.4:
                    await scene.leave(chance.choice(sorted(scene.replicas)))
            await asyncio.sleep(40)
            assert scene.worked
            for who in list(scene.replicas):
                await scene.leave(who)

    run_virtual(scenario())


@virtual
async def test_a_manager_stops_when_the_common_lease_is_no_longer_surely_theirs() -> None:
    async with plane() as p:
        scene = await scene_of(p)
        manager = scene.join("a1", Elected("kube-system", "a", TIMING), SPLIT)
        await asyncio.sleep(10)
        assert manager.fence()
        await p.client.patch(LEASE, ELECTED_KEY, MergePatch({"spec": {"holderIdentity": "somebody"}}))
        await asyncio.sleep(3)
        with pytest.raises(LeaseLost):
            manager.fence()
        await scene.leave("a1")
