"""When the last backup of a data directory was written, and where: the dashboard shows it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import msgspec

from homeport.apiserver.auth.file import write_private
from homeport.app.report.description import BackupState

_FILE = "backup.json"


def note_backup(data: Path, target: Path) -> None:
    """After the backup: one that can't be noted is a backup all the same."""
    with contextlib.suppress(OSError):
        write_private(data / _FILE, msgspec.json.encode(BackupState(str(target), time.time())))


def last_backup(data: Path) -> BackupState | None:
    """None: there was none, or nothing is known about it."""
    try:
        return msgspec.json.decode((data / _FILE).read_bytes(), type=BackupState)
    except (OSError, msgspec.DecodeError):
        return None
