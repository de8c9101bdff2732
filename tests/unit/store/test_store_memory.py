"""What a store takes in memory."""

from __future__ import annotations

import tracemalloc

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
