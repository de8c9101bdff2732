"""Writing: what is accepted, in which order it is told, and what a failed commit leaves behind."""

from __future__ import annotations

import asyncio
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from homeport.store import Change, Mismatch, Missing, Record, Store, StoreUnavailable


def stamped(revision: int) -> bytes:
    return b"at %d" % revision


async def test_a_put_returns_the_record_with_the_revision_its_bytes_were_made_with(store: Store) -> None:
    record = await store.put("pods", "ns/a", stamped, expect=0)
    assert (record.bucket, record.name, record.value) == ("pods", "ns/a", b"at 1")
    assert (record.created, record.revision, record.memo) == (1, 1, None)
    assert store.get("pods", "ns/a") is record
    assert store.revision == 1


async def test_revisions_are_one_counter_over_all_buckets(store: Store) -> None:
    first = await store.put("pods", "ns/a", stamped, expect=None)
    second = await store.put("secrets", "ns/a", stamped, expect=None)
    change = await store.delete("pods", "ns/a", stamped, expect=None)
    assert [first.revision, second.revision, change.revision] == [1, 2, 3]


async def test_an_update_keeps_the_creation_revision_and_a_new_object_of_the_name_does_not(store: Store) -> None:
    await store.put("pods", "a", stamped, expect=0)
    assert (await store.put("pods", "a", stamped, expect=1)).created == 1
    await store.delete("pods", "a", stamped, expect=2)
    assert (await store.put("pods", "a", stamped, expect=0)).created == 4


async def test_creating_what_exists_is_a_mismatch_that_shows_it(store: Store) -> None:
    record = await store.put("pods", "a", stamped, expect=0)
    with pytest.raises(Mismatch, match="expected absent but is at revision 1") as caught:
        await store.put("pods", "a", stamped, expect=0)
    assert caught.value.current is record
    assert store.revision == 1


async def test_a_write_expecting_another_revision_is_a_mismatch(store: Store) -> None:
    with pytest.raises(Mismatch) as caught:
        await store.put("pods", "a", stamped, expect=7)
    assert caught.value.current is None
    await store.put("pods", "a", stamped, expect=0)
    with pytest.raises(Mismatch):
        await store.delete("pods", "a", stamped, expect=7)


async def test_a_deletion_reports_the_object_before_and_the_final_bytes(store: Store) -> None:
    record = await store.put("pods", "a", stamped, expect=0)
    change = await store.delete("pods", "a", stamped, expect=record.revision)
    assert change.record is None
    assert change.previous is record
    assert (change.revision, change.value) == (2, b"at 2")
    assert store.get("pods", "a") is None
    assert store.buckets() == []


async def test_deleting_what_is_absent_raises_missing(store: Store) -> None:
    with pytest.raises(Missing, match="pods 'a' does not exist"):
        await store.delete("pods", "a", stamped, expect=None)


async def test_an_encoder_that_raises_uses_up_no_revision(store: Store) -> None:
    def refuse(revision: int) -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.put("pods", "a", refuse, expect=0)
    assert store.head("pods", "a") is None
    assert (await store.put("pods", "a", stamped, expect=0)).revision == 1


async def test_names_the_database_cannot_hold_are_refused_for_their_writer_alone(store: Store) -> None:
    good = asyncio.create_task(store.put("pods", "good", stamped, expect=0))
    for bad in ("", "a\udc80"):
        with pytest.raises(ValueError, match=r"needs a bucket and a name|surrogates not allowed"):
            await store.put("pods", bad, stamped, expect=0)
    with pytest.raises(TypeError, match="must return bytes"):
        await store.put("pods", "a", lambda revision: "text", expect=0)  # type: ignore[arg-type,return-value]
    assert (await good).name == "good"


async def test_the_head_shows_an_accepted_write_before_readers_see_it(store: Store) -> None:
    writing = asyncio.create_task(store.put("pods", "a", stamped, expect=0))
    await asyncio.sleep(0)
    head = store.head("pods", "a")
    assert head is not None
    assert head.value == b"at 1"
    assert store.get("pods", "a") is None
    assert await writing is head
    assert store.get("pods", "a") is head


async def test_writes_to_one_object_chain_without_waiting_for_the_disk(store: Store) -> None:
    seen: list[Change] = []
    store.subscribe("pods", seen.extend)
    await asyncio.gather(
        store.put("pods", "a", stamped, expect=0),
        store.put("pods", "a", stamped, expect=1),
        store.delete("pods", "a", stamped, expect=2),
        store.put("pods", "a", stamped, expect=0),
        store.delete("pods", "a", stamped, expect=4),
    )
    assert [change.revision for change in seen] == [1, 2, 3, 4, 5]
    assert seen[1].previous is seen[0].record
    assert seen[3].previous is None
    assert store.head("pods", "a") is None
    assert store.get("pods", "a") is None
    assert store.stats().pending_writes == 0


