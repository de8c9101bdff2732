from __future__ import annotations

import asyncio
import random
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.runtime.clock import run_virtual
from homeport.runtime.queue import Backoff, Priority, ShutDown, WorkQueue

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "later", "urgent", "resync"]), st.integers(0, 5), st.floats(0.0, 3.0, allow_nan=False)
    ),
    max_size=60,
)


@given(STEPS, st.integers(1, 4), st.integers(0, 2**32))
@settings(deadline=None, max_examples=150)
def test_no_key_is_lost_and_none_is_worked_on_twice_at_once(
    steps: list[tuple[str, int, float]], workers: int, seed: int
) -> None:
    async def scenario() -> None:
        queue: WorkQueue[int] = WorkQueue()
        chance = random.Random(seed)
        working: set[int] = set()
        last_added: dict[int, float] = {}
        last_started: dict[int, float] = {}
        loop = asyncio.get_running_loop()

        async def worker() -> None:
            try:
                while True:
                    key = await queue.get()
                    assert key not in working
                    working.add(key)
                    last_started[key] = loop.time()
                    await asyncio.sleep(chance.random())
                    working.discard(key)
                    if chance.random() < 0.2:
                        queue.retry(key)
                        last_added[key] = loop.time()
                    else:
                        queue.forget(key)
                    queue.done(key)
            except ShutDown:
                return

        tasks = [asyncio.create_task(worker()) for _ in range(workers)]
        for action, key, pause in steps:
            if action == "later":
                queue.add(key, after=pause)
            else:
                queue.add(
                    key, priority={"urgent": Priority.USER, "resync": Priority.RESYNC}.get(action, Priority.NORMAL)
                )
            last_added[key] = loop.time()
            await asyncio.sleep(pause / 3)
        while not queue.idle or queue.delayed:  # noqa: ASYNC110  (virtual seconds)
            await asyncio.sleep(0.5)
        queue.close()
        await asyncio.gather(*tasks)
        for key, moment in last_added.items():
            assert last_started[key] >= moment or last_started[key] == pytest.approx(moment)

    run_virtual(scenario(), seed=seed)


def test_what_a_user_did_goes_before_a_resync_and_old_keys_do_not_starve() -> None:
    async def scenario() -> list[str]:
        queue: WorkQueue[str] = WorkQueue(fairness=4)
        queue.add("resync", priority=Priority.RESYNC)
        for n in range(6):
            queue.add(f"user-{n}", priority=Priority.USER)
        order = []
        for _ in range(7):
            key = await queue.get()
            order.append(key)
            queue.done(key)
        return order

    order = run_virtual(scenario())
    assert order[0] == "user-0"
    assert order.index("resync") == 3


def test_a_key_added_while_in_work_is_worked_on_again_once() -> None:
    async def scenario() -> int:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        key = await queue.get()
        for _ in range(100):
            queue.add("a")
        assert len(queue) == 0
        queue.done(key)
        return len(queue)

    assert run_virtual(scenario()) == 1


def test_failures_wait_longer_and_longer_and_success_starts_over() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue(backoff=Backoff(first=1.0, factor=2.0, limit=10.0, jitter=0.0))
        assert [queue.retry("a") for _ in range(5)] == [1.0, 2.0, 4.0, 8.0, 10.0]
        queue.forget("a")
        assert queue.retry("a") == 1.0

    run_virtual(scenario())


def test_an_explicit_delay_never_postpones_a_key_that_is_due_earlier() -> None:
    async def scenario() -> float:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a", after=5.0)
        queue.add("a", after=60.0)
        await queue.get()
        return asyncio.get_running_loop().time()

    assert run_virtual(scenario()) == pytest.approx(5.0)


def test_a_cancelled_worker_passes_its_wake_up_on() -> None:
    async def scenario() -> str:
        queue: WorkQueue[str] = WorkQueue()
        first = asyncio.create_task(queue.get())
        second = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
        return await second

    assert run_virtual(scenario()) == "a"


def test_closing_ends_the_workers() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.close()
        with pytest.raises(ShutDown):
            await waiting

    run_virtual(scenario())


def test_a_wake_up_that_finds_its_worker_cancelled_goes_to_the_next() -> None:
    async def scenario() -> str:
        queue: WorkQueue[str] = WorkQueue()
        first = asyncio.create_task(queue.get())
        second = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        first.cancel()
        queue.add("a")
        with pytest.raises(asyncio.CancelledError):
            await first
        return await second

    assert run_virtual(scenario()) == "a"


