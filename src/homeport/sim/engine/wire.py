"""Small HTTP servers of simulators, and their admin endpoint. Knows aiohttp, so that few others have to."""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiohttp.web import BaseRequest, Response, Server, ServerRunner, StreamResponse, TCPSite

from homeport.sim.engine.admin import Admin
from homeport.sim.engine.credential import AdminCredential

_LOOPBACK = {"localhost", "127.0.0.1", "[::1]"}

Handler = Callable[[BaseRequest], Awaitable[StreamResponse]]


class StartError(Exception):
    """Why a simulator of its own process can't start, with what to do."""


@contextmanager
def reported(option: str, value: str) -> Iterator[None]:
    """An address that can't be served is a StartError with its option."""
    try:
        yield
    except OSError as error:
        raise StartError(f"{option} {value}: {listen_problem(error)}; choose another with {option}") from error


def listen_problem(error: OSError) -> str:
    """Why an address can't be served, in words: those of asyncio show its arguments."""
    if error.errno == errno.EADDRINUSE:
        return "the address is already in use"
    known = error.errno in errno.errorcode
    return os.strerror(error.errno or 0) if known else error.strerror or str(error)


class Listeners:
    """Servers that end together."""

    def __init__(self) -> None:
        self._runners: list[ServerRunner] = []

    async def serve(self, handler: Handler, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Gives the port. Raises OSError if it is taken."""
        runner = ServerRunner(Server(handler, access_log=None), shutdown_timeout=1.0)
        await runner.setup()
        self._runners.append(runner)
        site = TCPSite(runner, host, port, ssl_context=tls, reuse_address=True)
        await site.start()
        address: tuple[str, int] = runner.addresses[0]
        return address[1]

    async def serve_admin(self, admin: Admin, credential: AdminCredential, port: int = 0) -> int:
        """On loopback alone, and for those who can read the credential's file: it shows keys of machines and changes
        everything."""
        return await self.serve(lambda request: _answer(admin, request, credential), "127.0.0.1", port, None)

    async def close(self) -> None:
        for runner in self._runners:
            await runner.cleanup()
        self._runners = []


async def _answer(admin: Admin, request: BaseRequest, credential: AdminCredential) -> StreamResponse:
    if not _from_here(request):
        return Response(status=403, text="the admin endpoint answers programs on this machine alone\n")
    if request.path.strip("/") != "healthz" and not credential.admits(request.headers.get("Authorization", "")):
        text = f"send the header of the file {credential.path}: curl -H @{credential.path} ...\n"
        return Response(status=401, headers={"WWW-Authenticate": "Bearer"}, text=text)
    try:
        page = await admin.respond(request.method, request.path, request.query_string, await request.read())
    except ValueError as error:
        return Response(status=400, text=f"{error}\n")
    return Response(status=page.status, text=page.text or None, content_type=page.content_type if page.text else None)


def _from_here(request: BaseRequest) -> bool:
    """Not through a name that somebody else points at us, and not from a page in a browser."""
    host = request.headers.get("Host", "").rpartition(":")[0] or request.headers.get("Host", "")
    return host in _LOOPBACK and "Origin" not in request.headers
