"""What a store takes in memory, and what one in memory leaves on disk."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import orjson

from homeport.store import Store

DOCUMENT = {"a": ["x" * 100] * 12}


async def test_values_take_no_more_memory_than_they_are_long() -> None:
    store = await Store.open(None)
    size = len(orjson.dumps(DOCUMENT))
    tracemalloc.start()
    try:
        for number in range(500):
            await store.put("pods", f"p{number}", lambda revision: orjson.dumps(DOCUMENT), expect=0)
        held = tracemalloc.get_traced_memory()[0] / 500
    finally:
        tracemalloc.stop()
    await store.close()
    assert held < size + 1200  # the record, the change, their names and places in tables


def files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_copy_of_a_store_in_memory_is_one_file_and_reading_it_leaves_nothing_else(tmp_path: Path) -> None:
    store = await Store.open(None)
    await store.put("pods", "a", lambda revision: b"x", expect=0)
    await store.backup(tmp_path / "copy.db")
    await store.close()
    assert files(tmp_path) == ["copy.db"]
    again = await Store.open(None, copy_of=tmp_path / "copy.db")
    await again.close()
    assert files(tmp_path) == ["copy.db"]


async def test_a_copy_that_was_cut_off_by_a_kill_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "copy.db.partial").write_bytes(b"half")
    (tmp_path / "copy.db.partial-wal").write_bytes(b"written when the process was killed")
    store = await Store.open(None)
    await store.put("pods", "a", lambda revision: b"x", expect=0)
    await store.backup(tmp_path / "copy.db")
    await store.close()
    assert files(tmp_path) == ["copy.db"]
