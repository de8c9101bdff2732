"""kubectl and the two servers it is pointed at: a plane started as a user starts it, and a real kube-apiserver."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 40
_NORMAL = (
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

    def run(self, *args: str, stdin: str = "", env: dict[str, str] | None = None) -> Output:
        return finish(self.start(*args, env=env), stdin)

    def ok(self, *args: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
        output = self.run(*args, stdin=stdin, env=env)
        assert output.code == 0, f"kubectl {' '.join(args)}: {output}"
        return output.out


def finish(process: subprocess.Popen[str], stdin: str = "") -> Output:
    try:
        out, err = process.communicate(stdin, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Output(process.returncode, out, err)


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
        outputs = [finish(process, stdin) for process in processes]
        if len(outputs) == 2:
            ours, real = (output.normal() for output in outputs)
            assert ours == real, f"kubectl {' '.join(full)}"
        return outputs[0]

    def ok(self, *args: str, stdin: str = "", env: dict[str, str] | None = None, namespaced: bool = True) -> str:
        output = self.run(*args, stdin=stdin, env=env, namespaced=namespaced)
        assert output.code == 0, f"kubectl {' '.join(args)}: {output}"
        return output.out
