"""Reading ranges, now and in the past."""

from __future__ import annotations

import pytest

from homeport.store import Compacted, FutureRevision, Store
from homeport.store.table import beyond


def stamped(revision: int) -> bytes:
    return b"at %d" % revision


async def fill(store: Store, *names: str) -> None:
    for name in names:
        await store.put("pods", name, stamped, expect=None)


def names(store: Store, **options: object) -> list[str]:
    return [record.name for record in store.range("pods", **options)]  # type: ignore[arg-type]


async def test_a_range_is_in_string_order_whatever_the_order_of_writing(store: Store) -> None:
    await fill(store, "b/x", "a/z", "c", "a/b", "a-b/c")
    assert names(store) == ["a-b/c", "a/b", "a/z", "b/x", "c"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"prefix": "a/"}, ["a/b", "a/z"]),
        ({"prefix": "a/", "after": "a/b"}, ["a/z"]),
        ({"prefix": "a/", "after": "a/z"}, []),
        ({"prefix": "b/", "after": "a/z"}, ["b/x"]),
        ({"prefix": "a/", "after": "b/x"}, []),
        ({"after": "a/b", "limit": 2}, ["a/z", "b/x"]),
        ({"limit": 1}, ["a-b/c"]),
        ({"prefix": "zz"}, []),
        ({"prefix": "a/", "limit": 100}, ["a/b", "a/z"]),
    ],
)
async def test_prefix_after_and_limit_cut_a_range(
    store: Store, options: dict[str, object], expected: list[str]
) -> None:
    await fill(store, "a-b/c", "a/b", "a/z", "b/x", "c")
    assert names(store, **options) == expected
    await fill(store, "a/c", "b/a", "c")
    await store.delete("pods", "a/b", stamped, expect=None)
    assert names(store, **options, revision=5) == expected


async def test_objects_are_counted_by_prefix(store: Store) -> None:
    await fill(store, "a/b", "a/c", "b/a")
    assert (store.count("pods"), store.count("pods", "a/"), store.count("pods", "c/")) == (3, 2, 0)
    assert store.count("nothing") == 0
    assert store.range("nothing") == []


async def test_the_past_is_shown_with_the_bytes_of_its_time(store: Store) -> None:
    await fill(store, "a", "b")
    await store.put("pods", "a", stamped, expect=1)
    await store.delete("pods", "b", stamped, expect=2)
    await store.put("pods", "b", stamped, expect=0)
    seen = {
        revision: [(record.name, record.value) for record in store.range("pods", revision=revision)]
        for revision in range(6)
    }
    assert seen == {
        0: [],
        1: [("a", b"at 1")],
        2: [("a", b"at 1"), ("b", b"at 2")],
        3: [("a", b"at 3"), ("b", b"at 2")],
        4: [("a", b"at 3")],
        5: [("a", b"at 3"), ("b", b"at 5")],
    }


async def test_a_bucket_emptied_since_is_still_full_in_the_past(store: Store) -> None:
    await fill(store, "a")
    await store.delete("pods", "a", stamped, expect=1)
    assert [record.value for record in store.range("pods", revision=1)] == [b"at 1"]
    assert store.buckets() == []


async def test_the_future_and_the_compacted_past_cannot_be_read(store: Store) -> None:
    await fill(store, "a", "b", "c")
    with pytest.raises(FutureRevision) as future:
        store.range("pods", revision=4)
    assert (future.value.revision, future.value.newest) == (4, 3)
    await store.compact(2)
    assert names(store, revision=2) == ["a", "b"]
    with pytest.raises(Compacted) as compacted:
        store.range("pods", revision=1)
    assert (compacted.value.revision, compacted.value.oldest) == (1, 2)


def test_the_end_of_a_prefix_is_exact_at_the_last_code_point() -> None:
    assert beyond("a/") == "a0"
    assert beyond("a\U0010ffff") == "b"
    assert beyond("\U0010ffff") is None
    assert beyond("") is None


async def test_the_state_of_a_bucket_is_another_one_after_every_change(store: Store) -> None:
    seen = [store.state("pods")]
    await fill(store, "a", "b")
    seen.append(store.state("pods"))
    await store.put("nodes", "n", stamped, expect=0)
    assert store.state("pods") == seen[-1]
    await store.delete("pods", "b", stamped, expect=None)
    seen.append(store.state("pods"))
    await store.put("pods", "b", stamped, expect=0)
    seen.append(store.state("pods"))
    await store.put("pods", "b", stamped, expect=None)
    seen.append(store.state("pods"))
    assert len(set(seen)) == len(seen)
