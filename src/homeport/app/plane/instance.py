"""The running instance of a data directory: who it is, how to find it, how to stop it, and that there is only one."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from pathlib import Path
from typing import IO

import msgspec

from homeport.apiserver.auth.file import write_private
from homeport.app.hint import on_data

# Paths of the running plane's own API, beside those of Kubernetes.
BACKUP_PATH = "/homeport/backup"
STATUS_PATH = "/homeport/status"
SIMULATOR_PATH = "/homeport/sim"  # exists with --sim alone


class Instance(msgspec.Struct, frozen=True):
    """What `homeport up` writes down once it is ready."""

    pid: int
    url: str
    version: str
    started: float
    told: tuple[str, ...] = ()  # the lines to print for the user who started it
    dashboard: str = ""  # its address; '': it is not served

    def running(self, data: Path) -> bool:
        """Alive, and still the one that holds this data: process numbers are used again."""
        return _alive(self.pid) and _holds(data, self.pid)


class AlreadyRunning(Exception):
    """Another process has the data directory, or is about to."""

    def __init__(self, data: Path, pid: int | None) -> None:
        by = f" by process {pid}" if pid else ""
        super().__init__(
            f"{data} is already in use{by}: stop it with '{on_data('down', data)}', or choose another with --data DIR"
        )
        self.pid = pid


class Claim:
    """The right to a data directory, from before the first file is made in it until the process ends.

    The database has a lock of its own; keys are made before there is one, and two that start together must not both
    make them.
    """

    def __init__(self, data: Path) -> None:
        self._file = os.open(data / "run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 32, 0).strip()
            os.close(self._file)
            raise AlreadyRunning(data, int(holder) if holder.isdigit() else None) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        # The file stays: removing it would race with the next holder.
        os.close(self._file)


def claimed(data: Path) -> bool:
    """Whether some process has the directory, ready or not yet."""
    try:
        with (data / "run.lock").open("rb") as file:
            return _is_locked(file)
    except OSError:
        return False


def _is_locked(file: IO[bytes]) -> bool:
    """Whether another process has an exclusive lock on the file."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def read_instance(data: Path) -> Instance | None:
    """The instance that runs on `data` now."""
    try:
        instance = msgspec.json.decode((data / "run.json").read_bytes(), type=Instance)
    except (OSError, msgspec.DecodeError):
        return None
    return instance if instance.running(data) else None


def write_instance(data: Path, instance: Instance) -> None:
    write_private(data / "run.json", msgspec.json.encode(instance))


def remove_instance(data: Path) -> None:
    (data / "run.json").unlink(missing_ok=True)


def stop(instance: Instance, *, seconds: float = 30.0) -> bool:
    """Asks it to end and waits until the process has ended. False if it is still there after `seconds`.

    It lets go of the data directory a moment before that, when its ports may still be taken.
    """
    os.kill(instance.pid, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while _alive(instance.pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _ended(pid)


def _ended(pid: int) -> bool:
    """Whether it has ended, and its parent has not asked how yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def _holds(data: Path, pid: int) -> bool:
    """Whether the store's own lock is held, and by this process."""
    try:
        with (data / "state.db.lock").open("rb") as file:
            return file.read(32).strip() == str(pid).encode() and _is_locked(file)
    except OSError:
        return False
