"""A plane that runs hosted control planes, as a user starts it, and control planes that were written by hand."""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from capikit.handmade import HandmadeEtcd, HandmadePlane, Json
from homeport.apiserver.auth import certificate as certs
from homeport.builtin.workload.address import ADDRESS_ANNOTATION
from homeport.builtin.workload.process import end_leftovers
from homeport.capi.remote.pki import KeyPair
from homeport.hosted.etcd.dial import Access, connect
from homeport.hosted.etcd.tenancy import Tenant, ensure, prepare_datastore

T = TypeVar("T")
WAIT_SECONDS = 150.0
POLL_SECONDS = 0.2


class HostingPlane:
    def __init__(self, data: Path, kubectl: str, *options: str) -> None:
        self.data = data
        self._kubectl = kubectl
        self._options = options
        self.etcd = HandmadeEtcd(datetime.datetime.now(datetime.UTC))
        self.server = ""

    # -- the plane ---------------------------------------------------------------------------------------------

    def homeport(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "homeport", *arguments, "--data", str(self.data)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def done(self, *arguments: str) -> str:
        done = self.homeport(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def up(self) -> str:
        return self.done("up", "--listen", "127.0.0.1:0", "--detach", *self._options)

    def kill(self) -> None:
        pid = json.loads((self.data / "run.json").read_text())["pid"]
        os.kill(pid, signal.SIGKILL)
        self.until(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid), "the plane is dead")

    def processes(self) -> list[int]:
        """Of Pods, that live."""
        found = [int(file.read_text().split()[0]) for file in self.data.glob("workload/pods/*/*/pid")]
        return [pid for pid in found if Path(f"/proc/{pid}").exists() and not _is_zombie(pid)]

    # -- a user ------------------------------------------------------------------------------------------------

    def kubectl(self, *arguments: str, config: Path | None = None, stdin: str = "") -> str:
        done = self.try_kubectl(*arguments, config=config, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def try_kubectl(
        self, *arguments: str, config: Path | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        command = [self._kubectl, "--kubeconfig", str(config or self.data / "kubeconfig"), *arguments]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.data.parent)}
        return subprocess.run(command, capture_output=True, text=True, timeout=90, input=stdin, env=env, check=False)

    def apply(self, *objects: Json) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def get(self, kind: str, name: str) -> Any:
        return json.loads(self.kubectl("get", kind, name, "-o", "json"))

    def until(self, look: Callable[[], T], what: str, seconds: float = WAIT_SECONDS) -> T:
        end = time.monotonic() + seconds
        while not (found := look()):
            assert time.monotonic() < end, f"not after {seconds} s: {what}\n{self.report()}"
            time.sleep(POLL_SECONDS)
        return found

    def report(self) -> str:
        shown = self.try_kubectl("get", "pods,services,deployments,statefulsets", "-A", "-o", "wide").stdout
        return shown + self.try_kubectl("get", "events", "-A").stdout

    # -- control planes ----------------------------------------------------------------------------------------

    def datastore(self) -> None:
        self.apply(self.etcd.objects()[1])
        address = self.until(lambda: _annotation(self.get("service", "datastore")), "the datastore has an address")
        self.etcd.hosts = (address,)
        secret, _, stateful = self.etcd.objects()
        self.apply(secret, stateful)
        self.kubectl("rollout", "status", "statefulset/datastore", "--timeout=80s")
        self.server = f"https://{address}:2379"

    def control_plane(self, name: str, replicas: int = 1, version: str = "v1.33.1") -> HandmadePlane:
        """Ready. With its kubeconfig at `config(name)`."""
        made = HandmadePlane(name, self.etcd, self.server, replicas=replicas, version=version)
        asyncio.run(self._admit(name))
        self.apply(made.service())
        entry = self.until(lambda: _ingress(self.get("service", name)), f"{name} has an address")
        made.address = entry["ip"]
        port = entry["ports"][0]["port"] if entry.get("ports") else made.port
        proxy = self.proxy()
        self.config(name).write_text(made.admin(f"https://{made.address}:{port}", proxy))
        self.apply(*made.objects())
        self.until(lambda: self.ready(name, replicas), f"{name} is ready")
        return made

    def tenant(self, name: str, **addons: Json) -> Path:
        """A TenantControlPlane that is Ready: its kubeconfig."""
        self.apply(tenant(name, **addons))
        self.kubectl("wait", f"tcp/{name}", "--for=condition=Ready", "--timeout=85s")
        conf = self.kubectl("get", "secret", f"{name}-admin-kubeconfig", "-o", r"jsonpath={.data.admin\.conf}")
        text = base64.b64decode(conf).decode()
        if proxy := self.proxy():
            text = text.replace("    server:", f"    proxy-url: {proxy}\n    server:", 1)
        self.config(name).touch(mode=0o600)
        self.config(name).write_text(text)
        return self.config(name)

    def ready(self, name: str, replicas: int) -> bool:
        return (self.get("deployment", name).get("status") or {}).get("readyReplicas") == replicas

    def proxy(self) -> str:
        found = json.loads(self.done("status", "-o", "json")).get("simulators") or [{}]
        return str(found[0].get("proxy", ""))

    def config(self, name: str) -> Path:
        return self.data.parent / f"{name}.kubeconfig"

    async def _admit(self, name: str) -> None:
        certificate, key = self.etcd.client("root")
        authority = certs.certificate_pem(self.etcd.issuer.certificate)
        async with connect(Access("datastore", (self.server,), authority, KeyPair(certificate, key))) as etcd:
            await prepare_datastore(etcd, ours=True, name="datastore")
            await ensure(etcd, Tenant(f"default_{name}", name, "claim"), "datastore")


def tenant(name: str, **addons: Json) -> Json:
    return {
        "apiVersion": "steward.butlerlabs.dev/v1alpha1",
        "kind": "TenantControlPlane",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "controlPlane": {"deployment": {"replicas": 1}, "service": {"serviceType": "LoadBalancer"}},
            "kubernetes": {"version": "v1.33.1", "kubelet": {"cgroupfs": "systemd"}},
            "networkProfile": {"port": 6443},
            "addons": {"coreDNS": {}, "kubeProxy": {}, **addons},
        },
    }


@contextmanager
def real_plane(folder: Path, kubectl: str, binaries: dict[str, Path] | str) -> Iterator[HostingPlane]:
    """A plane that runs the programs of control planes. Skips the test if they were not built."""
    if isinstance(binaries, str):
        pytest.skip(binaries)
    programs = binaries["etcd"].parent
    if not (programs / "kube-controller-manager").exists() or not (programs / "kube-scheduler").exists():
        pytest.skip("no kube-controller-manager and kube-scheduler: run tools/kube/build")
    plane = HostingPlane(folder / "data", kubectl, "--hosted-binaries", str(programs))
    plane.up()
    try:
        yield plane
    finally:
        plane.homeport("down")
        end_leftovers(plane.data / "workload")  # of a test that failed between a kill and a start


def _annotation(service: Any) -> str:
    return str((service["metadata"].get("annotations") or {}).get(ADDRESS_ANNOTATION, ""))


def _ingress(service: Any) -> Any:
    return next(iter(((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()), None)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
