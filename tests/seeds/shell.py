"""A reader of a guide: a folder, a shell after `eval "$(homeport env)"`, and a plane with simulated infrastructure."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.cluster import Output

TIMEOUT_SECONDS = 120
_FOLLOW_SECONDS = 60
_SYSTEM = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Shell:
    """Runs commands as they are written, with bash, in `folder`. `setup` comes before each of them."""

    folder: Path
    kubectl: str
    setup: str = ""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def in_context(self, name: str) -> Shell:
        """After `eval "$(homeport env)"`, which is asked once: it takes longer than most commands."""
        plain = Shell(self.folder, self.kubectl)
        return Shell(self.folder, self.kubectl, plain.ok(f"homeport env --context {name}"))

    # -- commands ----------------------------------------------------------------------------------------------

    def start(self, script: str, stdin: Any = subprocess.DEVNULL) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", f"set -euo pipefail\n{self.setup}\n{script}"],
            cwd=self.folder,
            env=self._environment(),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, script: str, stdin: str = "") -> Output:
        process = self.start(script, subprocess.PIPE)
        try:
            out, err = process.communicate(stdin, timeout=TIMEOUT_SECONDS)
        finally:
            end(process)
        return Output(process.returncode, out, err)

    def ok(self, script: str, stdin: str = "") -> str:
        output = self.run(script, stdin)
        assert output.code == 0, f"{script}\n{output.out}{output.err}"
        return output.out

    def follow(self, script: str, *words: str) -> str:
        """The first line with all of these words. The command goes on until then, and is ended."""
        process = self.start(script)
        late = threading.Timer(_FOLLOW_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        try:
            assert process.stdout is not None
            lines: list[str] = []
            for line in process.stdout:
                lines.append(line)
                if all(word in line for word in words):
                    return line
        finally:
            late.cancel()
            end(process)
        raise AssertionError(f"{script}: no line with {words}:\n{''.join(lines[-5:])}")

    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "PATH": f"{self.folder / 'bin'}:{_SYSTEM}",
            "HOMEPORT_DATA": str(self.data),
            "LANG": "C.UTF-8",
        }

    # -- objects -----------------------------------------------------------------------------------------------

    def apply(self, manifest: str, *more: str) -> str:
        return self.ok(f"kubectl apply -f - {' '.join(more)}", manifest)

    def patch(self, what: str, part: str | dict[str, Any], namespace: str = "") -> None:
        """`part` is YAML of a guide, or a merge patch."""
        text = part if isinstance(part, str) else json.dumps(part)
        space = f"-n {namespace}" if namespace else ""
        with tempfile.NamedTemporaryFile("w", dir=self.folder, suffix=".yaml") as file:
            file.write(text)
            file.flush()
            self.ok(f"kubectl patch {what} {space} --type merge --patch-file {file.name}")

    def get(self, what: str, namespace: str = "") -> Any:
        space = f"-n {namespace}" if namespace else ""
        return json.loads(self.ok(f"kubectl get {what} {space} -o json"))

    def ready(self, *what: str, namespace: str = "", seconds: int = 110) -> None:
        space = f"-n {namespace}" if namespace else ""
        self.ok(f"kubectl wait --for=condition=Ready {' '.join(what)} {space} --timeout={seconds}s")

    def waits(self, what: str, reason: str, kind: str = "Ready", namespace: str = "") -> str:
        """The message of a condition, once it is False for this reason."""
        space = f"-n {namespace}" if namespace else ""
        path = f'{{.status.conditions[?(@.type=="{kind}")].reason}}'
        done = self.run(f"kubectl wait --for=jsonpath={shlex.quote(path)}={reason} {what} {space} --timeout=30s")
        found = {each["type"]: each for each in self.get(what, namespace)["status"].get("conditions", ())}
        assert done.code == 0, f"{what}: expected {kind}={reason}\n{json.dumps(found, indent=1)}"
        assert found[kind]["status"] == "False", found[kind]
        return str(found[kind]["message"])

    def says(self, what: str, *words: str, kind: str = "Ready", namespace: str = "") -> str:
        """The line of a condition's message that has all of these words, as soon as there is one."""
        space = f"-n {namespace}" if namespace else ""
        path = f'{{.status.conditions[?(@.type=="{kind}")].message}}{{"\\n"}}'
        return self.follow(f"kubectl get {what} {space} -w -o jsonpath={shlex.quote(path)}", *words)

    def inside(self, cluster: str, namespace: str = "") -> Shell:
        """A shell with the kubeconfig of a tenant cluster's administrator."""
        status = self.get(f"tenantcluster/{cluster}", namespace)["status"]
        secret = f"secret/{status['kubeconfigSecretRef']['name']}"
        path = self.folder / f"{cluster}.kubeconfig"
        form = "jsonpath={.data.value}"
        path.write_text(self.ok(f"kubectl get {secret} -n {status['tenantNamespace']} -o {form} | base64 -d"))
        return Shell(self.folder, self.kubectl, f"export KUBECONFIG={shlex.quote(str(path))}")


def end(process: subprocess.Popen[str]) -> None:
    """Ends a command and what it started, and closes its pipes."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


@contextmanager
def opened(folder: Path, kubectl: str, *options: str) -> Iterator[Shell]:
    """With a plane that was started as a user starts it."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "kubectl").symlink_to(kubectl)
    command = folder / "bin" / "homeport"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m homeport "$@"\n')
    command.chmod(0o755)
    plain = Shell(folder, kubectl)
    plain.ok(f"homeport up --listen 127.0.0.1:0 --detach {' '.join(options)}")
    try:
        yield plain.in_context("homeport")
    finally:
        plain.ok("homeport down")
