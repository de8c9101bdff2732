"""CPU time and memory of a process, from /proc."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Sequence
from pathlib import Path

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pids: Sequence[int]) -> float:
    """User and system time of all threads."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICK


def resident_mib(pids: Sequence[int]) -> float:
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total / 1024


def peak_mib(pid: int) -> float:
    """The most that it ever held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def sockets(pid: int) -> int:
    """Open sockets: connections, and the few that it listens on."""
    found = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            found += os.readlink(link).startswith("socket:")
    return found


def end_with_parent() -> None:
    """For a child, before it runs its program: whoever started it may be killed at any time (Linux)."""
    if hasattr(_LIBC, "prctl"):
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
