"""A disk of a few megabytes, for what happens when one is full: a tmpfs in a mount namespace of the test's own."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

_MOUNT = 'mount -t tmpfs -o "size=$1" tmpfs "$2" && shift 2 && exec "$@"'


def run_on_small_disk(
    folder: Path, size: str, command: Sequence[str], *, seconds: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Runs a command with an empty disk of `size` at `folder`, which is gone afterwards."""
    if not _allowed():
        pytest.skip("this system allows no mount namespaces to its users")
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(_line(size, folder, command), capture_output=True, text=True, timeout=seconds)


def _line(size: str, folder: Path, command: Sequence[str]) -> list[str]:
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNT, "sh", size, str(folder), *command]


@functools.cache
def _allowed() -> bool:
    try:
        probe = subprocess.run(_line("1m", Path("/mnt"), [sys.executable, "-c", ""]), capture_output=True, timeout=30)
    except OSError:
        return False
    return probe.returncode == 0
