"""The store against a plain list of what was written, with restarts in between."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.store import Change, Compacted, History, Mismatch, Missing, Record, Store, Watch

BUCKETS = ("pods", "secrets")
NAMES = ("a", "ns/a", "ns/b", "ns2/a", "z")
PREFIXES = ("", "ns/", "ns2/", "zz")
KEPT = History(revisions=12, bytes=4000)

Key: TypeAlias = tuple[str, str]
Step: TypeAlias = tuple[str, str, str, str, int]
# revision, bucket, name, value (None: deleted), final bytes of a deletion
Entry: TypeAlias = tuple[int, str, str, bytes | None, bytes | None]

steps = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(("put", "put", "put", "delete")),
            st.sampled_from(BUCKETS),
            st.sampled_from(NAMES),
            st.sampled_from(("any", "right", "absent", "wrong")),
            st.integers(0, 600),
        ),
        st.just(("wait", "", "", "", 0)),
        st.just(("restart", "", "", "", 0)),
        st.tuples(st.just("compact"), st.just(""), st.just(""), st.just(""), st.integers(0, 5)),
        st.tuples(
            st.just("watch"), st.sampled_from(BUCKETS), st.sampled_from(PREFIXES), st.just(""), st.integers(0, 9)
        ),
    ),
    max_size=40,
)


@dataclass
class Model:
    entries: list[Entry] = field(default_factory=list)
    heads: dict[Key, tuple[int, int]] = field(default_factory=dict)  # created, revision

    def at(self, bucket: str, revision: int) -> dict[str, tuple[int, bytes]]:
        state: dict[str, tuple[int, bytes]] = {}
        for number, of, name, value, _ in self.entries:
            if of == bucket and number <= revision:
                if value is None:
                    del state[name]
                else:
                    state[name] = (number, value)
        return state

    def since(self, bucket: str, prefix: str, after: int) -> list[Entry]:
        return [
            entry for entry in self.entries if entry[1] == bucket and entry[2].startswith(prefix) and entry[0] > after
        ]


@dataclass
class Live:
    watch: Watch
    after: int
    seen: list[Entry] = field(default_factory=list)


class Run:
    def __init__(self, store: Store, path: Path | None) -> None:
        self.store = store
        self.path = path
        self.model = Model()
        self.writes: list[asyncio.Task[Record | Change]] = []
        self.live: list[Live] = []

    async def step(self, step: Step) -> None:
        kind, bucket, name, expect, size = step
        if kind in ("put", "delete"):
            await self.write(kind, bucket, name, expect, size)
        elif kind == "wait":
            await self.settle()
        elif kind == "restart" and self.path is not None:
            await self.restart()
        elif kind == "compact":
            await self.settle()
            await self.store.compact(max(self.store.compacted, self.store.revision - size))
        elif kind == "watch":
            after = max(self.store.compacted, self.store.revision - size)
            self.live.append(Live(self.store.watch(bucket, after=after, prefix=name), after))

    async def write(self, kind: str, bucket: str, name: str, expect: str, size: int) -> None:
        key = (bucket, name)
        head = self.model.heads.get(key)
        current = head[1] if head else 0
        wanted = {"any": None, "right": current, "absent": 0, "wrong": current + 1}[expect]
        revision = self.model.entries[-1][0] + 1 if self.model.entries else 1
        value = b"%d:" % revision + bytes(size)

        def encode(given: int) -> bytes:
            assert given == revision
            return value

        if kind == "put":
            task: asyncio.Task[Record | Change] = asyncio.ensure_future(
                self.store.put(bucket, name, encode, expect=wanted)
            )
        else:
            task = asyncio.ensure_future(self.store.delete(bucket, name, encode, expect=wanted))
        await asyncio.sleep(0)
        if kind == "delete" and head is None:
            assert isinstance(task.exception(), Missing)
        elif wanted is not None and wanted != current:
            error = task.exception()
            assert isinstance(error, Mismatch)
            assert (error.current.revision if error.current else 0) == current
        else:
            assert not task.done() or task.exception() is None
            self.writes.append(task)
            self.note(kind, key, head, revision, value)

    def note(self, kind: str, key: Key, head: tuple[int, int] | None, revision: int, value: bytes) -> None:
        if kind == "put":
            self.model.entries.append((revision, *key, value, None))
            self.model.heads[key] = (head[0] if head else revision, revision)
        else:
            self.model.entries.append((revision, *key, None, value))
            del self.model.heads[key]

    async def settle(self) -> None:
        await asyncio.gather(*self.writes)
        self.writes.clear()
        for live in self.live:
            await self.check_live(live)
        for key in ((bucket, name) for bucket in BUCKETS for name in NAMES):
            record = self.store.get(*key)
            assert record is self.store.head(*key)
            assert self.model.heads.get(key) == (record and (record.created, record.revision))

    async def check_live(self, live: Live) -> None:
        expected = self.model.since(live.watch.bucket, live.watch.prefix, live.after)
        while len(live.seen) < len(expected):
            live.seen += [entry_of(change) for change in await anext(live.watch)]
        assert live.seen == expected
        assert live.watch.revision == max(self.store.revision, live.after)

    async def restart(self) -> None:
        before = self.store.revision
        await self.settle()
        await self.store.close()
        self.live.clear()
        self.store = await Store.open(self.path, history=KEPT)
        assert self.store.revision >= before
        await self.check_past()

    async def check_past(self) -> None:
        store = self.store
        newest = self.model.entries[-1][0] if self.model.entries else 0
        assert store.revision == newest
        assert store.stats().history_changes <= KEPT.revisions
        assert store.stats().history_bytes <= KEPT.bytes
        for revision in range(store.compacted, newest + 1):
            for bucket in BUCKETS:
                self.check_snapshot(bucket, revision)
                for prefix in PREFIXES:
                    watch = store.watch(bucket, after=revision, prefix=prefix)
                    await self.check_live(Live(watch, revision))
                    watch.close()
        if store.compacted:
            self.check_compacted(store.compacted - 1)

    def check_snapshot(self, bucket: str, revision: int) -> None:
        state = sorted((name, *found) for name, found in self.model.at(bucket, revision).items())
        for prefix in PREFIXES:
            for after in ("", "a", "ns/a", "zzz"):
                for limit in (0, 1, 2):
                    wanted = [one for one in state if one[0].startswith(prefix) and one[0] > after]
                    records = self.store.range(bucket, prefix=prefix, after=after, limit=limit, revision=revision)
                    found = [(record.name, record.revision, record.value) for record in records]
                    assert found == (wanted[:limit] if limit else wanted)

    def check_compacted(self, revision: int) -> None:
        for call in (
            lambda: self.store.watch("pods", after=revision),
            lambda: self.store.range("pods", revision=revision),
        ):
            with pytest.raises(Compacted) as caught:
                call()
            assert (caught.value.revision, caught.value.oldest) == (revision, self.store.compacted)


def entry_of(change: Change) -> Entry:
    if change.record is None:
        assert change.previous is not None
        return (change.revision, change.bucket, change.name, None, change.value)
    assert change.record.revision == change.revision
    assert change.value is None
    return (change.revision, change.bucket, change.name, change.record.value, None)


async def run(plan: list[Step], path: Path | None) -> None:
    running = Run(await Store.open(path, history=KEPT, synchronous="NORMAL"), path)
    for step in plan:
        await running.step(step)
    await running.settle()
    await running.check_past()
    if path is not None:
        await running.restart()
    await running.store.close()


@settings(max_examples=60, deadline=None)
@given(steps)
def test_a_store_on_disk_behaves_like_a_list_of_changes(plan: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(run(plan, Path(directory) / "homeport.db"))


@settings(max_examples=60, deadline=None)
@given(steps)
def test_a_store_in_memory_behaves_like_a_list_of_changes(plan: list[Step]) -> None:
    asyncio.run(run(plan, None))
