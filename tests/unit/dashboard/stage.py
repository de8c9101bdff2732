"""A dashboard of an empty API server, and a logged-in browser without a browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from homeport.api.meta import Resource
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.kinds.pod.log import LogSources
from homeport.client.credential import Static
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Client
from homeport.dashboard.login import log_in
from homeport.dashboard.session import Sessions
from homeport.dashboard.wire.server import Dashboard

BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")


@dataclass
class Clock:
    """Of the sessions, in seconds."""

    now: float = 0.0


@dataclass
class Stage:
    """What the browser knows, and the API server behind it."""

    address: str
    key: str
    cookie: str
    http: aiohttp.ClientSession
    client: Client
    clock: Clock
    logs: LogSources  # of Pods
    sessions: Sessions

    @property
    def origin(self) -> str:
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def headers(self) -> dict[str, str]:
        return {"Origin": self.origin, "Cookie": self.cookie, "X-Homeport-Key": self.key}

    async def send(self, raw: bytes) -> bytes:
        """As it is, on a connection of its own; gives the line of the status."""
        parts = urlsplit(self.address)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            writer.write(raw)
            return await asyncio.wait_for(reader.readline(), 30)
        finally:
            writer.close()
            await writer.wait_closed()

    async def ask(self, body: Any, **headers: str) -> tuple[int, str]:
        async with self.http.post(f"{self.address}request", json=body, headers={**self.headers, **headers}) as answer:
            return answer.status, await answer.text()

    async def connect(self) -> aiohttp.ClientWebSocketResponse:
        socket = await self.http.ws_connect(f"{self.address}stream", headers=self.headers, max_msg_size=0)
        await socket.send_json({"key": self.key})
        assert await socket.receive_json(timeout=30) == {"hello": True}
        return socket


@asynccontextmanager
async def open_stage(tmp_path: Path, way: Callable[[str], Awaitable[str]] | None = None) -> AsyncIterator[Stage]:
    """`way` gives the address at which the dashboard reaches the API server, instead of its own."""
    server = await EmbeddedServer.open(None, PKI.ensure(tmp_path / "pki"))
    url = await server.serve()
    server.pki.write_kubeconfig(tmp_path / "config", url if way is None else await way(url))
    config = load(tmp_path / "config")
    clock = Clock()
    sessions = Sessions(lambda: clock.now)
    dashboard = Dashboard(sessions)
    address = await dashboard.start(replace(config, credential=Static()), "127.0.0.1", 0)
    link, _ = await log_in(config, address)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        origin = {"Origin": address.removesuffix("/dashboard/")}
        async with http.post(f"{address}session", json={"code": link.partition("#code=")[2]}, headers=origin) as answer:
            key, cookie = (await answer.json())["key"], answer.headers["Set-Cookie"].partition(";")[0]
        yield Stage(address, key, cookie, http, server.client(), clock, server.builtin.logs, sessions)
    await dashboard.stop()
    await server.close()


async def receive(socket: aiohttp.ClientWebSocketResponse, number: int) -> dict[str, Any]:
    """The next message of a subscription."""
    while True:
        message: dict[str, Any] = await socket.receive_json(timeout=30)
        if message.get("id") == number:
            return message


BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "sailor"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "name": "sailor", "namespace": "default"}],
}


async def sailor(stage: Stage, tmp_path: Path, *, bound: bool = True) -> Stage:
    """Logged in with the token of a ServiceAccount, which may do everything, or unless it is bound, nothing."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sailor", "namespace": "default"}}
    await stage.client.create(account, kind=ACCOUNTS)
    if bound:
        await stage.client.create(BINDING, kind=BINDINGS)
    admin = load(tmp_path / "config")
    async with HttpClient(admin) as client:
        path = "/api/v1/namespaces/default/serviceaccounts/sailor/token"
        body = b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}'
        token = orjson.loads((await client.raw("POST", path, body)).check(path))["status"]["token"]
    link, _ = await log_in(replace(admin, credential=Static(f"Bearer {token}")), stage.address)
    code = {"code": link.partition("#code=")[2]}
    async with stage.http.post(f"{stage.address}session", json=code, headers={"Origin": stage.origin}) as answer:
        return replace(stage, key=(await answer.json())["key"], cookie=answer.headers["Set-Cookie"].partition(";")[0])
