"""Watching: history first, then live, in order, each watch only what concerns it."""

from __future__ import annotations

import asyncio

import pytest

from homeport.store import Change, Compacted, Lagged, Store, Watch


def stamped(revision: int) -> bytes:
    return b"at %d" % revision


async def fill(store: Store, *names: str, bucket: str = "pods") -> None:
    for name in names:
        await store.put(bucket, name, stamped, expect=None)


def revisions(changes: list[Change]) -> list[int]:
    return [change.revision for change in changes]


async def waiting(watch: Watch) -> asyncio.Task[list[Change]]:
    task = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    return task


async def test_a_watch_replays_history_and_then_follows(store: Store) -> None:
    await fill(store, "a", "b", "a")
    watch = store.watch("pods", after=1)
    assert revisions(await anext(watch)) == [2, 3]
    live = await waiting(watch)
    assert not live.done()
    await fill(store, "c")
    changes = await live
    assert revisions(changes) == [4]
    assert changes[0].record is store.get("pods", "c")


async def test_changes_carry_the_state_before_and_a_deletion_its_last_bytes(store: Store) -> None:
    await fill(store, "a")
    await store.put("pods", "a", stamped, expect=1)
    await store.delete("pods", "a", stamped, expect=2)
    created, updated, deleted = await anext(store.watch("pods", after=0))
    assert (created.previous, created.value) == (None, None)
    assert updated.previous is created.record
    assert updated.record is not None
    assert (deleted.record, deleted.previous, deleted.value) == (None, updated.record, b"at 3")


async def test_a_watch_gets_only_its_bucket_and_prefix(store: Store) -> None:
    await fill(store, "ns/a", "ns2/a")
    watches = {prefix: store.watch("pods", after=0, prefix=prefix) for prefix in ("", "ns/", "ns2/", "ns/abc", "n")}
    await fill(store, "ns/a", "ns2/b", "ns/abc", "n")
    await fill(store, "ns/a", bucket="secrets")
    heard = {prefix: revisions(await anext(watch)) for prefix, watch in watches.items()}
    assert heard == {"": [1, 2, 3, 4, 5, 6], "ns/": [1, 3, 5], "ns2/": [2, 4], "ns/abc": [5], "n": [1, 2, 3, 4, 5, 6]}


async def test_everything_unread_comes_in_one_batch(store: Store) -> None:
    watch = store.watch("pods", after=0)
    await fill(store, *"abcde")
    assert revisions(await anext(watch)) == [1, 2, 3, 4, 5]


async def test_an_unrelated_commit_wakes_no_watch(store: Store) -> None:
    waiters = [
        await waiting(store.watch("pods", after=0, prefix="other/")),
        await waiting(store.watch("nodes", after=0)),
    ]
    await fill(store, "ns/a")
    await asyncio.sleep(0)
    assert not any(waiter.done() for waiter in waiters)
    for waiter in waiters:
        waiter.cancel()


async def test_the_revision_of_a_watch_covers_what_does_not_concern_it(store: Store) -> None:
    watch = store.watch("pods", after=0)
    assert watch.revision == 0
    await fill(store, "a", "b", bucket="secrets")
    assert watch.revision == 2
    await fill(store, "a")
    assert watch.revision == 2
    await fill(store, "c", bucket="secrets")
    assert watch.revision == 2
    await anext(watch)
    assert watch.revision == 4


async def test_a_watch_from_a_revision_not_reached_yet_skips_up_to_it(store: Store) -> None:
    watch = store.watch("pods", after=3)
    assert watch.revision == 3
    await fill(store, *"abcde")
    assert revisions(await anext(watch)) == [4, 5]


async def test_closing_ends_the_iteration_of_a_waiting_task(store: Store) -> None:
    watch = store.watch("pods", after=0)

    async def collect() -> list[list[int]]:
        return [revisions(changes) async for changes in watch]

    collecting = asyncio.create_task(collect())
    await fill(store, "a")
    await asyncio.sleep(0)
    watch.close()
    watch.close()
    assert await collecting == [[1]]
    assert store.stats().watches == 0
    await fill(store, "b")
    with pytest.raises(StopAsyncIteration):
        await anext(watch)
    assert watch.revision == 1


async def test_closing_the_store_ends_every_watch(store: Store) -> None:
    waiters = [await waiting(store.watch("pods", after=0, prefix=prefix)) for prefix in ("", "a/", "b/")]
    await store.close()
    for waiter in waiters:
        with pytest.raises(StopAsyncIteration):
            await waiter


async def test_a_cancelled_read_loses_no_change(store: Store) -> None:
    watch = store.watch("pods", after=0)
    reading = await waiting(watch)
    await fill(store, "a")
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    if reading.cancelled():
        assert revisions(await anext(watch)) == [1]
    else:
        assert revisions(reading.result()) == [1]


async def test_a_watch_from_before_the_kept_history_is_refused(store: Store) -> None:
    await fill(store, "a", "b", "c")
    await store.compact(2)
    with pytest.raises(Compacted) as caught:
        store.watch("pods", after=1)
    assert caught.value.oldest == 2
    assert revisions(await anext(store.watch("pods", after=2))) == [3]


async def test_an_open_watch_is_not_hurt_by_compaction(store: Store) -> None:
    watch = store.watch("pods", after=0)
    await fill(store, "a", "b")
    await store.compact(2)
    assert revisions(await anext(watch)) == [1, 2]


async def test_a_watcher_that_does_not_read_is_dropped_with_an_error() -> None:
    store = await Store.open(None, lag_limit=3)
    slow, quick = store.watch("pods", after=0), store.watch("pods", after=0)
    for name in "abcd":
        await fill(store, name)
        assert len(await anext(quick)) == 1
    with pytest.raises(Lagged, match="over 3 changes unread") as caught:
        await anext(slow)
    assert caught.value.revision == 0
    assert store.stats().watches == 1
    await store.close()


async def test_a_long_replay_does_not_count_as_lag() -> None:
    store = await Store.open(None, lag_limit=3)
    await fill(store, *"abcdef")
    watch = store.watch("pods", after=0)
    await fill(store, "g")
    assert len(await anext(watch)) == 7
    await store.close()


async def test_thousands_of_watches_elsewhere_do_not_slow_a_commit_down(store: Store) -> None:
    watches = [store.watch("pods", after=0, prefix=f"ns{n}/") for n in range(2000)]
    waiters = [await waiting(watch) for watch in watches]
    await fill(store, "ns7/a")
    assert revisions(await waiters[7]) == [1]
    assert sum(waiter.done() for waiter in waiters) == 1
    for waiter in waiters:
        waiter.cancel()
