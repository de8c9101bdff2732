"""Real Helm 3 and 4 and a real registry on loopback, for the tests that hold charts and releases of ours to them."""

from __future__ import annotations

import functools
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from realkube import Authority, free_port

BUILD = Path(__file__).resolve().parents[1] / "tools" / "helm" / "build"
NEEDED = ("helm3", "helm4", "registry")
TIMEOUT_SECONDS = 120
READY_TIMEOUT_SECONDS = 60.0
START_ATTEMPTS = 3
USERNAME = "pilot"
PASSWORD = "harbour-pass"
# bcrypt of PASSWORD, the only hash that the registry takes; Python's library has none.
HTPASSWD = f"{USERNAME}:$2a$04$ESpmxyIDOGI2pbErNZvwP.t/tkqcxE/hYYRsOZa/LL.KSH0f85JqW\n"


@functools.cache
def find_programs() -> dict[str, Path] | str:
    """Give the path of each program, or say in one sentence why the tests that need them must be skipped."""
    asked = subprocess.run([sys.executable, str(BUILD), "--where"], capture_output=True, text=True, check=True)
    folder = Path(asked.stdout.strip())
    missing = [name for name in NEEDED if not os.access(folder / name, os.X_OK)]
    if not missing:
        return {name: folder / name for name in NEEDED}
    if shutil.which("go"):
        return f"no {', '.join(missing)} in {folder}: run tools/helm/build"
    return "no Helm: Go is not on PATH and nothing was built before (see tools/helm/README.md)"


@dataclass(frozen=True)
class Helm:
    """One version of Helm with a home of its own: no setting, cache or login of the user reaches it."""

    program: Path
    home: Path
    kubeconfig: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        made = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HELM_CACHE_HOME": str(self.home / "cache"),
            "HELM_CONFIG_HOME": str(self.home / "config"),
            "HELM_DATA_HOME": str(self.home / "data"),
            # Nothing listens there: without a kubeconfig no cluster of the user is touched.
            "KUBECONFIG": str(self.kubeconfig) if self.kubeconfig is not None else os.devnull,
        }
        # Docker's credential helpers are asked otherwise.
        made["DOCKER_CONFIG"] = str(self.home / "docker")
        return made

    def run(self, *args: str, stdin: str | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.program), *args],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=cwd,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def ok(self, *args: str, stdin: str | None = None, cwd: Path | None = None) -> str:
        done = self.run(*args, stdin=stdin, cwd=cwd)
        assert done.returncode == 0, f"{self.program.name} {' '.join(args)}: {done.stdout}\n{done.stderr}"
        return done.stdout


class Registry:
    """Start the distribution registry in a temporary directory; stop it and remove that at the end of the with block.

    It serves TLS with a certificate of `authority`. `auth` is the auth section of its configuration: htpasswd with
    USERNAME and PASSWORD by default, None for no authentication.
    """

    def __init__(
        self,
        program: Path,
        *,
        auth: dict[str, Any] | None = None,
        anonymous: bool = False,
        authority: Authority | None = None,
    ) -> None:
        self.program = program
        self._authority = authority
        self.auth = auth
        self.anonymous = anonymous
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Registry:
        self.dir = Path(tempfile.mkdtemp(prefix="registry-"))
        try:
            self.authority = self._authority or Authority(self.dir)
            self.ca = self.authority.ca
            self._serving = self.authority.issue("registry", serving=True)
            (self.dir / "htpasswd").write_text(HTPASSWD)
            for attempt in range(1, START_ATTEMPTS + 1):
                try:
                    self._start(free_port())
                    break
                except RuntimeError:  # A port found free can be taken by another process before the program binds it.
                    if attempt == START_ATTEMPTS:
                        raise
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        shutil.rmtree(self.dir, ignore_errors=True)

    def log(self) -> str:
        return (self.dir / "log").read_text(errors="replace")

    def _start(self, port: int) -> None:
        self.host = f"127.0.0.1:{port}"
        self.url = f"https://{self.host}"
        settings: dict[str, Any] = {
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": str(self.dir / "data")}, "delete": {"enabled": True}},
            "http": {
                "addr": self.host,
                "tls": {"certificate": str(self._serving.cert), "key": str(self._serving.key)},
            },
        }
        if not self.anonymous:
            htpasswd = {"htpasswd": {"realm": "charts", "path": str(self.dir / "htpasswd")}}
            settings["auth"] = self.auth or htpasswd
        (self.dir / "config.yml").write_text(yaml.safe_dump(settings))
        with open(self.dir / "log", "ab") as log:
            self.process = subprocess.Popen(
                [str(self.program), "serve", str(self.dir / "config.yml")],
                cwd=self.dir,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={"PATH": os.environ["PATH"], "OTEL_TRACES_EXPORTER": "none"},
            )
        self._await()

    def _await(self) -> None:
        assert self.process is not None
        context = ssl.create_default_context(cafile=str(self.ca))
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            code = self.process.poll()
            if code is not None:
                raise RuntimeError(f"the registry ended with {code}:\n{self.log()[-3000:]}")
            try:
                with urllib.request.urlopen(f"{self.url}/v2/", context=context, timeout=5):
                    return
            except urllib.error.HTTPError as error:
                error.close()
                return  # 401: it listens, and asks who we are.
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"the registry is not ready after {READY_TIMEOUT_SECONDS:g} s:\n{self.log()[-3000:]}")
