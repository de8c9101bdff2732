"""A runner for containers that are processes of this machine: the command of the container, run as it is.

There is no image and no isolation. Files of ConfigMaps and Secrets, empty folders and claims live below one folder of
ours; where the command, its arguments or the environment name a mount path, they get the real one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from homeport.builtin.workload.shared import SharedFolders
from homeport.runtime.workload.runner import Launch, Mount, RunError

_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ")
_LINE_LIMIT = 1 << 20
_CONFIG_BYTES = 1 << 16


class ProcessRunner:
    """`folder` is where Pods keep their files; it is made if need be, for the owner's eyes only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shared = SharedFolders(folder)

    async def run(self, launch: Launch) -> Process:
        if not launch.command:
            raise RunError(
                f"container {launch.container.get('name')!r} has no command: without an image's own to fall back on, "
                "spec.containers[].command must say what to run"
            )
        home = self._home(launch)
        # Not mount by mount: one may lie within another, and single files may share a folder.
        shutil.rmtree(home / "files", ignore_errors=True)
        places = {mount.path: self._place(launch, home, mount) for mount in launch.mounts}
        for mount in launch.mounts:
            _lay_out(mount, places)
        env = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        env |= {"HOME": str(home), "HOSTNAME": str(launch.pod["metadata"]["name"])}
        env |= {name: relocate(value, places) for name, value in launch.env.items()}
        command = [relocate(word, places) for word in launch.command]
        folder = launch.container.get("workingDir")
        _end_leftover(home / "pid")
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=env,
                cwd=relocate(str(folder), places) if folder else home,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                limit=_LINE_LIMIT,
            )
        except OSError as error:
            raise RunError(f"can't run {command[0]!r}: {error.strerror or error}") from error
        (home / "pid").write_text(f"{process.pid} {_started(process.pid)}")
        return Process(process, launch, env, home, places)

    def _home(self, launch: Launch) -> Path:
        meta = launch.pod["metadata"]
        home: Path = self._folder / "pods" / meta["uid"] / launch.container["name"]
        _make_private(home)
        return home

    def _place(self, launch: Launch, home: Path, mount: Mount) -> Path:
        if mount.kind == "host":
            return Path(mount.name)
        place: Path
        if mount.kind == "claim":
            place = self._folder / "claims" / launch.pod["metadata"]["namespace"] / mount.name
        elif mount.kind == "empty":
            place = home.parent / "empty" / mount.name
            _make_private(place)
            return self._shared.link(place)
        else:
            place = home / "files" / mount.path.strip("/")
        _make_private(place)
        return place

    def forget(self, uid: str) -> None:
        """Removes the files of a Pod that is gone. Claims stay."""
        home = self._folder / "pods" / uid
        for place in home.glob("empty/*"):
            self._shared.drop(place)
        shutil.rmtree(home, ignore_errors=True)

    def forget_claim(self, namespace: str, name: str) -> None:
        shutil.rmtree(self._folder / "claims" / namespace / name, ignore_errors=True)


class Process:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        launch: Launch,
        env: Mapping[str, str],
        home: Path,
        places: Mapping[str, Path],
    ) -> None:
        self._process = process
        self._env = env
        self._home = home
        self._places = places
        self._reading = asyncio.create_task(self._read(launch))

    @property
    def ready(self) -> bool:
        return self._process.returncode is None

    async def _read(self, launch: Launch) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:  # a line longer than the limit: its beginning was dropped
                continue
            if not line:
                return
            launch.log(line.decode(errors="replace").rstrip("\n"))

    async def wait(self) -> int:
        code = await self._process.wait()
        # Children that outlive it may hold its output open: they are of no concern.
        await asyncio.wait([self._reading], timeout=1.0)
        self._reading.cancel()
        (self._home / "pid").unlink(missing_ok=True)
        return code if code >= 0 else 128 - code  # killed by a signal, as shells say it

    async def stop(self, grace_seconds: float) -> None:
        self._signal(signal.SIGTERM if grace_seconds > 0 else signal.SIGKILL)
        try:
            async with asyncio.timeout(max(grace_seconds, 0.0) or None):
                await self._process.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._process.wait()
        self._signal(signal.SIGKILL)  # what it started and left behind

    def _signal(self, number: signal.Signals) -> None:
        _signal_group(self._process.pid, number)

    async def probe(self, command: Sequence[str]) -> bool:
        words = [relocate(word, self._places) for word in command]
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                env=self._env,
                cwd=self._home,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return False
        try:
            return await process.wait() == 0
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise


def relocate(text: str, places: Mapping[str, Path]) -> str:
    """Mount paths by the real ones, wherever they stand as whole steps of a path."""
    for path in sorted(places, key=len, reverse=True):
        if path in text:
            pattern = rf"(?<![\w./-]){re.escape(path.rstrip('/'))}(?=$|[^\w.-])"
            text = re.sub(pattern, lambda _: str(places[path]), text)  # noqa: B023  (used at once)
    return text


def _lay_out(mount: Mount, places: Mapping[str, Path]) -> None:
    """Writes the files of a volume. Those that name a mount path get the real one, as the command does."""
    place = places[mount.path]
    for name, content in mount.files.items():
        file = (place / name).resolve()
        if not file.is_relative_to(place.resolve()):
            raise RunError(f"volume {mount.name!r}: the path {name!r} leaves the volume")
        _make_private(file.parent)
        file.touch(mode=0o600)
        file.write_bytes(_relocated(content, places))


def _relocated(content: bytes, places: Mapping[str, Path]) -> bytes:
    if len(content) > _CONFIG_BYTES:
        return content
    try:
        return relocate(content.decode(), places).encode()
    except UnicodeDecodeError:
        return content


def _make_private(folder: Path) -> None:
    """The folder and what is missing above it: `mkdir` gives only the last one the mode."""
    for each in reversed((folder, *folder.parents)):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)


def _started(pid: int) -> str:
    """When a process began, in its kernel's own words: with the number it names one process for good."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def copy_claims(folder: Path, target: Path) -> bool:
    """A copy of all volumes, as they are at one moment. False: there are none.

    Processes are stopped meanwhile, so that a datastore's files fit together as after a loss of power.
    """
    claims = folder / "claims"
    if not claims.is_dir():
        return False
    _make_private(target)
    with _paused(folder):
        shutil.copytree(claims, target, dirs_exist_ok=True)
    return True


@contextlib.contextmanager
def _paused(folder: Path) -> Iterator[None]:
    found = [pid for file in folder.glob("pods/*/*/pid") if (pid := _alive(file))]
    try:
        for pid in found:
            _signal_group(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in found:
            _signal_group(pid, signal.SIGCONT)


def end_leftovers(folder: Path) -> None:
    """All processes of a Homeport that was killed: their Pods may be gone, or run somewhere else."""
    for file in folder.glob("pods/*/*/pid"):
        _end_leftover(file)


def _end_leftover(file: Path) -> None:
    """A process that outlived a Homeport that was killed would run beside the new one."""
    if pid := _alive(file):
        _signal_group(pid, signal.SIGKILL)
    file.unlink(missing_ok=True)


def _alive(file: Path) -> int:
    """The process that the file is about; 0: it is gone, whoever has its number now."""
    try:
        pid, _, started = file.read_text().partition(" ")
    except OSError:
        return 0
    return int(pid) if pid.isdigit() and started and _started(int(pid)) == started else 0


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
