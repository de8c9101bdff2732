"""Folders that the containers of a Pod share, under paths that are short enough for a socket.

A socket's path has 107 bytes at most. The folder of a Pod is deeper than that, so programs get a link to it: below the
data directory, or below the system's temporary folder if the data directory itself has a long path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from homeport.runtime.workload.runner import RunError

_LONGEST = 107
_FILE_BYTES = 40  # the name of a socket, with its slash
_DIGEST = 12


class SharedFolders:
    """`folder` is where Pods keep their files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._outside = len(os.fsencode(folder / "run")) + 1 + _DIGEST + _FILE_BYTES > _LONGEST
        self._links = _temporary(folder) if self._outside else folder / "run"

    def link(self, place: Path) -> Path:
        """A short path to a folder that exists. Raises RunError."""
        _hold_private(self._links)
        link = self._link(place)
        # Relative where that is possible: the data directory may move.
        target = str(place.absolute()) if self._outside else os.path.relpath(place, link.parent)
        if link.is_symlink() and os.readlink(link) == target:
            return link
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        return link

    def drop(self, place: Path) -> None:
        self._link(place).unlink(missing_ok=True)
        if self._outside:
            with contextlib.suppress(OSError):  # others are in use
                self._links.rmdir()

    def _link(self, place: Path) -> Path:
        return self._links / _digest(place.relative_to(self._folder).as_posix())


def _temporary(folder: Path) -> Path:
    """Of this data directory and this user."""
    return Path(tempfile.gettempdir()) / f"homeport-{os.getuid()}-{_digest(str(folder.absolute()))}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:_DIGEST]


def _hold_private(folder: Path) -> None:
    """Anybody may write to the temporary folder: a folder of somebody else there would lead our sockets astray."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RunError(f"{folder} is needed for sockets and is not a private folder of this user: remove it")
