"""The files of a simulated machine."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Entry:
    content: bytes
    mode: int = 0o644
    owner: str = "root:root"


class Disk:
    """Files by absolute path; folders are there when something is in them, or when they were made."""

    __slots__ = ("_files", "_folders", "_watchers")

    def __init__(self) -> None:
        self._files: dict[str, Entry] = {}
        self._folders: set[str] = set()
        self._watchers: dict[str, Callable[[], None]] = {}

    def watch(self, folder: str, watcher: Callable[[], None]) -> None:
        """Calls `watcher` after a change below a folder; another watcher of the folder replaces it."""
        self._watchers[folder.rstrip("/") + "/"] = watcher

    def _changed(self, path: str) -> None:
        for folder, watcher in self._watchers.items():
            if path.startswith(folder) or folder.startswith(f"{path}/"):
                watcher()

    def write(
        self, path: str, content: bytes, *, mode: int = 0o644, owner: str = "root:root", append: bool = False
    ) -> None:
        path = _normal(path)
        known = self._files.get(path)
        if append and known is not None:
            content = known.content + content
        self._files[path] = Entry(content, mode, owner)
        self._changed(path)

    def rewrite(self, path: str, content: bytes, *, append: bool = False) -> None:
        """As a program does that opens a file: mode and owner of a file that exists stay."""
        known = self._files.get(_normal(path))
        if known is None:
            self.write(path, content)
        else:
            known.content = known.content + content if append else content
            self._changed(_normal(path))

    def read(self, path: str) -> bytes | None:
        entry = self._files.get(_normal(path))
        return None if entry is None else entry.content

    def text(self, path: str) -> str | None:
        content = self.read(path)
        return None if content is None else content.decode("utf-8", "replace")

    def entry(self, path: str) -> Entry | None:
        return self._files.get(_normal(path))

    def files(self) -> list[tuple[str, Entry]]:
        """All of them, by path."""
        return sorted(self._files.items(), key=lambda item: item[0])

    def remove(self, path: str, *, recursive: bool = False) -> bool:
        path = _normal(path)
        gone = [name for name in self._files if name == path or (recursive and name.startswith(path.rstrip("/") + "/"))]
        for name in gone:
            del self._files[name]
        self._folders.discard(path)
        if gone:
            self._changed(path)
        return bool(gone)

    def make_folder(self, path: str) -> None:
        self._folders.add(_normal(path))

    def is_folder(self, path: str) -> bool:
        path = _normal(path)
        return path in self._folders or any(name.startswith(path.rstrip("/") + "/") for name in self._files)

    def under(self, folder: str) -> list[str]:
        """Paths of the files directly in a folder, sorted."""
        prefix = _normal(folder).rstrip("/") + "/"
        return sorted(name for name in self._files if name.startswith(prefix) and "/" not in name[len(prefix) :])

    def wipe(self, folder: str) -> None:
        self.remove(folder, recursive=True)


def _normal(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))
