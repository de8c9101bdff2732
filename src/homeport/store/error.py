"""Everything the store can refuse or fail with.

StoreError
  Mismatch          the object is not at the revision the writer expected
  Missing           there is nothing to delete
  Compacted         the asked revision is older than the kept history
  FutureRevision    the asked revision has not been given out yet
  Lagged            a watcher read too slowly and was dropped
  SealBroken        a cipher could not open what it was given
  StoreUnavailable  writes cannot be made durable now (I/O error, closed); StoreFull when the disk has no space left
  StoreBusy         another process has the database open
  StoreTooNew       the file was written by a newer Homeport
  StoreDamaged      the file cannot be trusted; WrongKey when only the key is at fault
"""

from __future__ import annotations

import errno
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeport.store.record import Record


class StoreError(Exception):
    """The root of everything this package raises on purpose."""


class Mismatch(StoreError):
    """The object is not at the revision the writer expected; `current` is what it is now."""

    def __init__(self, bucket: str, name: str, expect: int, current: Record | None) -> None:
        found = "absent" if current is None else f"at revision {current.revision}"
        wanted = "absent" if expect == 0 else f"at revision {expect}"
        super().__init__(f"{bucket} {name!r} was expected {wanted} but is {found}")
        self.bucket, self.name, self.expect, self.current = bucket, name, expect, current


class Missing(StoreError):
    """The object to delete does not exist."""

    def __init__(self, bucket: str, name: str) -> None:
        super().__init__(f"{bucket} {name!r} does not exist")
        self.bucket, self.name = bucket, name


class Compacted(StoreError):
    """The asked revision is older than `oldest`, the first one that can still be read or watched from."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} has expired: history starts at {oldest}")
        self.revision, self.oldest = revision, oldest


class FutureRevision(StoreError):
    """The asked revision is newer than `newest`, the last committed one."""

    def __init__(self, revision: int, newest: int) -> None:
        super().__init__(f"revision {revision} does not exist yet: the newest is {newest}")
        self.revision, self.newest = revision, newest


class Lagged(StoreError):
    """A watcher left more than `limit` changes unread; it has seen everything up to `revision`."""

    def __init__(self, bucket: str, revision: int, limit: int) -> None:
        super().__init__(f"the watch on {bucket} left over {limit} changes unread after revision {revision}")
        self.bucket, self.revision, self.limit = bucket, revision, limit


class SealBroken(StoreError):
    """The bytes were not sealed with this key for this place."""


class StoreUnavailable(StoreError):
    """Nothing can be made durable at the moment. Reads go on; a later write may succeed."""


class StoreFull(StoreUnavailable):
    """The disk has no space left. Deletes may still go through."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"disk full: {path}: free some space there, or delete objects, then try again")
        self.path = path


def unopened(path: Path, error: OSError) -> StoreUnavailable:
    """The system refuses to open or to create the file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(path)
    cure = "choose a directory that you can write to, for example with --data DIR"
    return StoreUnavailable(f"cannot open {path}: {error.strerror or error}: {cure}")


class StoreBusy(StoreError):
    """Another process holds the database; `pid` is that process where it is known."""

    def __init__(self, path: Path, pid: int | None) -> None:
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(f"{path} is in use by {holder}: stop it first with 'homeport down --data {path.parent}'")
        self.path, self.pid = path, pid


def restore_command(path: Path) -> str:
    """For the database at `path`: its folder is the data directory."""
    return f"homeport restore FILE --data {shlex.quote(str(path.parent))}"


class StoreTooNew(StoreError):
    """The file's layout is newer than this program understands."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has layout version {found}, this Homeport knows up to {known}: "
            f"run the newer Homeport that wrote it, or restore an older backup with '{restore_command(path)}'"
        )
        self.path, self.found, self.known = path, found, known


class StoreDamaged(StoreError):
    """The file cannot be trusted. It is left untouched."""

    def __init__(self, path: Path, problem: str, remedy: str = "") -> None:
        remedy = remedy or f"restore a backup with '{restore_command(path)}' (the damaged file is kept aside)"
        super().__init__(f"{path}: {problem}; {remedy}")
        self.path, self.problem, self.remedy = path, problem, remedy


class WrongKey(StoreDamaged):
    """The database is sealed with another key than the one given."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            path,
            problem,
            "put the key back that belongs to this database, "
            f"or restore a backup together with the key of its time with '{restore_command(path)}'",
        )
