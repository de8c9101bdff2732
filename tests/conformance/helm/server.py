"""Clusters that real Helm and Homeport work on together: the embedded server, and a real kube-apiserver."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homeport.api.meta import Resource
from homeport.client.config import Config
from homeport.client.credential import Certificate, Static
from homeport.client.errors import ApiError, NotFound
from homeport.client.http import HttpClient
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.helm.release.operation import Outcome
from homeport.helm.release.releases import Releases
from homeport.runtime.clock import SystemClock
from homeport.runtime.testing import plane
from realhelm import Helm
from realkube import RealKube

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
JOB = Resource("batch", "v1", "Job", "jobs")
NOW = "2026-01-01T00:00:00Z"


@dataclass
class Server:
    """One cluster, in which the test has a namespace."""

    client: Client
    kubeconfig: Path
    namespace: str

    @property
    def releases(self) -> Releases:
        return Releases(self.client, SystemClock())

    def helm(self, helm: Helm) -> Helm:
        return Helm(helm.program, helm.home, self.kubeconfig)

    async def names(self, kind: Resource = CONFIG_MAP) -> set[str]:
        listed = await self.client.list(kind, Query(namespace=self.namespace))
        return {each.name for each in listed.items if each.name != "kube-root-ca.crt"}

    async def data(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.client.get(CONFIG_MAP, Key(self.namespace, name))).get("data") or {}
        return found

    async def exists(self, kind: Resource, name: str) -> bool:
        try:
            await self.client.get(kind, Key(self.namespace, name))
        except NotFound:
            return False
        return True

    async def until_done(self, call: Any) -> Outcome:
        """Jobs end by themselves (see `finishing`); each call gives way to what ends them."""
        async with asyncio.timeout(60):
            while True:
                outcome: Outcome = await call()
                if outcome.wait is None:
                    return outcome
                await self._change()

    async def _change(self) -> None:
        """Waits until something happens to a Job."""
        async with self.client.watch(JOB, Query(namespace=self.namespace), timeout=2) as events:
            async for event in events:
                if event.type in ("MODIFIED", "DELETED"):
                    return


@asynccontextmanager
async def finishing(client: Client, namespace: str) -> AsyncIterator[list[str]]:
    """Completes every Job that appears, as its controller would. Gives their names."""
    done: list[str] = []

    async def finish() -> None:
        async with client.watch(JOB, Query(namespace=namespace), initial_events=True) as events:
            async for event in events:
                if event.type != "ADDED":
                    continue
                conditions = [
                    {"type": kind, "status": "True", "lastTransitionTime": NOW, "lastProbeTime": NOW}
                    for kind in ("SuccessCriteriaMet", "Complete")
                ]
                status = {"conditions": conditions, "startTime": NOW, "completionTime": NOW, "succeeded": 1}
                done.append(event.object.name)
                with contextlib.suppress(ApiError):
                    key = Key(namespace, event.object.name)
                    await client.patch(JOB, key, MergePatch({"status": status}), subresource="status")

    task = asyncio.create_task(finish())
    try:
        yield done
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def write_kubeconfig(folder: Path, server: str, ca: bytes, cert: bytes, key: bytes, namespace: str) -> Path:
    for name, content in (("ca.crt", ca), ("user.crt", cert), ("user.key", key)):
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(content)
    user = {"client-certificate": str(folder / "user.crt"), "client-key": str(folder / "user.key")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": str(folder / "ca.crt")}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
        "current-context": "c",
    }
    path = folder / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


@asynccontextmanager
async def embedded(folder: Path, namespace: str) -> AsyncIterator[Server]:
    async with plane(serve=True) as made:
        pki = made.server.pki
        issued = pki.issue_client("kubernetes-admin", ("system:masters",))
        path = write_kubeconfig(folder, made.server.url, pki.ca_pem, issued.certificate, issued.key, namespace)
        client = made.http()
        await create_namespace(client, namespace)
        yield Server(client, path, namespace)


@asynccontextmanager
async def real(kube: RealKube, folder: Path, namespace: str) -> AsyncIterator[Server]:
    cert, key, ca = kube.cert.read_bytes(), kube.key.read_bytes(), kube.ca.read_bytes()
    path = write_kubeconfig(folder, kube.url, ca, cert, key, namespace)
    client = HttpClient(Config(kube.url, Static(cert=Certificate(cert, key)), ca))
    try:
        await create_namespace(client, namespace)
        yield Server(client, path, namespace)
    finally:
        await client.close()


async def create_namespace(client: Client, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(body, Write(), kind=NAMESPACE)
