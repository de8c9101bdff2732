"""Runs a command and makes sure that it leaves no process behind: `alone.py [--loopback] COMMAND...`.

With --loopback it brings the loopback interface up first, for a new network namespace. Exit code 7: the command succeeded,
but processes that it started are still there; they are named and ended.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

LEFT_BEHIND = 7
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP


def main(arguments: list[str]) -> int:
    if arguments[0] == "--loopback":
        bring_loopback_up()
        arguments = arguments[1:]
    # Detached processes become children of this one when their parents end.
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    code = subprocess.Popen(arguments).wait()
    left = children()
    for pid in left:
        print(f"left running: {pid} {command_line(pid)}", file=sys.stderr, flush=True)
        os.kill(pid, signal.SIGTERM)
    for pid in left:
        os.waitpid(pid, 0)
    return code or (LEFT_BEHIND if left else 0)


def bring_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        name = b"lo".ljust(16, b"\0")
        flags = struct.unpack_from("h", fcntl.ioctl(sock, _GET_FLAGS, name + bytes(24)), 16)[0]
        fcntl.ioctl(sock, _SET_FLAGS, name + struct.pack("h", flags | _UP) + bytes(22))


def children() -> list[int]:
    """Those that have not ended yet; the others are reaped."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return []
        if pid == 0:
            break
    own = os.getpid()
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit() and parent(each) == own]


def parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
