"""A server that answers as a test tells it to, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

Behaviour = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Peer:
    """Answers requests in turn with `script`; the last entry answers all that follow."""

    url: str = ""
    script: list[Behaviour] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        asked = Asked(request.method, request.path, dict(request.query), dict(request.headers), body)
        self.asked.append(asked)
        behaviour = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return await behaviour(request)  # type: ignore[arg-type]

    def says(self, *behaviours: Behaviour) -> None:
        self.script = list(behaviours)


@asynccontextmanager
async def serving(port: int = 0) -> AsyncIterator[Peer]:
    made = Peer()
    runner = web.ServerRunner(web.Server(made.answer), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


def json(content: Any, status: int = 200, **headers: str) -> Behaviour:
    async def behaviour(request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=orjson.dumps(content), status=status, headers=named, content_type="application/json")

    return behaviour


def failure(code: int, reason: str = "", message: str = "no", **headers: str) -> Behaviour:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
    return json({**status, **({"reason": reason} if reason else {})}, code, **headers)


def hang_up() -> Behaviour:
    """The request has come, the answer never does."""

    async def behaviour(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        await asyncio.sleep(0)
        return web.Response()

    return behaviour


def stream(*chunks: bytes, cut: bool = False, then: asyncio.Event | None = None) -> Behaviour:
    """The body in pieces. `cut` breaks the connection after them; `then` keeps it open until it is set."""

    async def behaviour(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if then is not None:
            await then.wait()
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return behaviour
