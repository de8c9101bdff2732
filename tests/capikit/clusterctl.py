"""clusterctl as its users have it, on kubeconfigs of ours; never beyond loopback."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "tools" / "clusterctl" / "build"
TIMEOUT_SECONDS = 120


@functools.cache
def find() -> Path | str:
    """The program, or why there is none."""
    asked = subprocess.run([sys.executable, str(BUILD), "--where"], capture_output=True, text=True, check=True)
    program = Path(asked.stdout.strip())
    if program.exists():
        return program
    if shutil.which("go"):
        return f"no clusterctl in {program.parent}: run tools/clusterctl/build"
    return "no clusterctl: Go is not on PATH and nothing was built before (see tools/clusterctl/README.md)"


@dataclass(frozen=True)
class Clusterctl:
    program: Path
    kubeconfig: Path
    home: Path

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
        }

    def interrupt(self, reached: Callable[[], object], *args: str) -> None:
        """Kills it when `reached` returns. It must still be at work then."""
        process = subprocess.Popen(
            [str(self.program), *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
        )
        try:
            reached()
            assert process.poll() is None, "it has ended"
        except AssertionError as error:
            process.kill()
            error.add_note(f"clusterctl {' '.join(args)}: {process.communicate()[0]}")
            raise
        process.kill()
        process.communicate()

    def run(self, *args: str, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """`variables` are those of a template."""
        return subprocess.run(
            [str(self.program), *args],
            capture_output=True,
            text=True,
            env={**(variables or {}), **self._environment},
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def ok(self, *args: str, variables: Mapping[str, str] | None = None) -> str:
        done = self.run(*args, variables=variables)
        assert done.returncode == 0, f"clusterctl {' '.join(args)}: {done.stdout}\n{done.stderr}"
        return done.stdout
