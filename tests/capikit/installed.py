"""The process that an installed Deployment describes, run here: no kubelet runs Pods on a lone kube-apiserver.

It has the arguments and the environment of the container, and the token of the ServiceAccount: what it may do is what
the installed roles allow. Services reach it through the network of NetworkedKube.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from capikit.podnetwork import NetworkedKube, Pod
from realkube import RealKube, free_port

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
    """Ready, until the end of the with block. Gives the file of its log. `options` come after those of the container."""
    body = deployment(kube, name)
    template = body["spec"]["template"]
    arguments = template["spec"]["containers"][0]["args"]
    # Ports of a Pod are its own; here they would be everybody's.
    port = free_port() if any(each.startswith("--webhook-listen=") for each in arguments) else 0
    own = ["--health=127.0.0.1:0", *([f"--webhook-listen=127.0.0.1:{port}"] if port else [])]
    command = [sys.executable, "-m", "homeport", *arguments, *own, *options]
    pod = Pod(body["metadata"]["namespace"], template["metadata"]["labels"], {"webhook": port})
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
        if port:
            await_ready(port, process, log)
            assert isinstance(kube, NetworkedKube), "its API server can't ask these webhooks"
            kube.pods.append(pod)
        yield log
    finally:
        if isinstance(kube, NetworkedKube) and pod in kube.pods:
            kube.pods.remove(pod)
        process.terminate()
        process.communicate(timeout=120)


def await_ready(port: int, process: subprocess.Popen[str], log: Path, seconds: float = 120.0) -> None:
    """As the readiness probe of the container, which does not check the certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    deadline, said = time.monotonic() + seconds, ""
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=context, timeout=5):
                return
        except urllib.error.HTTPError as error:
            with error:
                said = error.read().decode()
        except OSError as error:
            said = str(error)
        time.sleep(0.1)
    raise AssertionError(f"not ready after {seconds:.0f} s: {said}\n{log.read_text()[-3000:]}")


def refusals(log: Path) -> list[str]:
    """Lines of the log about something that the roles do not allow."""
    return [line for line in log.read_text().splitlines() if "is forbidden: User" in line]
