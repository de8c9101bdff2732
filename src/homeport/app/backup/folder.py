"""Backups that the running plane writes itself, for ManagementBackups: archives in a folder of its data."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from homeport import __version__
from homeport.app.backup.archive import write_archive
from homeport.app.backup.note import note_backup
from homeport.app.settings import Settings
from homeport.capi.environment import BackupError
from homeport.store import StoreError

_ENDING = ".tar"
_FOLDER = "backups"

Copy = Callable[[], Awaitable[dict[str, str]]]  # consistent copies of the database and folders, by name


class FolderBackups:
    def __init__(self, settings: Settings, copy: Copy) -> None:
        self._settings = settings
        self._copy = copy
        self.folder = settings.data / _FOLDER

    async def names(self) -> list[str]:
        return await asyncio.to_thread(self._names)

    def _names(self) -> list[str]:
        return sorted(each.name.removesuffix(_ENDING) for each in self.folder.glob(f"*{_ENDING}"))

    async def write(self, name: str) -> None:
        try:
            copied = {key: Path(path) for key, path in (await self._copy()).items() if path}
        except (StoreError, OSError) as error:
            raise BackupError(f"the database can't be copied: {error}") from error
        try:
            await asyncio.to_thread(self._pack, name, copied)
        except OSError as error:
            raise BackupError(
                f"{self.folder}: {error.strerror or error}: make room, or correct its permissions"
            ) from error
        finally:
            await asyncio.to_thread(_remove, copied)

    def _pack(self, name: str, copied: dict[str, Path]) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = self.folder / f"{name}{_ENDING}"
        write_archive(
            copied["database"],
            self._settings.pki,
            target,
            version=__version__,
            simulated=copied.get("simulated"),
            volumes=copied.get("volumes"),
        )
        note_backup(self._settings.data, target)

    async def delete(self, name: str) -> None:
        await asyncio.to_thread((self.folder / f"{name}{_ENDING}").unlink, missing_ok=True)


def _remove(copied: dict[str, Path]) -> None:
    for path in copied.values():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