def test_dropped_keys_do_not_come_back_by_timer_retry_or_while_in_work() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        for key in ("ready", "working"):
            queue.add(key)
        queue.add("later", after=5.0)
        queue.retry("failed")
        assert await queue.get() == "ready"
        working = await queue.get()
        queue.add(working)
        queue.drop(lambda key: key != "ready")
        queue.done(working)
        queue.done("ready")
        assert (len(queue), queue.delayed, queue.failures("failed")) == (0, 0, 0)
        queue.add("later")
        assert await queue.get() == "later"

    run_virtual(scenario())


def test_waiting_times_and_retries_are_reported() -> None:
    async def scenario() -> tuple[list[float], int]:
        waited: list[float] = []
        retries: list[None] = []
        queue: WorkQueue[str] = WorkQueue(taken=waited.append, retried=lambda: retries.append(None))
        queue.add("a")
        await asyncio.sleep(2)
        queue.done(await queue.get())
        assert queue.retry("a", at_least=7.0) == 7.0
        return waited, len(retries)

    assert run_virtual(scenario()) == ([2.0], 1)


def test_keys_that_are_no_longer_delayed_are_not_held_until_their_time() -> None:
    class Name:
        pass

    async def scenario() -> int:
        queue: WorkQueue[Name] = WorkQueue()
        gone = []
        for _ in range(100):
            name = Name()
            queue.add(name, after=3600.0)
            queue.add(name)
            queue.done(await queue.get())
            gone.append(weakref.ref(name))
        del name
        queue.add(Name(), after=7200.0)
        assert queue.delayed == 1
        return sum(each() is not None for each in gone)

    assert run_virtual(scenario()) < 20


def test_delayed_keys_come_at_their_own_times_in_whichever_order_they_were_added() -> None:
    async def scenario() -> list[tuple[str, float]]:
        queue: WorkQueue[str] = WorkQueue()
        for key, after in (("late", 30.0), ("soon", 1.0), ("between", 5.0), ("late", 20.0), ("soon", 10.0)):
            queue.add(key, after=after)
        found = []
        for _ in range(3):
            key = await queue.get()
            queue.done(key)
            found.append((key, asyncio.get_running_loop().time()))
        assert queue.delayed == 0
        return found

    assert run_virtual(scenario()) == [("soon", 1.0), ("between", 5.0), ("late", 20.0)]


async def crowded(queue: WorkQueue[str], seconds: float) -> None:
    """Many keys, each of which waits so long for a worker."""
    for number in range(100):
        queue.add(f"other-{number}")
        await asyncio.sleep(seconds)
        queue.done(await queue.get())


async def times(queue: WorkQueue[str], priority: Priority) -> tuple[float, int]:
    """When a key that was worked on just now comes again after three wakes, and how often."""
    loop = asyncio.get_running_loop()
    queue.add("a", priority=Priority.USER)
    key = await queue.get()
    queue.add(key, priority=priority)
    queue.rest(key)
    queue.done(key)
    began = loop.time()
    for _ in range(2):
        queue.add(key, priority=priority)
    assert await queue.get() == key
    queue.done(key)
    return loop.time() - began, len(queue) + queue.delayed


def test_a_key_that_was_just_worked_on_rests_while_keys_wait_for_workers_and_then_comes_once() -> None:
    async def scenario() -> tuple[float, int]:
        queue: WorkQueue[str] = WorkQueue()
        await crowded(queue, 0.03)
        return await times(queue, Priority.NORMAL)

    waited, left = run_virtual(scenario())
    assert waited == pytest.approx(0.3, rel=0.1)
    assert left == 0


def test_what_a_user_does_is_looked_at_at_once_however_many_keys_wait() -> None:
    async def scenario() -> tuple[float, int]:
        queue: WorkQueue[str] = WorkQueue()
        await crowded(queue, 0.03)
        return await times(queue, Priority.USER)

    assert run_virtual(scenario()) == (0.0, 0)


def test_no_key_rests_where_none_waits() -> None:
    async def scenario() -> tuple[float, int]:
        queue: WorkQueue[str] = WorkQueue()
        await crowded(queue, 0.001)
        return await times(queue, Priority.NORMAL)

    assert run_virtual(scenario()) == (0.0, 0)


def test_no_key_rests_any_more_soon_after_the_last_one_had_to_wait() -> None:
    async def scenario() -> tuple[float, int]:
        queue: WorkQueue[str] = WorkQueue()
        await crowded(queue, 60.0)
        await asyncio.sleep(1.1)
        return await times(queue, Priority.NORMAL)

    assert run_virtual(scenario()) == (0.0, 0)


def test_no_key_rests_for_longer_than_a_second() -> None:
    async def scenario() -> tuple[float, int]:
        queue: WorkQueue[str] = WorkQueue()
        await crowded(queue, 60.0)
        return await times(queue, Priority.NORMAL)

    waited, left = run_virtual(scenario())
    assert waited == pytest.approx(1.0)
    assert left == 0
