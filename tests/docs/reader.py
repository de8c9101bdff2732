"""A reader of the documentation: a login shell with a clean home, in a clean clone after `make setup`, nothing exported.

The clone is made of links to the tracked files and to this virtual environment. Every reader has a network of their own, as
the pages use the default ports; where the system allows no network namespaces, readers come one after the other.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALONE = Path(__file__).with_name("alone.py")
UNSHARE = ("unshare", "--map-root-user", "--net")


@dataclass(frozen=True)
class Reader:
    home: Path
    clone: Path

    @classmethod
    def make(cls, folder: Path, programs: Sequence[Path]) -> Reader:
        """`programs` are what the reader has installed: kubectl, and clusterctl for its page."""
        home, clone = folder / "home", folder / "homeport"
        (home / "bin").mkdir(parents=True)
        clone.mkdir()
        for program in programs:
            (home / "bin" / program.name).symlink_to(program)
        # clusterctl would ask the network for a newer release.
        profile = 'export PATH="$HOME/bin:$PATH" CLUSTERCTL_DISABLE_VERSIONCHECK=true\n'
        (home / ".bash_profile").write_text(profile)
        tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in {line.partition("/")[0] for line in tracked.splitlines()}:
            (clone / name).symlink_to(ROOT / name)
        (clone / ".venv").symlink_to(Path(sys.prefix))
        return cls(home, clone)

    def run(self, script: str, *, seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Fails also when a process is left behind."""
        with self.shell(script) as command:
            return subprocess.run(
                command, cwd=self.clone, env=self.environment, capture_output=True, text=True, timeout=seconds
            )

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "USER": pwd.getpwuid(os.getuid()).pw_name, "TERM": "dumb"}

    @contextlib.contextmanager
    def shell(self, script: str) -> Iterator[list[str]]:
        """The command that runs a script as this reader, in a network of its own."""
        # -u: a variable that only tests would set is an error.
        shell = [sys.executable, str(ALONE), "bash", "--login", "-euo", "pipefail", "-c", script]
        with own_network() as prefix:
            yield [*prefix, *shell[:2], *(["--loopback"] if prefix else []), *shell[2:]]

    def simulated_machines(self) -> list[str]:
        """VMs that a page left behind, of all simulators of this reader."""
        found: list[str] = []
        for kept in self.home.glob("**/sim/prism/world.json"):
            found += [vm["name"] for vm in json.loads(kept.read_bytes())["world"].get("vms") or ()]
        return found


@contextlib.contextmanager
def own_network() -> Iterator[tuple[str, ...]]:
    """How to start a command in a network of its own; () after waiting for everybody else where that is forbidden."""
    if namespaces_allowed():
        yield UNSHARE
        return
    with (Path(tempfile.gettempdir()) / "homeport-docs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield ()


@functools.cache
def namespaces_allowed() -> bool:
    probe = [*UNSHARE, sys.executable, str(ALONE), "--loopback", "true"]
    try:
        return subprocess.run(probe, capture_output=True, timeout=30).returncode == 0
    except OSError:
        return False
