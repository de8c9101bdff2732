"""homeport up where the disk has no space for the definitions."""

from __future__ import annotations

import sys
from pathlib import Path

from smalldisk import run_on_small_disk


def test_a_disk_that_is_full_at_the_start_is_named_in_one_line(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    command = [sys.executable, "-m", "homeport", "up", "--data", str(disk / "data"), "--listen", "127.0.0.1:0"]
    done = run_on_small_disk(disk, "6m", command)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"disk full: {disk}/data/state.db: free some space there" in done.stderr
