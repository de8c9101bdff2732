"""Our controllers as a process on a server of others, as `homeport up --kubeconfig` runs them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def controllers(kubeconfig: Path, *options: str) -> Iterator[Path]:
    """Until the end of the with block. Gives the file of their log."""
    command = [sys.executable, "-m", "homeport", "up", "--kubeconfig", str(kubeconfig), *options]
    log = kubeconfig.parent / "homeport.log"
    with open(log, "ab") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "Homeport runs its controllers on" in line, line + log.read_text()
        yield log
    finally:
        process.terminate()
        process.communicate(timeout=30)
