"""Runs the Pods of hosted control planes with the real programs, as a node would: one set of processes per Deployment.

The Pod template is taken as it is. Files of Secrets and ConfigMaps are written below a folder that stands for the
container's root, paths in flags are moved there, and servers bind to loopback.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from homeport.api.meta import Resource
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import Plane
from realkube import find_binaries, free_port

DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
SERVICE = Resource("", "v1", "Service", "services")
SECRET = Resource("", "v1", "Secret", "secrets")
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def missing() -> str:
    """Why tests that need the programs must be skipped; '' if they are there."""
    found = find_binaries()
    if isinstance(found, str):
        return found
    folder = found["etcd"].parent
    lacking = [each for each in PROGRAMS if not (folder / each).exists()]
    return f"no {', '.join(lacking)} in {folder}: run tools/kube/build" if lacking else ""


class RealPods:
    """`run` is a task beside the plane. Everything is killed and removed at the end of it."""

    def __init__(self, plane: Plane) -> None:
        found = find_binaries()
        assert not isinstance(found, str), found
        self.folder = found["etcd"].parent
        self.root = Path(tempfile.mkdtemp(prefix="realtenant-"))
        self._plane = plane
        self._running: dict[Key, tuple[str, list[subprocess.Popen[bytes]]]] = {}
        self.started = 0

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._balance())
                group.create_task(self._deploy())
        finally:
            for _, processes in self._running.values():
                _kill(processes)
            shutil.rmtree(self.root, ignore_errors=True)

    async def _balance(self) -> None:
        """A load balancer: every Service gets 127.0.0.1."""
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}}}
        async with self._plane.client.watch(SERVICE, Query(), initial_events=True) as events:
            async for event in events:
                service = event.object
                if event.type in ("ADDED", "MODIFIED") and service["spec"].get("type") == "LoadBalancer":
                    if not ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress"):
                        key = Key(service.namespace, service.name)
                        await self._plane.client.patch(SERVICE, key, MergePatch(status), subresource="status")

    async def _deploy(self) -> None:
        async with self._plane.client.watch(DEPLOYMENT, Query(), initial_events=True) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    await self._hold(event.object)
                elif event.type == "DELETED":
                    _kill(self._running.pop(Key(event.object.namespace, event.object.name), ("", []))[1])

    async def _hold(self, deployment: Any) -> None:
        key = Key(deployment.namespace, deployment.name)
        if deployment.metadata.get("deletionTimestamp"):
            _kill(self._running.pop(key, ("", []))[1])
            # Foreground deletion: there are no Pods left.
            patch = MergePatch({"metadata": {"finalizers": None}})
            with contextlib.suppress(NotFound):
                await self._plane.client.patch(DEPLOYMENT, key, patch)
            return
        replicas = int(deployment["spec"].get("replicas", 1))
        template = repr(deployment["spec"]["template"]) if replicas else ""
        if self._running.get(key, ("?", []))[0] != template:
            _kill(self._running.pop(key, ("", []))[1])
            processes: list[subprocess.Popen[bytes]] = []
            self._running[key] = (template, processes)
            if replicas:
                await self._start(deployment, processes)
        count = 1 if replicas else 0
        status = {
            "observedGeneration": deployment.metadata["generation"],
            **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), count * replicas),
        }
        if {name: (deployment.get("status") or {}).get(name, 0) for name in status} != status:
            patch = MergePatch({"status": status})
            try:
                await self._plane.client.patch(DEPLOYMENT, key, patch, subresource="status")
            except ApiError:
                return

    async def _start(self, deployment: Any, processes: list[subprocess.Popen[bytes]]) -> None:
        self.started += 1
        pod = deployment["spec"]["template"]["spec"]
        root = self.root / f"{deployment.name}-{self.started}"
        for container in pod["containers"]:
            await self._write_files(deployment.namespace, pod, container, root)
        for container in pod["containers"]:
            if container["name"] in PROGRAMS:
                processes.append(self._spawn(container, root))
                if container["name"] == "kube-apiserver":
                    port = container["ports"][0]["containerPort"]
                    await asyncio.to_thread(_await_ready, port, root, processes[-1])

    async def _write_files(self, namespace: str, pod: Any, container: Any, root: Path) -> None:
        volumes = {each["name"]: each for each in pod["volumes"]}
        for mount in container["volumeMounts"]:
            volume = volumes[mount["name"]]
            sources = volume["projected"]["sources"] if "projected" in volume else [volume]
            for source in sources:
                if "secret" not in source:
                    continue
                given = source["secret"]
                secret = await self._plane.client.get(SECRET, Key(namespace, given.get("name") or given["secretName"]))
                for item in given["items"]:
                    path = root / mount["mountPath"].lstrip("/")
                    if not mount.get("subPath"):
                        path = path / item["path"]
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.touch(mode=0o600)
                    path.write_bytes(base64.b64decode(secret["data"][item["key"]]))

    def _spawn(self, container: Any, root: Path) -> subprocess.Popen[bytes]:
        program, *flags = container["command"]
        moved = [each.replace("=/etc/kubernetes", f"={root}/etc/kubernetes") for each in flags]
        moved = [each for each in moved if not each.startswith("--bind-address")] + ["--bind-address=127.0.0.1"]
        if program != "kube-apiserver":
            moved.append(f"--secure-port={free_port()}")
        else:
            moved.append(f"--cert-dir={root}")
        with open(root / f"{program}.log", "ab") as log:
            return subprocess.Popen(
                [str(self.folder / program), *moved], cwd=root, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )


def _await_ready(port: int, root: Path, process: subprocess.Popen[bytes], seconds: float = 90.0) -> None:
    """The readiness probe, as the kubelet asks it: without a certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=context, timeout=5) as answer:
                if answer.status == 200:
                    return
        except urllib.error.HTTPError as error:
            error.close()
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"kube-apiserver is not ready:\n{(root / 'kube-apiserver.log').read_text()[-3000:]}")


def _kill(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in reversed(processes):
        process.kill()
        process.wait()
