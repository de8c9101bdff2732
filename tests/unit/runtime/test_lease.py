from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.client.errors import Unavailable
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import LoopClock, run_virtual
from homeport.runtime.lease import LEASE, Lease, LeaseLost, LeaseTiming
from homeport.runtime.testing import plane, virtual

KEY = Key("kube-system", "leader")
TIMING = LeaseTiming(15.0, 10.0, 2.0)


class DriftingClock(LoopClock):
    """A clock that goes a little too fast or too slow, and whose wall time jumps."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate = rate

    def monotonic(self) -> float:
        return super().monotonic() * self._rate


class Unsteady:
    """A client whose requests and answers are late, at times by more than a lease lasts, or lost."""

    def __init__(self, inner: Any, chance: random.Random) -> None:
        self._inner = inner
        self._chance = chance

    async def get(self, *args: Any, **options: Any) -> Any:
        return await self._call(self._inner.get, *args, **options)

    async def create(self, *args: Any, **options: Any) -> Any:
        return await self._call(self._inner.create, *args, **options)

    async def replace(self, *args: Any, **options: Any) -> Any:
        return await self._call(self._inner.replace, *args, **options)

    async def _call(self, method: Any, *args: Any, **options: Any) -> Any:
        # Cancelling the caller does not call a request back that is on its way.
        request = asyncio.ensure_future(self._deliver(method, *args, **options))
        request.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to hear it
        return await asyncio.shield(request)

    async def _deliver(self, method: Any, *args: Any, **options: Any) -> Any:
        await asyncio.sleep(self._delay())
        try:
            if self._chance.random() < 0.05:
                raise Unavailable("lost")
            answer = await method(*args, **options)
        finally:
            await asyncio.sleep(self._delay())
        return answer

    def _delay(self) -> float:
        luck = self._chance.random()
        return luck * 0.2 if luck < 0.9 else self._chance.random() * 25


async def lead(lease: Lease, terms: list[str], chance: random.Random) -> None:
    """Leads again and again, and at times gives up of its own accord."""
    while True:
        await lease.hold()
        terms.append(lease.identity)
        try:
            async with asyncio.timeout(chance.random() * 120):
                await lease.keep()
        except LeaseLost:
            continue
        except TimeoutError:
            await lease.release()
        await asyncio.sleep(chance.random() * 10)


@given(st.integers(0, 2**32), st.integers(2, 6))
@settings(deadline=None, max_examples=20)
def test_there_are_never_two_leaders_whatever_the_network_and_the_clocks_do(seed: int, candidates: int) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        async with plane() as p:
            clocks = [DriftingClock(chance.uniform(0.97, 1.03)) for _ in range(candidates)]
            leases = [
                Lease(Unsteady(p.client, chance), KEY, f"c{n}", timing=TIMING, clock=clock)  # type: ignore[arg-type]
                for n, clock in enumerate(clocks)
            ]
            terms: list[str] = []
            vacant = longest = 0.0
            tasks = [asyncio.create_task(lead(lease, terms, chance)) for lease in leases]
            for _ in range(4000):
                await asyncio.sleep(0.25)
                held = [lease.identity for lease in leases if lease.held]
                assert len(held) <= 1, f"two leaders: {held}"
                vacant = 0.0 if held else vacant + 0.25
                longest = max(longest, vacant)
                if chance.random() < 0.01:
                    chance.choice(clocks).jump(chance.uniform(-1e6, 1e6))
            for task in tasks:
                if task.done():
                    task.result()
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(60)
            assert len(set(terms)) > 1, "leadership never changed: the test tested nothing"
            assert longest < 300, "for minutes nobody led"

    run_virtual(scenario(), seed=seed)


async def share(lease: Lease, terms: list[str], chance: random.Random) -> None:
    """One of several that hold it together: stops now and then without a word, and comes back."""
    while True:
        await lease.hold()
        terms.append(lease.identity)
        with contextlib.suppress(LeaseLost, TimeoutError):
            async with asyncio.timeout(chance.random() * 120):
                await lease.keep()
        await asyncio.sleep(chance.random() * 40)


@given(st.integers(0, 2**32), st.integers(2, 5))
@settings(deadline=None, max_examples=20)
def test_nobody_leads_beside_those_who_hold_the_lease_together(seed: int, members: int) -> None:
    async def scenario() -> None:
        chance = random.Random(seed)
        async with plane() as p:

            def make(who: str, together: bool) -> Lease:
                client: Any = Unsteady(p.client, chance)
                clock = DriftingClock(chance.uniform(0.97, 1.03))
                return Lease(client, KEY, who, timing=TIMING, clock=clock, together=together)

            group, others = [make("all", True) for _ in range(members)], [make(who, False) for who in "xy"]
            terms: list[str] = []
            tasks = [asyncio.create_task(share(each, terms, chance)) for each in group]
            tasks += [asyncio.create_task(lead(each, terms, chance)) for each in others]
            for _ in range(4000):
                await asyncio.sleep(0.25)
                held = {each.identity for each in (*group, *others) if each.held}
                assert len(held) <= 1, f"two leaders: {held}"
            for task in tasks:
                if task.done():
                    task.result()
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(60)
            assert "all" in terms, "the group never led: the test tested nothing"

    run_virtual(scenario(), seed=seed)


class Slow:
    """A client of a busy server: each request takes the better part of a second."""

    def __init__(self, inner: Any, chance: random.Random) -> None:
        self._inner = inner
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)

        async def call(*args: Any, **options: Any) -> Any:
            await asyncio.sleep(self._chance.uniform(0.1, 0.7))
            answer = await found(*args, **options)
            await asyncio.sleep(self._chance.uniform(0.1, 0.7))
            return answer

        return call


@virtual
async def test_many_keep_a_lease_together_on_a_slow_server_and_most_of_them_only_read_it() -> None:
    chance = random.Random(5)
    async with plane() as p:

        def make() -> Lease:
            client: Any = Slow(p.client, chance)
            return Lease(client, KEY, "all", timing=TIMING, clock=p.clock, together=True)

        async def hold_and_keep(lease: Lease) -> None:
            await lease.hold()
            await lease.keep()

        group = [make() for _ in range(10)]
        keeping = [asyncio.create_task(hold_and_keep(each)) for each in group]
        async with asyncio.timeout(120):
            while not all(each.held for each in group):  # noqa: ASYNC110  (virtual seconds)
                await asyncio.sleep(0.1)
        first = (await p.client.get(LEASE, KEY)).resource_version
        for _ in range(120):
            await asyncio.sleep(1)
            assert all(each.held for each in group), "one of them lost it"
        assert not any(each.done() for each in keeping)
        assert int((await p.client.get(LEASE, KEY)).resource_version) - int(first) < 120
        for each in keeping:
            each.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)


@virtual
async def test_a_released_lease_is_taken_at_the_next_look_and_a_dead_one_after_its_duration() -> None:
    async with plane() as p:
        first, second = (Lease(p.client, KEY, name, timing=TIMING, clock=p.clock) for name in ("a", "b"))
        await first.hold()
        waiting = asyncio.create_task(second.hold())
        await asyncio.sleep(5)
        await first.release()
        began = p.clock.monotonic()
        await waiting
        assert p.clock.monotonic() - began < 2.5
        assert second.transitions == 1
        began = p.clock.monotonic()  # b dies without a word
        await first.hold()
        assert 15 <= p.clock.monotonic() - began < 18


@virtual
async def test_the_fence_closes_before_others_may_take_over() -> None:
    async with plane() as p:
        lease = Lease(p.client, KEY, "a", timing=TIMING, clock=p.clock)
        with pytest.raises(LeaseLost, match="not writing"):
            lease.fence()
        await lease.hold()
        assert lease.fence() == pytest.approx(10.0)
        await asyncio.sleep(9)
        assert lease.fence() == pytest.approx(1.0)
        await asyncio.sleep(1)
        with pytest.raises(LeaseLost):
            lease.fence()


@virtual
async def test_keeping_ends_at_the_deadline_not_at_the_next_look() -> None:
    class Dead:
        def __getattr__(self, name: str) -> Any:
            async def hang(*args: Any, **options: Any) -> Any:
                await asyncio.Event().wait()

            return hang

    async with plane() as p:
        lease = Lease(p.client, KEY, "a", timing=TIMING, clock=p.clock)
        await lease.hold()
        began = p.clock.monotonic()
        lease._client = Dead()
        with pytest.raises(LeaseLost):
            await lease.keep()
        assert p.clock.monotonic() - began == pytest.approx(10.0, abs=0.01)


@virtual
async def test_a_lapsed_lease_is_not_renewed_even_if_nobody_took_it() -> None:
    async with plane() as p:
        lease = Lease(p.client, KEY, "a", timing=TIMING, clock=p.clock)
        await lease.hold()
        await asyncio.sleep(30)  # the process stood still
        assert not await lease.renew()
        with pytest.raises(LeaseLost):
            await lease.keep()


@virtual
async def test_somebody_who_edits_the_record_does_not_end_a_term() -> None:
    async with plane() as p:
        lease = Lease(p.client, KEY, "a", timing=TIMING, clock=p.clock)
        await lease.hold()
        keeping = asyncio.create_task(lease.keep())
        for n in range(50):
            await asyncio.sleep(1.0)
            await p.client.patch(LEASE, KEY, MergePatch({"metadata": {"annotations": {"n": str(n)}}}))
        assert lease.held
        keeping.cancel()


@virtual
async def test_two_renewals_of_ours_at_once_do_not_race_each_other() -> None:
    async with plane() as p:
        lease = Lease(p.client, KEY, "a", timing=TIMING, clock=p.clock)
        await lease.hold()
        assert await asyncio.gather(*(lease.renew() for _ in range(5))) == [True] * 5


@virtual
async def test_a_record_that_was_deleted_is_not_taken_from_under_its_holder() -> None:
    async with plane() as p:
        first, second = (Lease(p.client, KEY, name, timing=TIMING, clock=p.clock) for name in ("a", "b"))
        await first.hold()
        waiting = asyncio.create_task(second.hold())
        await asyncio.sleep(3)
        await p.client.delete(LEASE, KEY)
        while first.held:
            assert not second.held
            await asyncio.sleep(0.1)
        await waiting


@virtual
async def test_a_fraction_of_a_second_is_rounded_up_in_the_record() -> None:
    async with plane() as p:
        lease = Lease(p.client, KEY, "a", timing=LeaseTiming(1.5, 1.2, 0.2), clock=p.clock)
        await lease.hold()
        assert (await p.client.get(LEASE, KEY))["spec"]["leaseDurationSeconds"] == 2


def test_timings_that_allow_two_leaders_are_refused() -> None:
    for timing in ((10.0, 15.0, 2.0), (15.0, 10.0, 10.0), (15.0, 15.0, 2.0), (15.0, 10.0, 0.0)):
        with pytest.raises(ValueError, match="must hold"):
            LeaseTiming(*timing)


@virtual
async def test_who_lost_a_lease_may_win_it_again() -> None:
    async with plane() as p:
        first, second = (Lease(p.client, KEY, name, timing=TIMING, clock=p.clock) for name in ("a", "b"))
        for _ in range(3):
            await first.hold()
            await asyncio.sleep(30)  # lapsed, unreleased
            await second.hold()
            await asyncio.sleep(30)
        assert second.transitions == 5
