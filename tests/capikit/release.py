"""An older release of Homeport, from the repository's own history: its code runs beside the code under test."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The last commit whose installation had no webhooks: its definitions serve one version, and its roles are smaller.
BEFORE = "bbe2cbb5"


@dataclass(frozen=True)
class Release:
    """`folder` has its sources; None is the code under test."""

    folder: Path | None = None

    def environment(self, base: dict[str, str] | None = None) -> dict[str, str]:
        found = {**(os.environ if base is None else base)}
        return found if self.folder is None else {**found, "PYTHONPATH": str(self.folder / "src")}

    def homeport(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "homeport", *arguments],
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
            env=self.environment(),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def checked_out(commit: str, folder: Path) -> Release | str:
    """The release of a commit; a text if this copy of the repository does not have it."""
    made = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False)
    if made.returncode:
        return f"the history of this repository does not have commit {commit}: fetch all of it"
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return Release(folder)
