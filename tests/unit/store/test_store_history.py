"""How much past is kept, in memory and on disk."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from homeport.store import Compacted, FutureRevision, History, Store
from homeport.store.database import Database
from homeport.store.journal import Journal, cost
from homeport.store.layout import file_bytes, wal_of
from homeport.store.record import Change, Record


def stamped(revision: int) -> bytes:
    return b"at %d" % revision


async def write(store: Store, times: int, size: int = 10) -> None:
    for _ in range(times):
        await store.put("pods", "a", lambda revision: bytes(size), expect=None)


async def test_only_the_newest_changes_are_kept() -> None:
    store = await Store.open(None, history=History(revisions=5))
    await write(store, 12)
    assert (store.revision, store.compacted) == (12, 7)
    assert len(await anext(store.watch("pods", after=7))) == 5
    with pytest.raises(Compacted):
        store.watch("pods", after=6)
    await store.close()


async def test_history_is_bounded_in_bytes_under_churn() -> None:
    store = await Store.open(None, history=History(bytes=1_000_000))
    await write(store, 300, size=50_000)
    stats = store.stats()
    assert 900_000 < stats.history_bytes <= 1_000_000
    assert stats.history_changes == store.revision - store.compacted == 19
    assert stats.object_bytes == {"pods": 50_000}
    await store.close()


async def test_changes_older_than_the_limit_go() -> None:
    now = 1000.0
    store = await Store.open(None, history=History(seconds=60), clock=lambda: now)
    await write(store, 2)
    now = 1050.0
    await write(store, 2)
    assert store.compacted == 0
    now = 1070.0
    await write(store, 1)
    assert store.compacted == 2
    await store.close()


async def test_age_counts_across_a_restart(tmp_path: Path) -> None:
    now = 1000.0
    store = await Store.open(tmp_path / "homeport.db", clock=lambda: now)
    await write(store, 2)
    now = 1050.0
    await write(store, 2)
    await store.close()
    now = 1070.0
    store = await Store.open(tmp_path / "homeport.db", history=History(seconds=60), clock=lambda: now)
    assert (store.compacted, store.revision) == (2, 4)
    await store.close()


async def test_a_watch_resumes_across_a_restart_from_every_kept_revision(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    for name in "aba":
        await store.put("pods", name, stamped, expect=None)
    await store.delete("pods", "a", stamped, expect=None)
    await store.put("secrets", "a", stamped, expect=None)
    await store.put("pods", "a", stamped, expect=0)
    before = await anext(store.watch("pods", after=0))
    await store.close()
    store = await Store.open(tmp_path / "homeport.db")
    for start in range(7):
        expected = [facts(change) for change in before if change.revision > start]
        watch = store.watch("pods", after=start)
        assert expected == ([facts(change) for change in await anext(watch)] if expected else [])
    await store.close()


def facts(change: Change) -> tuple[object, ...]:
    def of(record: Record | None) -> tuple[object, ...] | None:
        return None if record is None else (record.value, record.created, record.revision)

    return (change.revision, change.bucket, change.name, of(change.record), of(change.previous), change.value)


async def test_compaction_reaches_the_disk(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    await write(store, 9)
    await store.compact(6)
    await store.close()
    store = await Store.open(tmp_path / "homeport.db")
    assert (store.compacted, store.revision, store.stats().history_changes) == (6, 9, 3)
    await store.compact(3)
    assert store.compacted == 6
    with pytest.raises(FutureRevision):
        await store.compact(10)
    await store.close()


async def test_the_revision_survives_when_all_history_and_all_objects_are_gone(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    await write(store, 4)
    await store.delete("pods", "a", stamped, expect=None)
    await store.compact(5)
    await store.close()
    store = await Store.open(tmp_path / "homeport.db")
    assert (store.revision, store.compacted, store.buckets()) == (5, 5, [])
    assert (await store.put("pods", "a", stamped, expect=0)).revision == 6
    await store.close()


async def test_the_database_does_not_grow_with_the_number_of_writes(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db", history=History(revisions=100), synchronous="NORMAL")
    await write(store, 2500, size=4000)
    await store.close()
    assert (tmp_path / "homeport.db").stat().st_size < 1000 * 4000
    store = await Store.open(tmp_path / "homeport.db", history=History(revisions=100))
    assert store.stats().history_changes == 100
    await store.close()


def test_decoded_objects_are_forgotten_with_old_changes_and_kept_with_recent_and_current_ones() -> None:
    journal = Journal(History(), 0)
    changes = []
    before: Record | None = None
    for revision in range(1, 1500):
        record = Record("pods", "a", b"x", 1, revision)
        record.memo = "decoded"
        change = Change(revision, "pods", "a", record, before)
        change.memo = "encoded"
        journal.append(change, 0.0)
        changes.append(change)
        before = record
    assert changes[0].memo is None
    assert changes[0].record is not None
    assert changes[0].record.memo is None
    assert changes[-1].memo == "encoded"
    assert before is not None
    assert before.memo == "decoded"
    assert sum(change.memo is not None for change in changes) == 1024


def test_history_counts_only_the_bytes_that_it_alone_keeps() -> None:
    first = Record("pods", "a", bytes(1000), 1, 1)
    second = Record("pods", "a", bytes(2000), 1, 2)
    empty = cost(Change(1, "pods", "a", first, None))
    assert cost(Change(2, "pods", "a", second, first)) == empty + 1000
    assert cost(Change(3, "pods", "a", None, second, bytes(500))) == empty + 2500


async def churn(store: Store, rounds: int) -> None:
    """Objects are made and deleted, all under names of their own."""
    for number in range(rounds):
        name = f"a{number}"
        made = await store.put("pods", name, lambda revision: bytes(20_000), expect=0)
        await store.delete("pods", name, lambda revision: bytes(20_000), expect=made.revision)


async def test_the_file_is_as_small_after_churn_as_before_it(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    store = await Store.open(path)
    await store.put("pods", "stays", stamped, expect=0)
    await churn(store, 300)
    assert file_bytes(path) > 10_000_000
    await store.compact(store.revision)
    await store.flush()
    size = path.stat().st_size
    await store.close()
    assert size < 2_000_000
    store = await Store.open(path)
    assert [record.name for record in store.range("pods")] == ["stays"]
    await store.close()


async def test_the_file_stays_bounded_under_churn_with_nobody_asking_for_compaction(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    store = await Store.open(path, history=History(bytes=1_000_000))
    await churn(store, 1500)  # 60 MB of values
    await store.flush()
    await store.flush()  # the steps of shrinking that the first one set off
    assert path.stat().st_size < 12_000_000
    await store.close()


async def test_a_file_of_an_earlier_version_gives_space_back_too(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    store = await Store.open(path, history=History(bytes=40_000_000))
    await store.put("pods", "stays", stamped, expect=0)
    await churn(store, 300)
    await store.close()
    connection = apsw.Connection(str(path))
    connection.pragma("auto_vacuum", 0)
    connection.execute("VACUUM")
    connection.close()
    grown = path.stat().st_size
    store = await Store.open(path)
    await store.compact(store.revision)
    await store.flush()
    assert path.stat().st_size < grown / 5
    assert [record.name for record in store.range("pods")] == ["stays"]
    await store.close()


async def test_the_log_of_a_burst_is_cut_when_it_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    database = Database(path, None, frozenset(), "NORMAL")
    database.load()
    changes = []
    for revision in range(1, 1201):
        record = Record("pods", f"a{revision}", bytes(20_000), revision, revision)
        changes.append(Change(revision, "pods", record.name, record, None))
    database.write(changes, 0.0)
    assert wal_of(path).stat().st_size > 20_000_000
    database.checkpoint()
    record = Record("pods", "last", b"x", 1201, 1201)
    database.write([Change(1201, "pods", "last", record, None)], 0.0)
    assert wal_of(path).stat().st_size <= 8 * 1024 * 1024
    database.close()
