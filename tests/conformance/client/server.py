"""The three servers of the client suite: ours in process, ours over HTTP, and a real kube-apiserver."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.config import Config
from homeport.client.credential import Certificate, Static
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from realkube import RealKube


class Server(Protocol):
    name: str

    def client(self) -> Any:
        """A client with all rights."""

    def as_user(self, user: str, groups: Sequence[str] = ()) -> HttpClient:
        """A client that RBAC applies to."""

    async def forget(self) -> None:
        """Drop the history up to now: older versions are gone, and watches that are open may be cut."""


class Ours:
    """The embedded server, without controllers, as the real one runs here."""

    def __init__(self, name: str, server: EmbeddedServer) -> None:
        self.name = name
        self._server = server

    def client(self) -> Any:
        if self.name == "local":
            return self._server.client()
        return self.as_user("kubernetes-admin", ["system:masters"])

    def as_user(self, user: str, groups: Sequence[str] = ()) -> HttpClient:
        issued = self._server.pki.issue_client(user, groups)
        credential = Static(cert=Certificate(issued.certificate, issued.key))
        return HttpClient(Config(self._server.url, credential, self._server.pki.ca_pem))

    async def forget(self) -> None:
        await self._server.store.compact(self._server.store.revision)


class Real:
    name = "real"

    def __init__(self, kube: RealKube) -> None:
        self._kube = kube

    def client(self) -> HttpClient:
        return HttpClient(load(self._kube.kubeconfig))

    def as_user(self, user: str, groups: Sequence[str] = ()) -> HttpClient:
        path = self._kube.write_kubeconfig(user.replace(":", "-"), self._kube.issue(user, groups))
        return HttpClient(load(path))

    async def forget(self) -> None:
        code, body = self._kube.request("/api/v1/namespaces?limit=1")
        assert code == 200, body
        self._kube.compact(int(json.loads(body)["metadata"]["resourceVersion"]))
        self._kube.restart_apiserver()  # it keeps history in memory, whatever etcd forgets


@asynccontextmanager
async def start(name: str, folder: Path) -> AsyncIterator[Server]:
    if name == "real":
        with RealKube() as kube:
            yield Real(kube)
        return
    if name not in ("local", "http"):
        raise ValueError(f"no such server: {name}")
    server = await EmbeddedServer.open(folder / "homeport.db", PKI.ensure(folder / "pki"))
    try:
        if name == "http":
            await server.serve()
        yield Ours(name, server)
    finally:
        await server.close()
