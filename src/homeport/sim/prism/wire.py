"""The simulator on HTTPS, and its admin endpoint on plain HTTP. The only module here that knows aiohttp."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import ssl
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import parse_qsl

import orjson
import structlog
from aiohttp.web import BaseRequest, Response, StreamResponse

from homeport.runtime.task import cancel
from homeport.sim.engine.admin import NO_CONTENT, Admin, Page
from homeport.sim.engine.call import Answer, Call, Dropped
from homeport.sim.engine.credential import AdminCredential
from homeport.sim.engine.fault import TASK_VOCABULARY
from homeport.sim.engine.wire import Listeners
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.world import parse_world

log = structlog.get_logger(__name__)

LARGEST_BODY = 16 * 1024 * 1024
_BYTES = "application/octet-stream"
_PAGES = "GET or PUT /world, GET /console/VM, POST /sessions/expire"


class Wire:
    """Serves one Prism, until closed."""

    def __init__(self, prism: Prism, saved: Callable[[], Awaitable[None]] | None = None) -> None:
        """`saved` returns when the world is on disk: no answer reports what a crash could undo."""
        self.prism = prism
        self._saved = saved
        self._listeners = Listeners()
        self._ticking: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        prism.core.on_change = self._changed.set

    async def start(self, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext | None = None) -> int:
        """Gives the port."""
        if self._ticking is None:
            self.prism.wake_guests()
            self._ticking = asyncio.create_task(self._tick(), name="prism-clock")
        return await self._listeners.serve(self._respond, host, port, tls)

    async def start_admin(self, credential: AdminCredential, port: int = 0) -> int:
        """On loopback alone, and for those who can read the credential's file."""
        return await self._listeners.serve_admin(self.admin, credential, port)

    @property
    def admin(self) -> Admin:
        prism = self.prism
        return Admin(prism.faults, prism.journal, TASK_VOCABULARY, self._faults_changed, self._page, _PAGES)

    def _faults_changed(self, added: Sequence[str]) -> None:
        self.prism.power.meet(added)
        self.prism.core.on_change()

    async def _page(self, method: str, path: list[str], body: bytes) -> Page | None:
        """World, consoles and sessions, to be looked at and changed."""
        prism = self.prism
        match method, path:
            case "GET", ["world"]:
                prism.settle()
                return Page(prism.world.save(), content_type="application/yaml")
            case "PUT", ["world"]:
                prism.restore(parse_world(body, "the request"))
                return NO_CONTENT
            case "GET", ["console", vm]:
                return Page("".join(f"{line}\n" for line in prism.read_console(vm)))
            case "POST", ["sessions", "expire"]:
                prism.sessions.end_all()
                return NO_CONTENT
        return None

    async def close(self) -> None:
        await cancel(self._ticking)
        self._ticking = None
        await self._listeners.close()
        if self.prism.core.downloads is not None:
            await self.prism.core.downloads.close()

    async def _tick(self) -> None:
        """Advances the world without requests: machines boot, tasks end, outages pass."""
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
            if self._saved is not None:
                await self._saved()
        except Dropped:
            if request.transport is not None:
                request.transport.abort()
            return Response(status=500)
        except Exception:
            log.exception("the simulator failed to answer", method=call.method, path=call.path)
            answer = self.prism.refuse(call, 500)
        return _write(answer)


async def _read(request: BaseRequest) -> Call:
    upload = await _read_upload(request) if request.content_type == _BYTES else None
    raw = await request.read() if upload is None else b""
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
        upload=upload,
        raw_query=request.rel_url.raw_query_string,
        host=request.headers.get("Host", "localhost:9440"),
    )


async def _read_upload(request: BaseRequest) -> tuple[int, str]:
    """Of any size: nothing of it is kept."""
    digest, size = hashlib.sha256(), 0
    async for chunk in request.content.iter_chunked(1 << 20):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


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