async def test_the_head_stays_ahead_while_an_earlier_write_to_the_object_is_committed(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    assert store._committer is not None
    gates = [threading.Event(), threading.Event()]
    writes: list[asyncio.Task[Record]] = []
    for gate in gates:
        # The committer stops at each gate, so that the writes behind it are commits of their own.
        store._committer.run(lambda database, gate=gate: gate.wait(10))  # type: ignore[misc]
        writes.append(asyncio.create_task(store.put("pods", "a", stamped, expect=len(writes))))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    gates[0].set()
    first = await writes[0]
    assert store.get("pods", "a") is first
    head = store.head("pods", "a")
    gates[1].set()
    assert head is await writes[1]
    assert store.stats().commits == 2
    await store.close()


async def test_only_one_of_many_writers_at_the_same_revision_wins(store: Store) -> None:
    await store.put("pods", "a", stamped, expect=0)
    results = await asyncio.gather(
        *(store.put("pods", "a", stamped, expect=1) for _ in range(20)), return_exceptions=True
    )
    assert sum(not isinstance(result, Mismatch) for result in results) == 1
    assert store.revision == 2


async def test_a_cancelled_writer_does_not_undo_its_write(store: Store) -> None:
    writing = asyncio.create_task(store.put("pods", "a", stamped, expect=0))
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await store.flush()
    record = store.get("pods", "a")
    assert record is not None
    assert record.value == b"at 1"
    assert (await store.put("pods", "a", stamped, expect=1)).revision == 2


async def test_subscribers_are_notified_before_the_writer_returns(store: Store) -> None:
    told: list[int] = []
    end = store.subscribe(None, lambda changes: told.extend(change.revision for change in changes))
    record = await store.put("pods", "a", stamped, expect=0)
    assert told == [record.revision]
    end()
    end()
    await store.put("pods", "b", stamped, expect=0)
    assert told == [1]


async def test_a_subscriber_that_raises_stops_neither_writers_nor_other_subscribers(store: Store) -> None:
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context["exception"]))
    told: list[Change] = []
    store.subscribe("pods", lambda changes: [][0])
    store.subscribe("pods", told.extend)
    await store.put("pods", "a", stamped, expect=0)
    assert [type(problem) for problem in problems] == [IndexError]
    assert len(told) == 1


async def test_writers_of_one_moment_share_one_commit(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    await asyncio.gather(*(store.put("pods", f"p{n}", stamped, expect=0) for n in range(100)))
    stats = store.stats()
    assert (stats.commits, stats.batch_sizes.sum, stats.commit_seconds.count) == (1, 100, 1)
    assert stats.objects == {"pods": 100}
    assert stats.database_bytes > 0
    await store.close()


async def test_a_store_on_disk_asks_for_quick_turns_of_its_thread(tmp_path: Path) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    store = await Store.open(tmp_path / "homeport.db")
    assert sys.getswitchinterval() <= 0.0001
    await store.close()
    sys.setswitchinterval(before)


async def test_a_closed_store_refuses_writes_and_may_be_closed_again(store: Store) -> None:
    accepted = asyncio.create_task(store.put("pods", "a", stamped, expect=0))
    await asyncio.sleep(0)
    await store.close()
    assert (await accepted).revision == 1
    for refused in (
        store.put("pods", "b", stamped, expect=0),
        store.delete("pods", "a", stamped, expect=None),
        store.delete("pods", "zz", stamped, expect=None),
        store.compact(1),
    ):
        with pytest.raises(StoreUnavailable, match="closed"):
            await refused
    await store.flush()
    await store.close()


@contextmanager
def largest_file(limit: int) -> Iterator[None]:
    """Writes beyond this size of a file fail, as they do on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_failed_commit_fails_everything_that_built_on_it_and_later_writes_succeed(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    store = await Store.open(path)
    told: list[int] = []
    store.subscribe(None, lambda changes: told.extend(change.revision for change in changes))
    kept = await store.put("pods", "a", stamped, expect=0)
    with largest_file(path.with_name("homeport.db-wal").stat().st_size):
        results = await asyncio.gather(
            store.put("pods", "a", stamped, expect=1),
            store.put("pods", "a", stamped, expect=2),
            store.put("pods", "b", lambda revision: bytes(100_000), expect=0),
            store.delete("pods", "a", stamped, expect=3),
            return_exceptions=True,
        )
    assert [type(result) for result in results] == [StoreUnavailable] * 4
    assert str(path) in str(results[0])
    assert store.get("pods", "a") is kept
    assert store.head("pods", "a") is kept
    assert store.head("pods", "b") is None
    assert (store.revision, told) == (1, [1])
    assert (store.stats().failed_commits, store.stats().pending_writes) == (1, 0)

    again = await store.put("pods", "a", stamped, expect=1)
    assert again.revision > 5
    assert told == [1, again.revision]
    await store.close()
    reopened = await Store.open(path)
    assert [record.value for record in reopened.range("pods")] == [again.value]
    assert [record.value for record in reopened.range("pods", revision=1)] == [b"at 1"]
    await reopened.close()


async def test_writes_accepted_while_a_commit_is_failing_fail_with_it(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    store = await Store.open(path)
    await store.put("pods", "a", stamped, expect=0)
    writes = []
    with largest_file(path.with_name("homeport.db-wal").stat().st_size):
        for n in range(1, 30):
            writes.append(asyncio.create_task(store.put("pods", f"b{n}", stamped, expect=0)))
            await asyncio.sleep(0)
        results = await asyncio.gather(*writes, return_exceptions=True)
    assert all(isinstance(result, StoreUnavailable) for result in results)
    assert store.count("pods") == 1
    record = await store.put("pods", "b1", stamped, expect=0)
    assert record.revision == 31
    await store.close()


async def test_a_full_disk_is_called_by_its_name(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    assert store._committer is not None
    await store._committer.run(lambda database: database._connection.pragma("max_page_count", 10))
    with pytest.raises(StoreUnavailable, match=f"disk full: {tmp_path}/homeport.db"):
        await store.put("pods", "a", lambda revision: bytes(200_000), expect=0)
    await store._committer.run(lambda database: database._connection.pragma("max_page_count", 100_000))
    assert (await store.put("pods", "a", lambda revision: bytes(200_000), expect=0)).revision == 2
    await store.close()
