"""The store: all objects in memory, every acknowledged change on disk.

Reads see the committed state. Writers compare against the head, which includes what was accepted but is
not durable yet, so that a chain of writes to one object need not wait for the disk between its links.
A write is acknowledged, and shown to readers and watchers, only after its commit; all of that happens in
revision order on the event loop's thread, which is the only one that may use a Store.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Self

from homeport.store import backup, layout
from homeport.store.cipher import Cipher
from homeport.store.committer import Committer
from homeport.store.cooling import Cooling
from homeport.store.database import Database, Loaded
from homeport.store.error import (
    Compacted,
    FutureRevision,
    Mismatch,
    Missing,
    StoreUnavailable,
)
from homeport.store.journal import Journal
from homeport.store.lock import Lock
from homeport.store.pipeline import Pipeline
from homeport.store.record import Change, History, Record
from homeport.store.stats import Stats
from homeport.store.table import Table
from homeport.store.watch import Hub, Subscriber, Watch

Encode = Callable[[int], bytes]

_TRIM_SECONDS = 60.0
# Compacted changes are deleted from the file some hundred at a time, not one by one.
_TRIM_CHANGES = 512


class Store:
    """Use `Store.open`."""

    def __init__(
        self,
        loaded: Loaded,
        history: History,
        lag_limit: int,
        clock: Callable[[], float],
        cipher: Cipher | None,
        sealed: frozenset[str],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._cipher, self._sealed = cipher, sealed
        self._tables = {bucket: Table(records) for bucket, records in loaded.objects.items()}
        self._journal = Journal(history, loaded.compacted)
        for change, committed_at in loaded.changes:
            self._journal.append(change, committed_at)
        self._hub = Hub(loaded.revision, lag_limit)
        self.cooled: Callable[[Record], None] | None = None  # called for each record that did not change for a while
        self._cooling = Cooling(self._tables, self._journal, lambda: self.revision, self._cooled)
        self._cooling.begin()
        self._pipeline = Pipeline(loaded.revision, clock, self._published)
        self._committer: Committer | None = None
        self._lock: Lock | None = None
        self._path: Path | None = None
        self._closed = False
        self.guard: Callable[[], None] | None = None  # called before each write; raises StoreUnavailable to refuse it
        self._backing_up = asyncio.Lock()
        self._on_disk_compacted = loaded.compacted
        self._trimming: asyncio.Future[None] | None = None
        self._shrinking: asyncio.Future[bool] | None = None
        self._timer = self._loop.call_later(_TRIM_SECONDS, self._tick)

    @classmethod
    async def open(
        cls,
        path: Path | None,
        *,
        cipher: Cipher | None = None,
        sealed: frozenset[str] = frozenset(),
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        history: History = History(),  # noqa: B008 - frozen
        lag_limit: int = 20_000,
        clock: Callable[[], float] = time.time,
        copy_of: Path | None = None,
        past: Sequence[Change] = (),
        reserve: bool = True,
    ) -> Self:
        """Open or make the database at `path`; None keeps everything in memory, with the same semantics, and begins
        with what is in the file `copy_of`, which a `backup` made, or as if `past` had just been committed.

        `sealed` names the buckets whose values are encrypted with `cipher`. `lag_limit` is how many live
        changes a watcher may leave unread. `reserve` False: no disk space is put aside for deletions on a full disk.
        """
        if path is None:
            loaded_copy = await _in_memory(copy_of, past, clock(), cipher, sealed)
            return cls(loaded_copy, history, lag_limit, clock, cipher, sealed)
        lock = Lock.take(path)
        loaded: list[Loaded] = []
        committer = Committer(
            lambda: Database.open(path, cipher, sealed, synchronous, loaded.append, reserve=reserve),
            asyncio.get_running_loop(),
            lambda batches, seconds: store._pipeline.committed(batches, seconds),
            lambda error: store._pipeline.failed(error),
        )
        try:
            await committer.start()
            store = cls(loaded[0], history, lag_limit, clock, cipher, sealed)
        except BaseException:
            # If it was cancelled the thread may still succeed in opening: it then lets go at once.
            committer.run(Database.abandon, last=True)
            lock.release()
            raise
        store._committer, store._lock, store._path = committer, lock, path
        store._pipeline.committer = committer
        store._trim()
        return store

    # Reading: plain functions on memory.

    @property
    def revision(self) -> int:
        """The newest committed revision: what reads see."""
        return self._hub.revision

    @property
    def compacted(self) -> int:
        """Changes at or below this revision are gone."""
        return self._journal.compacted

    def get(self, bucket: str, name: str) -> Record | None:
        """The committed object."""
        table = self._tables.get(bucket)
        return None if table is None else table.get(name)

    def head(self, bucket: str, name: str) -> Record | None:
        """The object with accepted writes included that are not durable yet."""
        change = self._pipeline.heads.get((bucket, name))
        if change is not None:
            return change.record
        return self.get(bucket, name)

    def range(
        self, bucket: str, *, prefix: str = "", after: str = "", limit: int = 0, revision: int | None = None
    ) -> list[Record]:
        """Objects in name order: those that start with `prefix`, come after `after`, `limit` of them.

        With `revision` exactly as they were then; Compacted or FutureRevision if that cannot be had.
        """
        table = self._tables.get(bucket)
        if revision is None or revision == self.revision:
            return [] if table is None else table.range(prefix, after, limit)
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)
        undo = self._journal.undo(bucket, revision)
        return (table or Table()).range_before(undo, prefix, after, limit)

    def count(self, bucket: str, prefix: str = "") -> int:
        table = self._tables.get(bucket)
        return 0 if table is None else table.count(prefix)

    def state(self, bucket: str) -> tuple[int, int]:
        """Another one whenever the bucket changes: how many objects it has, and the revision of the newest write."""
        table = self._tables.get(bucket)
        return (0, 0) if table is None else (len(table), table.revision)

    def buckets(self) -> list[str]:
        """The buckets that hold something, sorted."""
        return sorted(bucket for bucket, table in self._tables.items() if len(table))

    def past(self) -> list[Change]:
        """The committed changes that are kept, oldest first."""
        return self._journal.all()

    def stats(self) -> Stats:
        return Stats(
            revision=self.revision,
            compacted=self.compacted,
            objects={bucket: len(table) for bucket, table in self._tables.items()},
            object_bytes={bucket: table.bytes for bucket, table in self._tables.items()},
            history_changes=len(self._journal),
            history_bytes=self._journal.bytes,
            watches=self._hub.watching,
            pending_writes=self._pipeline.pending,
            database_bytes=layout.file_bytes(self._path) if self._path else 0,
            commits=self._pipeline.commit_seconds.count,
            failed_commits=self._pipeline.failed_commits,
            batch_sizes=self._pipeline.batch_sizes.copy(),
            commit_seconds=self._pipeline.commit_seconds.copy(),
        )

    # Being told.

    def watch(self, bucket: str, *, after: int, prefix: str = "") -> Watch:
        """All committed changes of a bucket with a revision greater than `after`: the kept ones, then live.

        Raises Compacted if changes after `after` are gone. The caller closes the watch.
        """
        self._check_open()
        if after < self.compacted:
            raise Compacted(after, self.compacted)
        watch = Watch(self._hub, bucket, prefix, after, self._journal.since(bucket, after, prefix))
        self._hub.add(watch)
        return watch

    def subscribe(self, bucket: str | None, fn: Subscriber) -> Callable[[], None]:
        """Call `fn` with each commit's changes (of one bucket, or all) before its writers are answered.

        Returns the function that ends it. What `fn` raises goes to the event loop's exception handler.
        """
        return self._hub.subscribe(bucket, fn)

    # Writing.

    async def put(
        self, bucket: str, name: str, encode: Encode, *, expect: int | None, memo: object | None = None
    ) -> Record:
        """Create or replace an object; returns when it is durable and all watchers were notified.

        `expect`: None for any state, 0 for absent, n for head revision n, else Mismatch. Comparing and
        `encode(revision)` happen before anything is awaited. Cancelling does not undo the write. `memo` is the
        record's when watchers are told of it.
        """
        head = self._expected(bucket, name, expect)
        revision = self._pipeline.allocated + 1
        record = Record(bucket, name, _encoded(encode, revision), head.created if head else revision, revision)
        record.memo = memo
        await self._pipeline.accept(Change(revision, bucket, name, record, head))
        return record

    async def delete(self, bucket: str, name: str, encode: Encode, *, expect: int | None) -> Change:
        """Delete an object; `encode(revision)` gives its final bytes for the watchers. Missing if absent."""
        if self.head(bucket, name) is None:
            self._check_open()
            raise Missing(bucket, name)
        head = self._expected(bucket, name, expect)
        revision = self._pipeline.allocated + 1
        change = Change(revision, bucket, name, None, head, _encoded(encode, revision))
        await self._pipeline.accept(change)
        return change

    async def flush(self) -> None:
        """Wait until every write accepted so far is decided."""
        self._pipeline.submit()
        if self._committer is not None and not self._closed:
            await self._committer.run(lambda database: None)

    # Keeping.

    async def compact(self, revision: int) -> None:
        """Forget the changes at or below `revision` now."""
        self._check_open()
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        self._journal.compact(revision)
        if self._committer is not None:
            compacted = self.compacted
            await self._committer.run(lambda database: database.compact(compacted))
            self._on_disk_compacted = max(self._on_disk_compacted, compacted)
            while await self._committer.run(Database.shrink):
                pass

    async def backup(self, path: Path) -> None:
        """Write a consistent copy of everything committed, while writes go on. An existing file is replaced
        when the copy is complete. Sealed values stay sealed: keep the key with it."""
        self._check_open()
        _check_apart(path, self._path)
        async with self._backing_up:
            await self.flush()
            if self._committer is not None:
                await backup.copy_online(self._committer, path)
                return
            records = [record for bucket in self.buckets() for record in self.range(bucket)]
            work = backup.write_records
            await asyncio.to_thread(work, path, records, self.revision, self._cipher, self._sealed)

    async def close(self) -> None:
        """Make everything accepted durable, end the watches, leave a clean file. Closing twice is fine."""
        if self._closed:
            return
        self._pipeline.submit()
        self._closed = True
        self._timer.cancel()
        self._cooling.end()
        try:
            if self._committer is not None:
                await self._committer.run(Database.close, last=True)
        finally:
            if self._committer is not None:
                await asyncio.to_thread(self._committer.join)
            if self._lock is not None:
                self._lock.release()
            self._hub.close()

    def _expected(self, bucket: str, name: str, expect: int | None) -> Record | None:
        self._check_open()
        if self.guard is not None:
            self.guard()
        head = self.head(bucket, name)
        if expect is not None and expect != (0 if head is None else head.revision):
            raise Mismatch(bucket, name, expect, head)
        if not name or not bucket:
            raise ValueError(f"an object needs a bucket and a name, not {bucket!r} and {name!r}")
        if not name.isascii():
            name.encode()  # refused here alone, for the transaction would fail for all in it
        return head

    def _published(self, changes: list[Change], committed_at: float) -> None:
        for change in changes:
            self._apply(change, committed_at)
        self._cooling.begin()
        for error in self._hub.publish(changes):
            self._loop.call_exception_handler({"message": "a store subscriber failed", "exception": error})
        self._trim()

    def _apply(self, change: Change, committed_at: float) -> None:
        table = self._tables.get(change.bucket)
        if table is None:
            table = self._tables[change.bucket] = Table()
        if change.record is None:
            table.remove(change.name)
        else:
            table.put(change.record)
        self._journal.append(change, committed_at)

    def _cooled(self, record: Record) -> None:
        if self.cooled is not None:
            self.cooled(record)

    # Compaction in the background.

    def _tick(self) -> None:
        self._timer = self._loop.call_later(_TRIM_SECONDS, self._tick)
        self._trim(at_least=1)

    def _trim(self, at_least: int = _TRIM_CHANGES) -> None:
        journal = self._journal
        journal.trim(self._clock())
        compacted = journal.compacted
        if self._committer is None or self._trimming is not None or self._closed:
            return
        if compacted - self._on_disk_compacted >= at_least:
            self._trimming = self._committer.run(lambda database: database.compact(compacted))
            self._trimming.add_done_callback(lambda future: self._trimmed(future, compacted))

    def _trimmed(self, future: asyncio.Future[None], compacted: int) -> None:
        self._trimming = None
        # A failure (the disk is full, say) is tried again with a later commit.
        if not future.cancelled() and future.exception() is None:
            self._on_disk_compacted = max(self._on_disk_compacted, compacted)
            self._shrink()

    def _shrink(self) -> None:
        """Step by step, with commits in between."""
        if self._committer is None or self._shrinking is not None or self._closed:
            return
        self._shrinking = self._committer.run(Database.shrink)
        self._shrinking.add_done_callback(self._shrunk)

    def _shrunk(self, future: asyncio.Future[bool]) -> None:
        self._shrinking = None
        # After a failure the next compaction tries again.
        if not future.cancelled() and future.exception() is None and future.result():
            self._shrink()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")


async def _in_memory(
    copy_of: Path | None, past: Sequence[Change], now: float, cipher: Cipher | None, sealed: frozenset[str]
) -> Loaded:
    if sealed and cipher is None:
        raise ValueError(f"buckets to seal ({', '.join(sorted(sealed))}) need a cipher")
    return _replayed(past, now) if copy_of is None else await asyncio.to_thread(_read_copy, copy_of, cipher, sealed)


def _replayed(past: Sequence[Change], now: float) -> Loaded:
    objects: dict[str, dict[str, Record]] = {}
    for change in past:
        bucket = objects.setdefault(change.bucket, {})
        if change.record is None:
            del bucket[change.name]
        else:
            bucket[change.name] = change.record
    return Loaded(objects, [(change, now) for change in past], 0, past[-1].revision if past else 0)


def _read_copy(path: Path, cipher: Cipher | None, sealed: frozenset[str]) -> Loaded:
    found: list[Loaded] = []
    Database.open(path, cipher, sealed, "NORMAL", found.append, reserve=False).close()
    return found[0]


def _check_apart(target: Path, database: Path | None) -> None:
    if database is not None and target.resolve() == database.resolve():
        raise ValueError(f"{target} is the database itself: name another file for the backup")


def _encoded(encode: Encode, revision: int) -> bytes:
    value = encode(revision)
    if type(value) is not bytes:
        raise TypeError(f"encode must return bytes, not {type(value).__name__}")
    # A copy of exactly its size: encoders hand out the buffer that they wrote to, of which a third to a half is unused.
    return bytes(memoryview(value))
