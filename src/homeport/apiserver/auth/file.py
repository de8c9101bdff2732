"""Secret files: written whole or not at all, readable by their owner alone."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)


def make_private_dir(path: Path) -> None:
    """Makes a directory with mode 0700, or tightens one that others can enter."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    tighten(path, 0o700)


def tighten(path: Path, mode: int = 0o600) -> None:
    """Takes group and world permissions away. Says so, because somebody may have read the file before."""
    now = stat.S_IMODE(path.stat().st_mode)
    if now & 0o077:
        log.warning("others could read this; permissions tightened", path=str(path), was=oct(now), now=oct(mode))
        path.chmod(mode)


def write_private(path: Path, content: bytes) -> None:
    """Writes beside the target, syncs and renames: a crash leaves the old file or the new one, never a part."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.replace(name, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        if isinstance(error, OSError) and not error.filename:
            error.filename = str(path)  # a write that finds no space does not say where
        raise
    sync_dir(path.parent)


def sync_dir(path: Path) -> None:
    """Makes a rename durable. Windows can't open directories, and needs no such call."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
