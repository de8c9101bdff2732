"""The database file: how one is made, opened and checked before anything in it is believed.

    object   one row for each current object, keyed by the revision that created it
    log      one row for each kept change: what the object was before, and a deleted object's last bytes
    setting  compacted, clean (whether the last holder closed it), key (a probe sealed with the key)

Nothing needs a second index: lookups by name happen in memory, where everything is anyway. A log row
holds the state *before* the change, because the state after it is either current or the state before
the next change; so a creation logs no bytes at all and each compaction is one range delete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from homeport.store.error import StoreBusy, StoreDamaged, StoreFull, StoreTooNew, StoreUnavailable, restore_command

APPLICATION_ID = 0x486F6D65
VERSION = 1
# Three typical objects to a page instead of one: a third less on disk.
PAGE_BYTES = 8192
# Free pages are given back to the file system when the store says so, a few at a time: see `Database.shrink`.
INCREMENTAL = 2
_MAGIC = b"SQLite format 3\0"

_SCHEMA = """
CREATE TABLE object (
    created  INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    bucket   TEXT NOT NULL,
    name     TEXT NOT NULL,
    sealed   INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    value    BLOB NOT NULL
);
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    bucket   TEXT NOT NULL,
    name     TEXT NOT NULL,
    created  INTEGER NOT NULL,
    previous INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    sealed   INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    value    BLOB,
    final    BLOB
);
CREATE TABLE setting (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
INSERT INTO setting VALUES ('compacted', 0), ('clean', 1);
"""


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def file_bytes(path: Path) -> int:
    """What the database takes on disk, its write-ahead log included."""
    return sum(file.stat().st_size for file in (path, wal_of(path)) if file.exists())


def restoring_of(path: Path) -> Path:
    """Where a restore prepares the file that will take the place of `path`."""
    return path.with_name(path.name + ".restoring")


def create(path: Path) -> None:
    """Make an empty database; it appears under its name complete or not at all."""
    if wal_of(path).exists() and wal_of(path).stat().st_size:
        raise StoreDamaged(path, "the database file is missing, but its write-ahead log exists")
    if restoring_of(path).exists():
        raise StoreDamaged(path, "a restore was interrupted", f"run it again: {restore_command(path)}")
    partial = path.with_name(path.name + ".partial")
    make_private(partial)
    with failures(path):
        connection = apsw.Connection(str(partial))
        try:
            connection.pragma("page_size", PAGE_BYTES)
            connection.pragma("auto_vacuum", INCREMENTAL)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", VERSION)
            connection.execute(_SCHEMA)
        finally:
            connection.close()
    publish(partial, path)


def make_private(path: Path) -> None:
    """An empty file that only its owner can read, before SQLite writes the first byte to it."""
    path.unlink(missing_ok=True)
    wal_of(path).unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def publish(partial: Path, path: Path) -> None:
    """Give a finished file its name, durably."""
    _fsync(partial)
    partial.replace(path)
    _fsync(path.parent)


def _fsync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def connect(
    path: Path, synchronous: str = "FULL", *, require_wal: bool = True, named: Path | None = None
) -> apsw.Connection:
    """Open an existing database for the only user it has, after checking that it is a Homeport database.

    `named` is the file to speak of in errors, where `path` is a copy of it.
    """
    named = named or path
    check_header(path, named)
    path.chmod(0o600)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with failures(named):
            # By default the last one to close folds the log into the file and removes it, which would look
            # like a lost log where the file is not marked as closed, and would alter a damaged file.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            # Exclusive: no other program can change rows behind the copy in memory, and no -shm file.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            wal_was_there = wal_of(path).exists()
            check_identity(connection, named)
            if require_wal and not wal_was_there:
                _check_closed(connection, named)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            # Checkpoints are run by the committer when it has nothing better to do.
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            # A log that a burst made large is cut when it starts over.
            connection.execute("PRAGMA journal_size_limit = 8388608")
    except BaseException:
        connection.close()
        raise
    return connection


def check_header(path: Path, named: Path | None = None) -> None:
    named = named or path
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        raise StoreDamaged(named, "the file is empty")
    if not header.startswith(_MAGIC):
        raise StoreDamaged(named, "the file is not a database")
    if len(header) < 100:
        raise StoreDamaged(named, "the file is cut short")


def check_identity(connection: apsw.Connection, path: Path) -> None:
    if pragma(connection, "application_id") != APPLICATION_ID:
        raise StoreDamaged(path, "the file is a database of another program", "name the right file")
    version = pragma(connection, "user_version")
    if version > VERSION:
        raise StoreTooNew(path, version, VERSION)


def _check_closed(connection: apsw.Connection, path: Path) -> None:
    # The mark "not closed" reaches the file itself at each start, and the log then exists until a clean
    # close. Without it the newest acknowledged writes are lost, however healthy the file looks.
    if not setting(connection, "clean"):
        raise StoreDamaged(
            path,
            f"it was not closed and its write-ahead log {wal_of(path).name} is missing, with the newest writes",
            f"put the log back next to it, or restore a backup with '{restore_command(path)}' (this file itself can be "
            "used as FILE, without those writes)",
        )


def check_pages(connection: apsw.Connection, path: Path, pragma_name: str = "quick_check") -> None:
    for (line,) in connection.execute(f"PRAGMA {pragma_name}(1)"):
        if line != "ok":
            raise StoreDamaged(path, f"the integrity check found: {' '.join(str(line).split())}")


def allow_shrinking(connection: apsw.Connection) -> None:
    """Rewrites a file of an earlier version once; before that, SQLite can't return free pages."""
    if pragma(connection, "auto_vacuum") == INCREMENTAL:
        return
    connection.pragma("auto_vacuum", INCREMENTAL)
    # It needs as much space again for a moment. Where that is missing the file works as it is.
    with suppress(apsw.FullError, apsw.IOError):
        connection.execute("VACUUM")


def pragma(connection: apsw.Connection, name: str) -> int:
    value = connection.pragma(name)
    if not isinstance(value, int):
        raise TypeError(f"PRAGMA {name} answered {value!r}")
    return value


def setting(connection: apsw.Connection, name: str) -> int:
    for (value,) in connection.execute("SELECT value FROM setting WHERE name = ?", (name,)):
        if isinstance(value, int):
            return value
    return 0


def set_setting(connection: apsw.Connection, name: str, value: int | bytes) -> None:
    connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))


def remove_wal_on_close(connection: apsw.Connection) -> None:
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


@contextmanager
def failures(path: Path) -> Iterator[None]:
    """Say what SQLite met in words that lead to an answer."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreDamaged(path, f"the file is damaged ({error})") from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusy(path, None) from error
    except apsw.FullError as error:
        raise StoreFull(path) from error
    except apsw.SQLError as error:
        raise StoreDamaged(path, f"a table is not as expected ({error})") from error
    except apsw.Error as error:
        raise StoreUnavailable(f"cannot write {path}: {error}: check the disk and its permissions") from error
