"""The simulator on HTTPS, and its admin endpoint on plain HTTP. The only module here that knows aiohttp."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

import msgspec
import orjson
import structlog
from aiohttp.web import BaseRequest, Response, Server, ServerRunner, StreamResponse, TCPSite

from homeport.sim.engine.call import Answer, Call, Dropped
from homeport.sim.engine.credential import AdminCredential
from homeport.sim.engine.document import DocumentError
from homeport.sim.engine.fault import parse_faults
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.world import parse_world

log = structlog.get_logger(__name__)

LARGEST_BODY = 16 * 1024 * 1024
_LOOPBACK = {"localhost", "127.0.0.1", "[::1]"}

Handler = Callable[[BaseRequest], Awaitable[StreamResponse]]


class Wire:
    """Serves one Prism, until closed."""

    def __init__(self, prism: Prism) -> None:
        self.prism = prism
        self._runners: list[ServerRunner] = []
        self._ticking: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        prism.core.on_change = self._changed.set

    async def start(self, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext | None = None) -> int:
        """Gives the port."""
        if self._ticking is None:
            self.prism.wake_guests()
            self._ticking = asyncio.create_task(self._tick(), name="prism-clock")
        return await self._serve(self._respond, host, port, tls)

    async def start_admin(self, credential: AdminCredential, port: int = 0) -> int:
        """On loopback alone, and for those who can read the credential's file: it shows keys of machines and changes
        everything."""
        return await self._serve(lambda request: self._admin(request, credential), "127.0.0.1", port, None)

    async def _serve(self, handler: Handler, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        runner = ServerRunner(Server(handler, access_log=None), shutdown_timeout=1.0)
        await runner.setup()
        self._runners.append(runner)
        site = TCPSite(runner, host, port, ssl_context=tls, reuse_address=True)
        await site.start()
        address: tuple[str, int] = runner.addresses[0]
        return address[1]

    async def close(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._ticking
            self._ticking = None
        for runner in self._runners:
            await runner.cleanup()
        self._runners = []

    async def _tick(self) -> None:
        """Things come due though nobody asks: machines boot, tasks end, outages pass."""
        while True:
            self._changed.clear()
            self.prism.settle()
            wait = self._wait()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), wait)

    def _wait(self) -> float | None:
        clock = self.prism.core.clock
        due = self.prism.power.tasks.next_due()
        waits = [edge - clock.monotonic() for edge in self.prism.faults.window_ends()]
        if due is not None:
            waits.append(due - clock.now())
        return max(0.001, min(waits)) if waits else None

    async def _respond(self, request: BaseRequest) -> StreamResponse:
        try:
            call = await _read(request)
        except ValueError as error:
            return _bad_request(request, str(error))
        try:
            answer = await self.prism.respond(call)
        except Dropped:
            if request.transport is not None:
                request.transport.abort()
            return Response(status=500)
        except Exception:
            log.exception("the simulator failed to answer", method=call.method, path=call.path)
            answer = self.prism.refuse(call, 500)
        return _write(answer)

    async def _admin(self, request: BaseRequest, credential: AdminCredential) -> StreamResponse:
        if not _from_here(request):
            return Response(status=403, text="the admin endpoint answers programs on this machine alone\n")
        if request.path.strip("/") != "healthz" and not credential.admits(request.headers.get("Authorization", "")):
            text = f"send the header of the file {credential.path}: curl -H @{credential.path} ...\n"
            return Response(status=401, headers={"WWW-Authenticate": "Bearer"}, text=text)
        try:
            return await _Admin(self.prism).respond(request)
        except (DocumentError, ValueError) as error:
            return Response(status=400, text=f"{error}\n")


class _Admin:
    """World, faults, journal and consoles, to be looked at and changed."""

    def __init__(self, prism: Prism) -> None:
        self._prism = prism

    async def respond(self, request: BaseRequest) -> Response:
        prism = self._prism
        match request.method, request.path.strip("/").split("/"):
            case "GET", [""]:
                return Response(text="GET or PUT /world, GET PUT or POST /faults, DELETE /faults/NAME, GET /journal, "
                                "GET /console/VM, POST /sessions/expire\n")  # fmt: skip
            case "GET", ["healthz"]:
                return Response(text="ok\n")
            case "GET", ["world"]:
                prism.settle()
                return Response(text=prism.world.save(), content_type="application/yaml")
            case "PUT", ["world"]:
                prism.restore(parse_world(await request.read(), "the request"))
                return Response(status=204)
            case "GET", ["journal"]:
                limit = int(dict(parse_qsl(request.query_string)).get("limit", "100"))
                return _json(prism.journal.newest(limit))
            case "GET", ["faults"]:
                return _json(prism.faults.counts)
            case "PUT", ["faults"]:
                prism.power.meet(prism.faults.set(parse_faults(await request.read(), "the request")))
                prism.core.on_change()
                return _json(prism.faults.counts)
            case "POST", ["faults"]:
                added = parse_faults(await request.read(), "the request")
                prism.power.meet([prism.faults.add(fault) for fault in added])
                prism.core.on_change()
                return _json(prism.faults.counts)
            case "DELETE", ["faults"]:
                prism.faults.set(())
                prism.core.on_change()
                return Response(status=204)
            case "DELETE", ["faults", name]:
                found = prism.faults.remove(name)
                prism.core.on_change()
                return Response(status=204 if found else 404)
            case "GET", ["console", vm]:
                return Response(text="".join(f"{line}\n" for line in prism.read_console(vm)))
            case "POST", ["sessions", "expire"]:
                prism.sessions.end_all()
                return Response(status=204)
        return Response(status=404, text="no such page: GET / lists them\n")


async def _read(request: BaseRequest) -> Call:
    raw = await request.read()
    if len(raw) > LARGEST_BODY:
        raise ValueError("the body is too large")
    body = None
    if raw.strip():
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise ValueError(f"the body is not valid JSON: {error}") from error
    return Call(
        method=request.method,
        path=request.rel_url.raw_path,
        query=dict(parse_qsl(request.rel_url.raw_query_string, keep_blank_values=True)),
        headers={name.lower(): value for name, value in request.headers.items()},
        cookies=dict(request.cookies),
        body=body,
        raw_query=request.rel_url.raw_query_string,
        host=request.headers.get("Host", "localhost:9440"),
    )


def _write(answer: Answer) -> Response:
    body = orjson.dumps(answer.body) if answer.body is not None else b""
    response = Response(status=answer.status, body=body, headers=answer.headers)
    if body:
        response.content_type = "application/json"
    for name, (value, seconds) in answer.cookies.items():
        # The time it lasts is the server's to know: a client that keeps it longer is told so by a 401.
        response.set_cookie(
            name, value, path="/", secure=True, httponly=True, samesite="Lax", max_age=int(seconds) or None
        )
    return response


def _bad_request(request: BaseRequest, text: str) -> Response:
    body = {
        "api_version": "3.1",
        "code": 400,
        "state": "ERROR",
        "message_list": [{"message": text, "reason": "BAD_REQUEST"}],
    }
    del request
    return Response(status=400, text=json.dumps(body), content_type="application/json")


def _json(value: object) -> Response:
    return Response(
        body=msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n", content_type="application/json"
    )


def _from_here(request: BaseRequest) -> bool:
    """Not through a name that somebody else points at us, and not from a page in a browser."""
    host = request.headers.get("Host", "").rpartition(":")[0] or request.headers.get("Host", "")
    return host in _LOOPBACK and "Origin" not in request.headers
