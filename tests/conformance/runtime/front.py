"""What stands between a client and its server: a proxy on loopback that cuts, stalls, delays and refuses."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

import aiohttp
from aiohttp import web

from homeport.client.config import Config
from homeport.client.credential import Credential, Static
from homeport.client.http import HttpClient

Answer = Callable[[web.BaseRequest], web.Response | None]
_HOP = {"connection", "transfer-encoding", "content-length", "host", "authorization"}


class Front:
    """Speaks HTTP to clients, and to the server as its administrator."""

    def __init__(self, upstream: str, tls: ssl.SSLContext) -> None:
        self._upstream = upstream
        self._tls = tls
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._transports: set[asyncio.BaseTransport] = set()
        self._clients: list[HttpClient] = []
        self.answer: Answer = lambda request: None  # instead of the server, where it gives something
        self.delay = 0.0  # of every piece of an answer to a watch
        self.watches = 0  # that have been opened so far
        self.url = ""
        self._session: aiohttp.ClientSession

    @classmethod
    @asynccontextmanager
    async def open(cls, upstream: str, tls: ssl.SSLContext) -> AsyncIterator[Self]:
        front = cls(upstream, tls)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as front._session:
            server = web.Server(front._handle)
            listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
            front.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
            try:
                yield front
            finally:
                listener.close()
                front.cut()
                for client in front._clients:
                    await client.close()
                await server.shutdown(1.0)

    def client(self, credential: Credential | None = None) -> HttpClient:
        made = HttpClient(Config(self.url, credential or Static()))
        self._clients.append(made)
        return made

    def cut(self) -> None:
        """Every connection breaks, in the middle of whatever it carries."""
        for transport in list(self._transports):
            assert isinstance(transport, asyncio.Transport)
            transport.abort()
        self._transports.clear()

    def stall(self) -> None:
        """Nothing moves, and nobody is told."""
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        self._transports.add(transport)
        try:
            await self._flowing.wait()
            refused = self.answer(request)
            return refused if refused is not None else await self._forward(request)
        except (aiohttp.ClientError, ConnectionError):
            transport.abort()  # the server is gone, or the client
            return web.Response(status=502)
        finally:
            self._transports.discard(transport)

    async def _forward(self, request: web.BaseRequest) -> web.StreamResponse:
        watching = request.query.get("watch") == "true"
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        call = self._session.request(
            request.method,
            f"{self._upstream}{request.path_qs}",
            headers=headers,
            data=await request.read(),
            ssl=self._tls,
        )
        async with call as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
            if not watching or answer.status != 200:
                return web.Response(status=answer.status, headers=kept, body=await answer.read())
            self.watches += 1
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await asyncio.sleep(self.delay)
                await self._flowing.wait()
                await response.write(chunk)
            return response


def refusing(
    code: int, reason: str, *, times: int, retry_after: int = 0, method: str = "PATCH"
) -> tuple[Answer, list[float]]:
    """Answers the first requests of a method with an error; the list tells when they came."""
    came: list[float] = []

    def answer(request: web.BaseRequest) -> web.Response | None:
        if request.method != method or len(came) >= times:
            return None
        came.append(asyncio.get_running_loop().time())
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": reason,
            "message": "not now",
            "code": code,
        }
        headers = {"Retry-After": str(retry_after)} if retry_after else {}
        return web.json_response(body, status=code, headers=headers)

    return answer, came
