"""The servers of the runtime suite: ours in process, ours over HTTP, a real kube-apiserver. Each can restart and forget."""

from __future__ import annotations

import asyncio
import json
import ssl
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from conformance.runtime.front import Front
from conformance.runtime.sample import WIDGETS
from homeport.api.meta import Resource
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Key, Query
from homeport.runtime.manager import Manager
from homeport.runtime.testing import establish
from realkube import RealKube

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
WAIT_SECONDS = 90.0


class World(Protocol):
    name: str
    client: Any
    """A client with all rights. After `restart` it may be another one."""

    async def restart(self) -> None:
        """The server goes away in the middle of everything and comes back with its data."""

    async def forget(self) -> None:
        """Older versions than now are gone."""

    def front(self) -> AbstractAsyncContextManager[Front]:
        """A proxy to it. Skips the test where there is no wire."""

    def kubeconfig(self) -> Path:
        """For another process. Skips the test where none can reach the server."""


class Local:
    name = "local"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pki = PKI.ensure(folder / "pki")

    async def start(self) -> None:
        self.server = await EmbeddedServer.open(self._folder / "homeport.db", self._pki)
        self.client: Any = self.server.client()

    async def stop(self) -> None:
        await self.server.close(drain_seconds=0.1)

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def forget(self) -> None:
        await self.server.store.compact(self.server.store.revision)

    def front(self) -> AbstractAsyncContextManager[Front]:
        pytest.skip("in process there is no wire")

    def kubeconfig(self) -> Path:
        pytest.skip("no other process reaches a server without a port")


class Http(Local):
    name = "http"
    _port = 0

    async def start(self) -> None:
        self.server = await EmbeddedServer.open(self._folder / "homeport.db", self._pki)
        self.url = await self.server.serve(port=self._port)
        if not self._port:
            self._port = int(self.url.rpartition(":")[2])
            self.client = HttpClient(load(self.kubeconfig()))

    def front(self) -> AbstractAsyncContextManager[Front]:
        return Front.open(self.url, self._pki.client_context(self._pki.admin_path))

    def kubeconfig(self) -> Path:
        path = self._folder / "kubeconfig"
        self._pki.write_kubeconfig(path, self.url)
        return path


class Real:
    name = "real"

    def __init__(self, kube: RealKube) -> None:
        self._kube = kube
        self.client: Any = HttpClient(load(kube.kubeconfig))

    async def restart(self) -> None:
        await asyncio.to_thread(self._kube.restart_apiserver)

    async def forget(self) -> None:
        code, body = await asyncio.to_thread(self._kube.request, "/api/v1/namespaces?limit=1")
        assert code == 200, body
        self._kube.compact(int(json.loads(body)["metadata"]["resourceVersion"]))
        await self.restart()  # it keeps history in memory, whatever etcd forgets

    def front(self) -> AbstractAsyncContextManager[Front]:
        tls = ssl.create_default_context(cafile=str(self._kube.ca))
        tls.load_cert_chain(self._kube.cert, self._kube.key)
        return Front.open(self._kube.url, tls)

    def kubeconfig(self) -> Path:
        return self._kube.kubeconfig


@asynccontextmanager
async def open_world(name: str, folder: Path) -> AsyncIterator[World]:
    if name == "real":
        with RealKube() as kube:
            real = Real(kube)
            await establish(real.client, WIDGETS)
            yield real
            await real.client.close()
        return
    ours = {"local": Local, "http": Http}[name](folder)
    await ours.start()
    try:
        await establish(ours.client, WIDGETS)
        yield ours
    finally:
        await ours.client.close()
        await ours.stop()


async def fresh_namespace(world: World) -> str:
    name = f"r-{uuid.uuid4().hex[:8]}"
    await world.client.create({"metadata": {"name": name}}, kind=NAMESPACE)
    return name


@asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[Manager]:
    """The manager works while the block does; what it died of is raised."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run(), name="manager")
        async with asyncio.timeout(WAIT_SECONDS):
            await manager.ready.wait()
        yield manager
        task.cancel()


async def until(
    client: Any, kind: Any, key: Key, predicate: Callable[[Any], bool], seconds: float = WAIT_SECONDS
) -> Any:
    """By watch, as long as it takes, up to a limit."""
    query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")
    last: Any = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                async with client.watch(kind, query, initial_events=True) as events:
                    async for event in events:
                        if event.type in ("ADDED", "MODIFIED"):
                            last = event.object
                            if predicate(last):
                                return last
    except TimeoutError:
        raise AssertionError(f"{key}: not within {seconds} s; last seen: {last}") from None
