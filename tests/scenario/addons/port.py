"""Many small workload clusters: API servers in this process, without machines, behind lines that can be cut.

A process is one life: it ends right after its last write, to whichever server that was.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from homeport import addons
from homeport.addons.definition import definitions as addon_definitions
from homeport.apiserver.embedded import EmbeddedServer
from homeport.capi.capi import Capi
from homeport.capi.chartsettings import ChartSettings
from homeport.capi.definition.kind import definitions
from homeport.client.errors import Unavailable
from homeport.client.protocol import Client
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, plane, shared_pki
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from scenario.capi.fault import WRITES

_EVENTS = ("Event",)


class Life:
    """How many writes a process may still do. 0 from the start: it does not end."""

    def __init__(self, writes: int) -> None:
        self.mortal = writes > 0
        self.left = writes
        self.over = asyncio.Event()

    def check(self) -> None:
        if self.mortal and self.left == 0:
            raise Unavailable("this process was killed")

    def last_write(self) -> None:
        if self.mortal:
            self.left -= 1
            if self.left == 0:
                self.over.set()
        self.check()


class Line:
    """The way to one server."""

    def __init__(self) -> None:
        self.cut = asyncio.Event()
        self.watchable = asyncio.Event()  # cleared: watches begin only when it is set again
        self.watchable.set()


class Wire:
    """A client of one life and one line."""

    def __init__(self, inner: Client, life: Life, line: Line, server: EmbeddedServer) -> None:
        self._inner, self._life, self._line, self._server = inner, life, line, server

    @asynccontextmanager
    async def watch(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        await self._line.watchable.wait()
        async with self._inner.watch(*args, **kwargs) as events:
            yield events

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in (*WRITES, "get", "list"):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._life.check()
            if self._line.cut.is_set():
                raise Unavailable("the line is cut")
            before = self._server.store.revision
            made = await found(*args, **kwargs)
            kind = kwargs.get("kind")
            told = getattr(kind, "kind", "") in _EVENTS
            if name in WRITES and self._server.store.revision != before and not told:
                self._life.last_write()
            self._life.check()
            return made

        return call


class Port:
    def __init__(self, p: Plane) -> None:
        self.plane = p
        self.client = p.client
        self.life = Life(0)
        self.servers: dict[str, EmbeddedServer] = {}
        self.lines: dict[str, Line] = {}

    def of(self, cluster: str) -> Client:
        """What a user of the workload cluster has."""
        return self.servers[cluster].client(field_manager="user")

    async def open(self, *names: str, **labels: str) -> None:
        for name in names:
            self.servers[name] = await EmbeddedServer.open(None, shared_pki(), clock=self.plane.clock.now)
            self.lines[name] = Line()
            await self.plane.have(*cluster(name, **labels))

    async def start(self, writes: int = 0) -> None:
        """A new process, with nothing but what is in the APIs."""
        await self.plane.stop()
        self.life = Life(writes)
        manager = Manager(
            Wire(self.plane.server.client(), self.life, Line(), self.plane.server), clock=self.plane.clock
        )
        self.plane.manager = manager
        addons.install(Capi.make(manager, connect=self._connect), ChartSettings(simulated=True))
        await self.plane.start()

    def _connect(self, kubeconfig: bytes, proxy: str, /) -> Client:
        name = kubeconfig.decode()
        server = self.servers[name]
        made: Any = Wire(server.client(), self.life, self.lines[name], server)
        return made  # type: ignore[no-any-return]

    async def died(self, within: float) -> bool:
        try:
            async with asyncio.timeout(within):
                await self.life.over.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        await self.plane.stop()
        for server in self.servers.values():
            await server.close(drain_seconds=0.0)


def cluster(name: str, **labels: str) -> list[dict[str, Any]]:
    infra = {"apiGroup": "provider.example.com", "kind": "FakeCluster", "name": name}
    return [
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": name, "labels": labels},
            "spec": {"infrastructureRef": infra},
            "status": {"initialization": {"infrastructureProvisioned": True}},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{name}-kubeconfig", "labels": {"cluster.x-k8s.io/cluster-name": name}},
            "stringData": {"value": name},
        },
    ]


@asynccontextmanager
async def port() -> AsyncIterator[Port]:
    async with plane(crds=[*definitions(), *addon_definitions()]) as p:
        hooks = Hooks()
        addons.register(hooks)
        install_hooks(hooks, p.server)
        made = Port(p)
        try:
            yield made
        finally:
            await made.close()
