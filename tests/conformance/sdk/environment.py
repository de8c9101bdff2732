"""Virtual environments with the vendor's own Python clients, made once and kept in the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SETS = {"4.1": "requirements/sdk-4.1.txt", "4.4": "requirements/sdk-4.4.txt"}


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "homeport" / "sdk"


def ensure(name: str) -> Path | str:
    """The interpreter of the environment; a text says why there is none."""
    requirements = ROOT / SETS[name]
    version = ".".join(map(str, sys.version_info[:2]))
    digest = hashlib.sha256(requirements.read_bytes() + version.encode()).hexdigest()[:16]
    folder = cache() / digest
    python = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers of one test run wait for the first
        if (folder / "complete").exists():
            return python
        shutil.rmtree(folder, ignore_errors=True)
        steps = [
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(requirements)],
        ]
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True)
            if done.returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                return f"the clients of {requirements.name} can't be installed: {done.stderr.strip()[-300:]}"
        (folder / "complete").touch()
        return python


if __name__ == "__main__":
    for each in SETS:
        print(each, ensure(each))
