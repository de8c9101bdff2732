"""Databases of hosted clusters on disk: which of them are still valid, and how they end.

FOLDER/<name>.db      what the API server of a cluster holds, with the files that SQLite keeps beside it
FOLDER/<name>.lost    the data were deleted: the database goes when the cluster has ended, or at the next start
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from pathlib import Path


def new_database(folder: Path | None) -> Path | None:
    """Where a new cluster keeps its objects. None: in memory."""
    return None if folder is None else folder / f"{uuid.uuid4().hex}.db"


def mark_lost(database: Path) -> None:
    """At once, because whoever deleted the data is told that they are gone."""
    database.with_suffix(".lost").touch(mode=0o600)


def is_valid(database: Path) -> bool:
    return database.exists() and not database.with_suffix(".lost").exists()


def drop_database(database: Path) -> None:
    """The mark goes last: a start after a crash then completes the removal."""
    for path in database.parent.glob(f"{database.name}*"):
        path.unlink(missing_ok=True)
    database.with_suffix(".lost").unlink(missing_ok=True)


def drop_others(folder: Path | None, kept: Collection[str]) -> None:
    """Removes databases of clusters that ended, or whose start was never completed, in an earlier process."""
    if folder is None:
        return
    for suffix in ("db", "lost"):
        for path in folder.glob(f"*.{suffix}"):
            if path.stem not in kept:
                drop_database(path.with_suffix(".db"))
