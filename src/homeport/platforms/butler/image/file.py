"""Files that may be uploaded to providers: those in one folder of this machine."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from homeport.capi.platform import Content
from homeport.infra.error import Misconfigured, Missing

_FIELD = "spec.source.file"
_CHUNK = 1 << 22


class Files:
    """Digests are kept for as long as a file does not change: large files take a while."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._digests: dict[tuple[Path, int, int], str] = {}

    async def read(self, name: str) -> tuple[Content, str]:
        """The file and its SHA-256. Raises Misconfigured or Missing."""
        return await asyncio.to_thread(self._read, name)

    def _read(self, name: str) -> tuple[Content, str]:
        path = self._path(name)
        try:
            found = path.stat()
            if not path.is_file():
                raise Misconfigured(f"{_FIELD}: {path} is not a file")
            key = (path, found.st_size, found.st_mtime_ns)
            if key not in self._digests:
                self._digests[key] = _digest(path)
        except FileNotFoundError:
            raise Missing(f"{_FIELD}: {path} does not exist: copy the image there") from None
        except OSError as error:
            raise Misconfigured(f"{_FIELD}: {path} can't be read: {error.strerror or error}") from None
        if not found.st_size:
            raise Misconfigured(f"{_FIELD}: {path} is empty: copy the image again")
        return Content(path, found.st_size), self._digests[key]

    def _path(self, name: str) -> Path:
        """Nobody reads other files of this machine through an ImageSync, not even by a symbolic link."""
        if self._folder is None:
            raise Misconfigured(
                f"{_FIELD}: Homeport runs on a cluster here and has no folder for images: set spec.source.url instead"
            )
        folder = self._folder.resolve()
        path = (folder / name).resolve()
        if not path.is_relative_to(folder):
            raise Misconfigured(f'{_FIELD}: "{name}" is outside the folder {self._folder}: copy the image there')
        return path


def _digest(path: Path) -> str:
    made = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            made.update(chunk)
    return made.hexdigest()
