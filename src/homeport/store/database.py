"""The open database. Every method runs on the committer thread (or before it, or after it)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, Self, cast

import apsw

from homeport.store import layout
from homeport.store.cipher import Cipher
from homeport.store.error import StoreDamaged, StoreFull, unopened
from homeport.store.record import Change, Record
from homeport.store.reserve import Reserve, wins_space
from homeport.store.row import Codec, LogRow, ObjectRow, object_rows

# Each statement gives the interpreter lock away and must win it back from a busy event loop, so rows are
# written many to a statement. Sizes are powers of two to keep the number of prepared statements small.
_ROWS_PER_STATEMENT = 64
_BACKUP_PAGES = 2048
# Pages are given back in steps that take milliseconds. Some stay free for the next writes: a file that shrinks after
# each compaction grows again at once.
_SHRINK_PAGES = 64
_KEPT_FREE_PAGES = 128
_KEPT_FREE_SHARE = 4


def _statements(head: str, columns: int) -> dict[int, str]:
    row = f"({', '.join('?' * columns)})"
    return {1 << n: f"{head} VALUES {', '.join([row] * (1 << n))}" for n in range(7)}


_PUT_OBJECT = _statements("INSERT OR REPLACE INTO object", 7)
_PUT_LOG = _statements("INSERT INTO log", 10)
_DELETE_OBJECT = "DELETE FROM object WHERE created = ?"


@dataclass(slots=True)
class Loaded:
    """What a database held when it was opened. Changes are oldest first, each with its time."""

    objects: dict[str, dict[str, Record]]
    changes: list[tuple[Change, float]]
    compacted: int
    revision: int


class Database:
    def __init__(
        self,
        path: Path,
        cipher: Cipher | None,
        sealed: frozenset[str],
        synchronous: Literal["FULL", "NORMAL"],
        *,
        reserve: bool = True,
    ) -> None:
        self.path = path
        self._codec = Codec(path, cipher, sealed)
        if not path.exists():
            layout.create(path)
        self._connection = layout.connect(path, synchronous)
        self._reserve = Reserve(path, wanted=reserve)
        # About how much the write-ahead log holds. Estimated: asking SQLite takes a callback in each commit.
        self.wal_bytes = 0
        self._copies: set[Backup] = set()

    @classmethod
    def open(
        cls,
        path: Path,
        cipher: Cipher | None,
        sealed: frozenset[str],
        synchronous: Literal["FULL", "NORMAL"],
        loaded: Callable[[Loaded], None],
        *,
        reserve: bool = True,
    ) -> Self:
        """Open and load; nothing is left open if that fails."""
        try:
            database = cls(path, cipher, sealed, synchronous, reserve=reserve)
        except OSError as error:
            raise unopened(path, error) from error
        try:
            loaded(database.load())
        except BaseException:
            database.abandon()
            raise
        return database

    def load(self) -> Loaded:
        """Read and check everything, then mark the file as in use. On a full disk the mark may use the reserve."""
        try:
            return self._load()
        except StoreFull:
            if not self._reserve.take():
                raise
            return self._load()

    def _load(self) -> Loaded:
        with layout.failures(self.path):
            if not layout.setting(self._connection, "clean"):
                layout.check_pages(self._connection, self.path)
            self._check_key()
            objects = self._load_objects()
            changes = self._load_changes(objects)
            compacted = layout.setting(self._connection, "compacted")
            layout.allow_shrinking(self._connection)
            layout.set_setting(self._connection, "clean", 0)
            self.checkpoint(truncate=True)
        self._reserve.put_aside()
        newest = changes[-1][0].revision if changes else 0
        return Loaded(objects, changes, compacted, max(compacted, newest))

    def write(self, changes: list[Change], committed_at: float) -> None:
        """One durable transaction, or none of it. On a full disk what only deletes may use the reserve."""
        try:
            self._write(changes, committed_at)
        except StoreFull:
            if not wins_space(changes) or not self._reserve.take():
                raise
            self._write(changes, committed_at)

    def _write(self, changes: list[Change], committed_at: float) -> None:
        codec, connection, seconds = self._codec, self._connection, int(committed_at)
        with layout.failures(self.path):
            # Encoded before the transaction begins: a failing cipher leaves nothing to roll back.
            objects = object_rows(codec, changes)
            log = [codec.log_row(change, seconds) for change in changes]
            connection.execute("BEGIN IMMEDIATE")
            try:
                deleted = [(created,) for created, row in objects.items() if row is None]
                if deleted:
                    connection.executemany(_DELETE_OBJECT, deleted)
                self._insert(_PUT_OBJECT, [row for row in objects.values() if row is not None])
                self._insert(_PUT_LOG, log)
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
        written = 2 * layout.PAGE_BYTES  # each commit rewrites the last page of the log and of the objects
        written += sum(_page_bytes(row[-1]) for row in objects.values() if row is not None)
        self.wal_bytes += written + sum(_page_bytes(row[-1]) + _page_bytes(row[-2]) for row in log)

    def _insert(self, statements: dict[int, str], rows: Sequence[tuple[apsw.SQLiteValue, ...]]) -> None:
        first, left = 0, len(rows)
        while left:
            size = _ROWS_PER_STATEMENT if left >= _ROWS_PER_STATEMENT else 1 << (left.bit_length() - 1)
            values = tuple(chain.from_iterable(rows[first : first + size]))
            self._connection.execute(statements[size], values)
            first += size
            left -= size

    def compact(self, revision: int) -> None:
        """Deletes the changes at or below a revision permanently."""
        with layout.failures(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.execute("DELETE FROM log WHERE revision <= ?", (revision,))
                layout.set_setting(self._connection, "compacted", revision)
                self._connection.execute("COMMIT")
                self.wal_bytes += layout.PAGE_BYTES * 4
            except BaseException:
                self._roll_back()
                raise

    def shrink(self) -> bool:
        """Give some of the free pages back to the file system; true while there are more to give."""
        if self._copies:
            return False  # the pages of a backup stay where they are until it is complete
        with layout.failures(self.path):
            free = layout.pragma(self._connection, "freelist_count")
            used = layout.pragma(self._connection, "page_count") - free
            spare = free - max(_KEPT_FREE_PAGES, used // _KEPT_FREE_SHARE)
            if spare <= 0:
                return False
            pages = min(spare, _SHRINK_PAGES)
            for _ in self._connection.execute(f"PRAGMA incremental_vacuum({pages})"):
                pass
            self.wal_bytes += pages * layout.PAGE_BYTES
        if spare > pages:
            return True
        self.checkpoint()  # which is what makes the file shorter
        return False

    def checkpoint(self, *, truncate: bool = False) -> None:
        """Carry the write-ahead log into the file; the next commit starts the log over."""
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        with layout.failures(self.path):
            self._connection.wal_checkpoint(mode=mode)
        self.wal_bytes = 0
        if not truncate:  # in the middle of the work: a disk that was full may have room again
            self._reserve.put_aside()

    def close(self) -> None:
        """Leave one clean file behind; on a full disk the file and its log, from which the next start goes on."""
        for copy in list(self._copies):
            self.abandon_copy(copy)
        self._reserve.take()  # the next start puts it aside again
        try:
            with layout.failures(self.path):
                layout.set_setting(self._connection, "clean", 1)
                self.checkpoint(truncate=True)
                layout.remove_wal_on_close(self._connection)
        except StoreFull:
            pass  # nothing is lost: the log stays beside the file
        finally:
            self._connection.close()

    def abandon(self) -> None:
        """Let go without the mark of a clean close."""
        self._connection.close()

    def fill(self, records: Iterable[Record], compacted: int) -> None:
        """Put objects into a new database at once, with no history."""
        with layout.failures(self.path), self._connection:
            self._connection.executemany(_PUT_OBJECT[1], (self._codec.object_row(one) for one in records))
            layout.set_setting(self._connection, "compacted", compacted)

    def copy_some(self, copy: Backup) -> bool:
        """Carry a backup on by one step; true when all pages are there."""
        self._copies.add(copy)
        return copy.step(self._connection)

    def finish_copy(self, copy: Backup, path: Path) -> None:
        copy.finish(path)
        self._copies.discard(copy)

    def abandon_copy(self, copy: Backup) -> None:
        copy.abandon()
        self._copies.discard(copy)

    def _check_key(self) -> None:
        for (probe,) in self._connection.execute("SELECT value FROM setting WHERE name = 'key'"):
            self._codec.check_probe(cast(bytes, probe))
            return
        new = self._codec.probe()
        if new is not None:
            layout.set_setting(self._connection, "key", new)

    def _load_objects(self) -> dict[str, dict[str, Record]]:
        objects: dict[str, dict[str, Record]] = {}
        record_of = self._codec.record
        for row in self._connection.execute("SELECT * FROM object"):
            record = record_of(cast(ObjectRow, row))
            bucket = objects.get(record.bucket)
            if bucket is None:
                bucket = objects[record.bucket] = {}
            elif record.name in bucket:
                raise StoreDamaged(self.path, f"{record.bucket} {record.name!r} is in it twice")
            bucket[record.name] = record
        return objects

    def _load_changes(self, objects: dict[str, dict[str, Record]]) -> list[tuple[Change, float]]:
        """Walk back from the current objects: each row says what its object was before."""
        changes: list[tuple[Change, float]] = []
        earlier: dict[tuple[str, str], Record | None] = {}
        for raw in self._connection.execute("SELECT * FROM log ORDER BY revision DESC"):
            row = cast(LogRow, raw)
            key = (row[1], row[2])
            after = earlier[key] if key in earlier else objects.get(key[0], {}).get(key[1])
            change = self._codec.change(row, after)
            earlier[key] = change.previous
            changes.append((change, float(row[5])))
        changes.reverse()
        return changes

    def _roll_back(self) -> None:
        # Some errors (a full disk among them) have already rolled back.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _page_bytes(value: bytes | None) -> int:
    """About what writing a row costs in pages."""
    return 0 if value is None else (len(value) // layout.PAGE_BYTES + 1) * layout.PAGE_BYTES


class Backup:
    """A copy made in steps between commits; SQLite carries pages changed meanwhile into it."""

    def __init__(self, partial: Path) -> None:
        self._partial = partial
        self._target: apsw.Connection | None = None
        self._copy: apsw.Backup | None = None

    def step(self, source: apsw.Connection) -> bool:
        """Copy some pages; true when all are there."""
        if self._copy is None:
            layout.make_private(self._partial)
            self._target = apsw.Connection(str(self._partial))
            self._copy = self._target.backup("main", source, "main")
        with layout.failures(self._partial):
            return self._copy.step(_BACKUP_PAGES)

    def finish(self, path: Path) -> None:
        """Make it one self-contained file under its final name."""
        if self._copy is None or self._target is None:
            raise ValueError("nothing was copied yet")
        with layout.failures(self._partial):
            self._copy.finish()
            self._target.execute("PRAGMA journal_mode = DELETE")
            layout.set_setting(self._target, "clean", 1)
            self._target.close()
        layout.publish(self._partial, path)

    def abandon(self) -> None:
        """Leave nothing behind, however far it got."""
        if self._copy is not None:
            self._copy.close(True)
        if self._target is not None:
            self._target.close(True)
        self._partial.unlink(missing_ok=True)
