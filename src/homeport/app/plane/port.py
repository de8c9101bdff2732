"""Who holds a TCP port: for the error when it is taken."""

from __future__ import annotations

import os
from pathlib import Path

_LISTEN = "0A"


def holder(port: int) -> str | None:
    """`process 4711 (kube-apiserver)`, where /proc shows it; None where it can't be seen."""
    inodes = _listening(port)
    if not inodes:
        return None
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _has_socket(process, inodes):
            return f"process {process.name} ({_command(process)})"
    return None


def _listening(port: int) -> set[str]:
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    return inodes


def _has_socket(process: Path, inodes: set[str]) -> bool:
    try:
        return any(os.readlink(fd) in inodes for fd in (process / "fd").iterdir())
    except OSError:  # another user's process, or one that just ended
        return False


def _command(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "unknown"
