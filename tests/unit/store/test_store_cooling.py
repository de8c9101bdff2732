"""Objects that do not change are kept compressed, and read as they were written."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import orjson

from homeport.runtime.clock import run_virtual
from homeport.store import Record, Store
from homeport.store.cooling import COLD_SECONDS

LONG = 3 * COLD_SECONDS


def document(number: int) -> bytes:
    conditions = [{"type": f"Condition{each}", "status": "True", "reason": "Ready"} for each in range(20)]
    return orjson.dumps({"metadata": {"name": f"p{number}"}, "status": {"conditions": conditions}})


async def fill(store: Store, count: int) -> None:
    for number in range(count):
        await store.put("pods", f"p{number:03}", lambda revision, number=number: document(number), expect=None)  # type: ignore[misc]


def held(store: Store) -> list[bool]:
    return [record.compressed for record in store.range("pods")]


def test_what_does_not_change_for_a_while_is_compressed_and_reads_the_same() -> None:
    async def scenario() -> None:
        store = await Store.open(None)
        await fill(store, 200)
        size = store.stats().object_bytes["pods"]
        assert not any(held(store))
        await asyncio.sleep(LONG)
        assert all(held(store))
        assert [record.value for record in store.range("pods")] == [document(number) for number in range(200)]
        assert store.stats().object_bytes["pods"] == size
        await store.close()

    run_virtual(scenario())


def test_an_object_that_is_written_again_and_again_is_not_compressed() -> None:
    async def scenario() -> None:
        store = await Store.open(None)
        await fill(store, 2)
        for _ in range(10):
            await asyncio.sleep(COLD_SECONDS / 2)
            await store.put("pods", "p001", lambda revision: document(revision), expect=None)
        assert held(store) == [True, False]
        await store.close()

    run_virtual(scenario())


def test_history_is_compressed_and_shows_the_past_as_it_was() -> None:
    async def scenario() -> None:
        store = await Store.open(None)
        await fill(store, 3)
        past = store.revision
        kept = store.stats().history_bytes
        for number in range(3):
            await store.put("pods", f"p{number:03}", lambda revision: document(1000 + revision), expect=None)
        full = store.stats().history_bytes
        await asyncio.sleep(LONG)
        before = store.range("pods", revision=past)
        assert [record.compressed for record in before] == [True] * 3
        assert [record.value for record in before] == [document(number) for number in range(3)]
        watch = store.watch("pods", after=past)
        changes = await anext(watch)
        assert [change.record.value for change in changes if change.record] == [document(1004 + n) for n in range(3)]
        watch.close()
        assert store.stats().history_bytes == full > kept  # counted by length, so that what is kept stays the same
        await store.close()

    run_virtual(scenario())


def test_memos_of_cold_objects_and_changes_are_dropped() -> None:
    async def scenario() -> None:
        store = await Store.open(None)
        cooled: list[Record] = []
        store.cooled = cooled.append
        watch = store.watch("pods", after=0)
        await fill(store, 2)
        changes = await anext(watch)
        for change in changes:
            change.memo = "encoded"
        await asyncio.sleep(LONG)
        assert [change.memo for change in changes] == [None, None]
        assert cooled == store.range("pods")
        watch.close()
        await store.close()

    run_virtual(scenario())


def test_what_was_read_from_a_file_is_compressed_and_written_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"

    async def make() -> None:
        store = await Store.open(path)
        await fill(store, 5)
        await store.close()

    async def change() -> None:
        store = await Store.open(path)
        await asyncio.sleep(LONG)
        assert all(held(store))
        await store.put("pods", "p000", lambda revision: document(7), expect=None)
        await store.delete("pods", "p001", lambda revision: document(1), expect=None)
        await store.backup(tmp_path / "copy.db")
        await store.close()

    async def read(found: Path) -> list[bytes]:
        store = await Store.open(found)
        values = [record.value for record in store.range("pods")]
        values += [record.value for record in store.range("pods", revision=5)] if found == path else []
        await store.close()
        return values

    run_virtual(make())
    run_virtual(change())
    now = [document(7), *(document(number) for number in (2, 3, 4))]
    assert run_virtual(read(path)) == [*now, *(document(number) for number in range(5))]
    assert run_virtual(read(tmp_path / "copy.db")) == now


def test_bytes_that_do_not_shrink_and_small_ones_stay_as_they_are() -> None:
    noise = random.Random(1).randbytes(5000)
    large, small = Record("secrets", "a", noise, 1, 1), Record("secrets", "b", b"{}" * 50, 1, 1)
    for record in (large, small):
        record.compress(b"")
    assert (large.compressed, small.compressed) == (False, False)
    assert (large.value, small.value) == (noise, b"{}" * 50)


def test_any_sample_will_do() -> None:
    for sample in (b"", document(3), bytes(100_000)):
        record = Record("pods", "a", document(5), 1, 1)
        record.compress(sample)
        record.compress(b"a second time changes nothing")
        assert record.compressed
        assert record.value == document(5)
        assert record.size == len(document(5))


def test_nothing_is_scheduled_for_a_store_at_rest() -> None:
    async def scenario() -> None:
        store = await Store.open(None)
        await fill(store, 1)
        await asyncio.sleep(LONG)
        assert store._cooling._timer is None
        await store.close()

    run_virtual(scenario())
