"""kubectl and the two servers it is pointed at: a plane started as a user starts it, and a real kube-apiserver."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 40
_NORMAL = (
    # The real server runs without the plugin that names it, since no controller makes the accounts.
    (re.compile(r"^ *\"?(serviceAccount|serviceAccountName|Service Account)\"?: +\"?default\"?,?\n", re.M), ""),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "TIME"),
    (re.compile(r"(resourceVersion: )\"\d+\""), r"\1RV"),
    (re.compile(r"(\"resourceVersion\": )\"\d+\""), r"\1RV"),
    (re.compile(r"(Resource Version: +)\d+"), r"\1RV"),
    (re.compile(r"(?<=\s)\d+(s|m\d+s|m)(?=\s|$)", re.M), "AGE"),
    (re.compile(r"[0-9a-f]{40,64}"), "HASH"),
    (re.compile(r"10\.96\.\d+\.\d+"), "CLUSTER-IP"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "https://SERVER"),
    # The real server shows the whole object that a patch made, which may be a Secret. Ours shows none of it.
    (re.compile(r'Invalid value: "\{\\".*\}": '), 'Invalid value: "{...}": '),
    (re.compile(r"(---|\+\+\+) \S+/(LIVE|MERGED)-\d+/\S+\s.*"), r"\1 \2"),
    (re.compile(r"diff -u -N \S+ \S+"), "diff"),
    (re.compile(r" +"), " "),  # columns are as wide as ages and addresses make them
)


@dataclass(frozen=True)
class Output:
    code: int
    out: str
    err: str

    def normal(self) -> tuple[int, str, str]:
        return self.code, normal(self.out), normal(self.err)


def normal(text: str) -> str:
    for pattern, replacement in _NORMAL:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


@dataclass(frozen=True)
class Cluster:
    """One server as kubectl sees it. Its own home keeps discovery caches apart."""

    name: str
    kubectl: str
    kubeconfig: Path
    home: Path

    def start(self, *args: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home), **(env or {})}
        return subprocess.Popen(
            [self.kubectl, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(
        self, *args: str, stdin: str = "", env: dict[str, str] | None = None, seconds: float = TIMEOUT_SECONDS
    ) -> Output:
        return finish(self.start(*args, env=env), stdin, seconds)

    def ok(
        self, *args: str, stdin: str = "", env: dict[str, str] | None = None, seconds: float = TIMEOUT_SECONDS
    ) -> str:
        output = self.run(*args, stdin=stdin, env=env, seconds=seconds)
        assert output.code == 0, f"kubectl {' '.join(args)}: {output}"
        return output.out


def stop(process: subprocess.Popen[str]) -> None:
    """Ends it if it still runs, and closes its pipes."""
    if process.poll() is None:
        process.kill()
        process.communicate()


def finish(process: subprocess.Popen[str], stdin: str = "", seconds: float = TIMEOUT_SECONDS) -> Output:
    try:
        out, err = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        stop(process)
        raise
    return Output(process.returncode, out, err)


def difference(real: tuple[int, str, str], ours: tuple[int, str, str]) -> str:
    before, after = ([f"exit code {code}", *out.splitlines(), *err.splitlines()] for code, out, err in (real, ours))
    return "\n".join(difflib.unified_diff(before, after, "real", "ours", lineterm="", n=1))


@dataclass(frozen=True)
class Pair:
    """The same command on both servers. Where no real server can be had, ours alone answers."""

    ours: Cluster
    real: Cluster | None
    ns: str

    def run(self, *args: str, stdin: str = "", env: dict[str, str] | None = None, namespaced: bool = True) -> Output:
        """Both must answer the same, up to what differs from run to run; gives our answer."""
        full = (*args, "-n", self.ns) if namespaced else args
        processes = [cluster.start(*full, env=env) for cluster in (self.ours, self.real) if cluster is not None]
        try:
            outputs = [finish(process, stdin) for process in processes]
        finally:
            for process in processes:
                stop(process)
        if len(outputs) == 2:
            ours, real = (output.normal() for output in outputs)
            assert ours == real, f"kubectl {' '.join(full)}\n{difference(real, ours)}"
        return outputs[0]

    def ok(self, *args: str, stdin: str = "", env: dict[str, str] | None = None, namespaced: bool = True) -> str:
        output = self.run(*args, stdin=stdin, env=env, namespaced=namespaced)
        assert output.code == 0, f"kubectl {' '.join(args)}: {output}"
        return output.out
