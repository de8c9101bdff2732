"""Disk space put aside, so that objects can be deleted on a full disk: that is how space is won back."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from homeport.store.record import Change

RESERVE_BYTES = 4 * 1024 * 1024
_ROOM = 4  # it is put aside where so many times as much is free
_GROWTH_BYTES = 1024  # what a mark of deletion, or a condition that tells about it, may add to an object


class Reserve:
    """A file beside the database. Taken when a commit finds no space, put back when there is plenty again."""

    def __init__(self, database: Path, *, wanted: bool = True) -> None:
        """`wanted` False: no space is reserved, as for a copy in which objects are never deleted."""
        self._wanted = wanted
        self.path = database.with_name(database.name + ".reserve")

    def put_aside(self) -> None:
        """Where there is room; a disk that is nearly full is left alone."""
        if not self._wanted or self.path.exists():
            return
        with contextlib.suppress(OSError):
            disk = os.statvfs(self.path.parent)
            if disk.f_bavail * disk.f_frsize < _ROOM * RESERVE_BYTES:
                return
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.posix_fallocate(file, 0, RESERVE_BYTES)
            except OSError:
                self.path.unlink()
                raise
            finally:
                os.close(file)

    def take(self) -> bool:
        """Gives the space back to the disk. False: there was none."""
        try:
            self.path.unlink()
        except OSError:
            return False
        return True


def wins_space(changes: Iterable[Change]) -> bool:
    """Whether nothing new is stored: objects are deleted, or stay about as large as they were."""
    return all(change.record is None or _grows_little(change) for change in changes)


def _grows_little(change: Change) -> bool:
    if change.previous is None or change.record is None:
        return False
    return change.record.size <= change.previous.size + _GROWTH_BYTES
