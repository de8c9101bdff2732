"""The process that an installed Deployment describes, run here: no kubelet runs Pods on a lone kube-apiserver.

It has the arguments and the environment of the container, and the token of the ServiceAccount: what it may do is what
the installed roles allow.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from realkube import RealKube

COMBINED = "homeport-system/homeport-controller-manager"


def deployment(kube: RealKube, name: str) -> dict[str, Any]:
    namespace, _, name = name.partition("/")
    found = kube.kubectl("get", "deployment", name, "-n", namespace, "-o", "json")
    assert found.returncode == 0, found.stderr
    body: dict[str, Any] = json.loads(found.stdout)
    return body


def account(kube: RealKube, namespace: str, name: str) -> Path:
    """A folder like the one that a kubelet gives to a Pod."""
    token = kube.kubectl("create", "token", name, "-n", namespace, "--duration", "2h")
    assert token.returncode == 0, token.stderr
    folder = kube.dir / f"account-{namespace}-{name}"
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(token.stdout.strip())
    (folder / "ca.crt").write_bytes(kube.ca.read_bytes())
    (folder / "namespace").write_text(namespace)
    return folder


def environment(kube: RealKube, body: dict[str, Any]) -> dict[str, str]:
    meta, pod = body["metadata"], body["spec"]["template"]["spec"]
    declared = {each["name"]: each["value"] for each in pod["containers"][0]["env"] if each["name"] != "HOME"}
    return {
        **os.environ,
        **declared,
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(kube.port),
        "HOMEPORT_SERVICE_ACCOUNT": str(account(kube, meta["namespace"], pod["serviceAccountName"])),
    }


@contextmanager
def running(kube: RealKube, *options: str, name: str = COMBINED) -> Iterator[Path]:
    """Until the end of the with block. Gives the file of its log. `options` come after those of the container."""
    body = deployment(kube, name)
    arguments = body["spec"]["template"]["spec"]["containers"][0]["args"]
    # Ports of a Pod are its own; here they would be everybody's.
    command = [sys.executable, "-m", "homeport", *arguments, "--health=127.0.0.1:0", *options]
    log = kube.dir / f"{name.replace('/', '-')}.log"
    with open(log, "ab") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment(kube, body)
        )
    try:
        assert process.stdout is not None
        said = ""
        while "Homeport runs its controllers on" not in said:
            line = process.stdout.readline()
            assert line, said + log.read_text()
            said += line
        yield log
    finally:
        process.terminate()
        process.communicate(timeout=120)


def refusals(log: Path) -> list[str]:
    """Lines of the log about something that the roles do not allow."""
    return [line for line in log.read_text().splitlines() if "is forbidden: User" in line]
