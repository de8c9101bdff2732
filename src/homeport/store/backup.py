"""Backup and restore.

A backup is one self-contained database file. After a restore clients may still hold revisions that the
lost timeline gave out after the backup was made. None of those may ever name something else, so the
restored database continues at the time of the restore in microseconds: no store commits a million
changes a second for as long as it exists, so that number lies above everything given out before, also
when the same backup is restored twice. (It stays below 2**53, what JavaScript counts to, until 2255.)
History is marked as compacted up to there: every old watch is told to list again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast
from urllib.parse import quote

import apsw

from homeport.store import layout
from homeport.store.cipher import Cipher
from homeport.store.committer import Committer
from homeport.store.database import Backup, Database
from homeport.store.error import StoreDamaged
from homeport.store.lock import Lock
from homeport.store.record import Record
from homeport.store.row import ObjectRow, object_checksum

# If the clock is wrong (1970, say) a restore still has to move forward.
_LEAST_ADVANCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did: how many objects there are now, at which revision, where the old file went."""

    objects: int
    revision: int
    replaced: Path | None


async def copy_online(committer: Committer, path: Path) -> None:
    """Copy the database in steps, with commits going on in between."""
    copy = Backup(_partial_of(path))
    try:
        while not await committer.run(lambda database: database.copy_some(copy)):
            pass
        await committer.run(lambda database: database.finish_copy(copy, path))
    except BaseException:
        # Not awaited: this may run while being cancelled. A closed store has abandoned it already.
        cleaning = committer.run(lambda database: database.abandon_copy(copy))
        cleaning.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        raise


def write_records(
    path: Path, records: Sequence[Record], revision: int, cipher: Cipher | None, sealed: frozenset[str]
) -> None:
    """A backup of a store that lives in memory only."""
    partial = _partial_of(path)
    _remove(partial)  # with the log beside it: whoever was killed while writing it leaves both
    database = Database(partial, cipher, sealed, "NORMAL", reserve=False)
    try:
        database.load()
        database.fill(records, revision)
    finally:
        database.close()
    layout.publish(partial, path)


def restore(backup: Path, path: Path, *, clock: Callable[[], float] = time.time) -> Restored:
    """Put a verified copy of `backup` in the place of the database at `path`, which must not be in use.

    The replaced file is kept as `<path>.replaced-<timestamp>`.
    """
    lock = Lock.take(path)
    try:
        new = layout.restoring_of(path)
        try:
            _copy(backup, new)
            objects, revision = _prepare(new, backup, clock())
        except BaseException:
            _remove(new)
            raise
        replaced = _set_aside(path, clock())
        layout.publish(new, path)
        return Restored(objects, revision, replaced)
    finally:
        lock.release()


def verify(backup: Path) -> None:
    """Read a backup in full. StoreDamaged if it can't be trusted. Neither the file nor its directory changes."""
    layout.check_header(backup)
    with layout.failures(backup):
        # Immutable: no locks, no log. A backup is one self-contained file.
        connection = apsw.Connection(
            f"file:{quote(str(backup.absolute()))}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        try:
            layout.check_identity(connection, backup)
            layout.check_pages(connection, backup, "integrity_check")
            _check_objects(connection, backup)
        finally:
            connection.close()


def _partial_of(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def _copy(backup: Path, new: Path) -> None:
    if not backup.is_file():
        raise StoreDamaged(backup, "the backup file does not exist", "name an existing one")
    layout.make_private(new)
    shutil.copyfile(backup, new)
    # A file copied from a running or killed server has its newest writes in the log beside it.
    if layout.wal_of(backup).exists():
        shutil.copyfile(layout.wal_of(backup), layout.wal_of(new))


def _prepare(new: Path, backup: Path, now: float) -> tuple[int, int]:
    """Checks the whole copy, and continues its revisions above all that were ever used."""
    connection = layout.connect(new, require_wal=False, named=backup)
    try:
        with layout.failures(backup):
            layout.check_pages(connection, backup, "integrity_check")
            objects = _check_objects(connection, backup)
            newest = cast(int, connection.execute("SELECT coalesce(max(revision), 0) FROM log").get)
            known = max(newest, layout.setting(connection, "compacted"))
            revision = max(known + _LEAST_ADVANCE, int(now * 1_000_000))
            connection.execute("DELETE FROM log")
            layout.set_setting(connection, "compacted", revision)
            layout.set_setting(connection, "clean", 1)
            connection.execute("PRAGMA journal_mode = DELETE")
    finally:
        connection.close()
    return objects, revision


def _check_objects(connection: apsw.Connection, backup: Path) -> int:
    objects = 0
    for raw in connection.execute("SELECT * FROM object"):
        _, revision, bucket, name, _, checksum, value = cast(ObjectRow, raw)
        if object_checksum(revision, bucket, name, value) != checksum:
            raise StoreDamaged(backup, f"the bytes of {bucket} {name!r} are damaged", "use another backup")
        objects += 1
    return objects


def _set_aside(path: Path, now: float) -> Path | None:
    """Move the old database away, its log first: a log left behind would be replayed into the new file."""
    if not path.exists() and not layout.wal_of(path).exists():
        return None
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    aside, tries = path.with_name(f"{path.name}.replaced-{stamp}"), 1
    while aside.exists() or layout.wal_of(aside).exists():
        tries += 1
        aside = path.with_name(f"{path.name}.replaced-{stamp}-{tries}")
    for old, kept in ((layout.wal_of(path), layout.wal_of(aside)), (path, aside)):
        if old.exists():
            old.replace(kept)
    return aside


def _remove(new: Path) -> None:
    new.unlink(missing_ok=True)
    layout.wal_of(new).unlink(missing_ok=True)
