"""Upkeep of a plane that runs for months: its log stays bounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

LOG_BYTES = 16 * 1024 * 1024
LOGS_KEPT = 3
_LOOK_SECONDS = 5.0


class LogFile:
    """The file that standard output and error of a detached plane go to. Older ones are `homeport.log.1`, `.2` ..."""

    def __init__(self, path: Path, *, max_bytes: int = LOG_BYTES, keep: int = LOGS_KEPT) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep

    def rotate(self, descriptors: tuple[int, ...] = (1, 2)) -> bool:
        """Start a new file where the current one is full. What is written elsewhere (a terminal, a pipe, a file that
        the user chose) is not ours to rotate."""
        ours = [number for number in descriptors if self._is_ours(number)]
        if not ours or self._path.stat().st_size < self._max_bytes:
            return False
        for number in range(self._keep - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                self._older(number).replace(self._older(number + 1))
        self._path.replace(self._older(1))
        new = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            for number in ours:
                os.dup2(new, number)
        finally:
            os.close(new)
        return True

    def _older(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _is_ours(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except OSError:
            return False


async def keep_house(file: LogFile) -> None:
    """Until cancelled."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        try:
            file.rotate()
        except OSError as error:
            log.warning("the log file could not be rotated", error=str(error))
