"""One process per database: an advisory lock on a file beside it, released by the system at any death."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from homeport.store.error import StoreBusy, unopened


class Lock:
    """Holds `<path>.lock`. The file stays behind on release: removing it would race with a new holder."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = self._holder()
            os.close(self._file)
            raise StoreBusy(path, pid) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    @classmethod
    def take(cls, path: Path) -> Self:
        """Lock a database that may not exist yet, in a directory that may not exist yet."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return cls(path)
        except OSError as error:
            raise unopened(path, error) from error

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _holder(self) -> int | None:
        text = os.pread(self._file, 32, 0).strip()
        return int(text) if text.isdigit() else None
