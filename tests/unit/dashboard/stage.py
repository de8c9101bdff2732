"""A dashboard of an empty API server, and a logged-in browser without a browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.credential import Static
from homeport.client.kubeconfig import load
from homeport.client.protocol import Client
from homeport.dashboard.login import log_in
from homeport.dashboard.session import Sessions
from homeport.dashboard.wire.server import Dashboard


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
async def open_stage(tmp_path: Path) -> AsyncIterator[Stage]:
    server = await EmbeddedServer.open(None, PKI.ensure(tmp_path / "pki"))
    server.pki.write_kubeconfig(tmp_path / "config", await server.serve())
    config = load(tmp_path / "config")
    clock = Clock()
    dashboard = Dashboard(Sessions(lambda: clock.now))
    address = await dashboard.start(replace(config, credential=Static()), "127.0.0.1", 0)
    link, _ = await log_in(config, address)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        origin = {"Origin": address.removesuffix("/dashboard/")}
        async with http.post(f"{address}session", json={"code": link.partition("#code=")[2]}, headers=origin) as answer:
            key, cookie = (await answer.json())["key"], answer.headers["Set-Cookie"].partition(";")[0]
        yield Stage(address, key, cookie, http, server.client(), clock)
    await dashboard.stop()
    await server.close()


async def receive(socket: aiohttp.ClientWebSocketResponse, number: int) -> dict[str, Any]:
    """The next message of a subscription."""
    while True:
        message: dict[str, Any] = await socket.receive_json(timeout=30)
        if message.get("id") == number:
            return message
