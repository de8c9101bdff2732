"""Serves the page, logs users in, forwards their requests and opens their streams."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from http.cookies import CookieError, SimpleCookie
from typing import Any

import msgspec
import orjson
import structlog
from aiohttp.web import BaseRequest, Response, Server, StreamResponse

from homeport.client.config import Config
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.errors import ApiError
from homeport.dashboard.errand.catalog import READING, Asked, do_errand
from homeport.dashboard.errand.run import ErrandError, Errands
from homeport.dashboard.forward import Forwarded, ForwardError
from homeport.dashboard.guard import Guard
from homeport.dashboard.handover import HandOver, config_of, user_of
from homeport.dashboard.page import BASE, HEADERS, load
from homeport.dashboard.person import Person
from homeport.dashboard.session import CODE_SECONDS, Login, Session, Sessions
from homeport.dashboard.wire.stream import serve_stream

log = structlog.get_logger(__name__)

COOKIE = "homeport-dashboard"
KEY_HEADER = "X-Homeport-Key"
_MOST_BYTES = 4 * 1024 * 1024
_SWEEP_SECONDS = 60.0
REJECTED = "the API server no longer accepts your credential"
_ONCE = ("Host", "Origin", "Sec-Fetch-Site", "Cookie", "Content-Type", KEY_HEADER)  # which of two would count?


class Refused(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Dashboard:
    """Serves one API server to any number of users. It has no credential of its own."""

    def __init__(self, sessions: Sessions | None = None) -> None:
        self._base: Config | None = None
        self._sessions = Sessions() if sessions is None else sessions
        self._people: dict[Session, Person] = {}
        self._files = load()
        self._errands = Errands()
        self._guard: Guard | None = None
        self._http: Server | None = None
        self._server: asyncio.Server | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None

    async def start(
        self,
        base: Config,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        names: frozenset[str] = frozenset(),
        *,
        dial: DialOptions = DIRECT,
        forwarded: bool = False,
    ) -> str:
        """Gives the address. `base` says where the API server is, `dial` how to reach hypervisors. `host` '*': all
        addresses; `names` and `forwarded` as for Guard. Raises OSError when the port is taken."""
        self._base = base
        self._errands = Errands(dial)
        self._http = Server(self._serve, access_log=None, logger=_quiet_logger(), keepalive_timeout=75.0)
        self._server = await asyncio.get_running_loop().create_server(
            self._http, None if host == "*" else host, port, ssl=tls
        )
        port = int(self._server.sockets[0].getsockname()[1])
        scheme = "http" if tls is None else "https"
        self._guard = Guard(scheme, host, port, names, forwarded=forwarded)
        self._sweeper = asyncio.create_task(self._sweep())
        shown = f"[{host}]" if ":" in host else host
        return f"{scheme}://{shown}:{port}{BASE}"

    async def stop(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._server is not None:
            self._server.close()
        self._sessions.end_all("the plane was stopped, and sessions end with it")
        await asyncio.gather(*self._ending, return_exceptions=True)
        if self._http is not None:
            await self._http.shutdown(0.2)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self._sessions.sweep()

    async def _serve(self, request: BaseRequest) -> StreamResponse:
        try:
            return await self._answer(request)
        except Refused as refused:
            return _json(refused.code, {"message": str(refused)})
        except ApiError as error:
            return _json(502 if error.http_code >= 500 else error.http_code, {"message": str(error)})
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a request of the dashboard failed", path=request.path)
            return _json(500, {"message": "the dashboard failed: see the log of the plane"})

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        assert self._guard is not None
        for name in _ONCE:
            if len(request.headers.getall(name, ())) > 1:
                raise Refused(400, f"the request has more than one {name}")
        if request.path == BASE + "login" and request.method == "POST":
            self._refuse(self._guard.refusal_of_login(request.headers))
            return await self._log_in(request)
        socket = request.path == BASE + "stream"
        self._refuse(self._guard.refusal(request.method, request.headers, socket=socket))
        if request.path in ("/", "/dashboard"):
            return Response(status=308, headers={**HEADERS, "Location": BASE})
        if not request.path.startswith(BASE):
            raise Refused(404, "there is nothing here: the dashboard is at /dashboard/")
        name = request.path.removeprefix(BASE)
        action = self._actions().get((request.method, name))
        return await action(request) if action is not None else self._file(request, name)

    def _actions(self) -> dict[tuple[str, str], Callable[[BaseRequest], Awaitable[StreamResponse]]]:
        return {
            ("POST", "session"): self._begin,
            ("GET", "session"): self._who,
            ("DELETE", "session"): self._end,
            ("POST", "request"): self._forward,
            ("POST", "errand"): self._errand,
            ("GET", "stream"): self._stream,
        }

    @staticmethod
    def _refuse(why: str) -> None:
        if why:
            raise Refused(403, why)

    def _file(self, request: BaseRequest, name: str) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, f"{request.method} is not possible here")
        file = self._files.get(name)
        if file is None:
            raise Refused(404, f"there is no {name!r} here")
        headers = {**HEADERS, "Content-Type": file.type, "ETag": file.tag, "Vary": "Accept-Encoding"}
        if request.headers.get("If-None-Match") == file.tag:
            return Response(status=304, headers=headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return Response(body=file.packed, headers={**headers, "Content-Encoding": "gzip"})
        return Response(body=file.plain, headers=headers)

    # -- who asks ----------------------------------------------------------------------------------------------

    async def _log_in(self, request: BaseRequest) -> Response:
        try:
            given = msgspec.json.decode(await _read(request), type=HandOver)
        except msgspec.MsgspecError:
            raise Refused(400, "expected the credential of a kubeconfig") from None
        assert self._base is not None
        config = config_of(self._base, given)
        user = await user_of(config)
        if not user or user == "system:anonymous":
            raise Refused(401, "the API server does not know this credential")
        return _json(200, {"code": self._sessions.offer(Login(user, config)), "user": user, "seconds": CODE_SECONDS})

    async def _begin(self, request: BaseRequest) -> Response:
        try:
            code = str(orjson.loads(await _read(request))["code"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise Refused(400, "expected a code") from None
        session = self._sessions.redeem(code)
        if session is None:
            raise Refused(401, "this link was used already, or is older than a minute: run `homeport dashboard` again")
        self._welcome(session)
        answer = _json(200, {"key": session.key, **_identity(session)})
        secure = "; Secure" if request.headers["Origin"].startswith("https:") else ""  # the guard has checked it
        attributes = f"Path={BASE}; HttpOnly; SameSite=Strict{secure}"
        answer.headers["Set-Cookie"] = f"{_cookie(request)}={session.cookie}; {attributes}"
        return answer

    def _welcome(self, session: Session) -> None:
        def rejected() -> None:
            self._sessions.end(session, REJECTED)

        person = self._people[session] = Person(session.login.config, rejected)

        def leave() -> None:
            self._people.pop(session, None)
            self._errands.forget(person)
            ending = asyncio.get_running_loop().create_task(person.close())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

        session.ending.append(leave)

    def _session(self, request: BaseRequest, key: str | None = None) -> Session:
        try:
            cookies = SimpleCookie(request.headers.get("Cookie", ""))
        except CookieError:
            cookies = SimpleCookie()
        name = _cookie(request)
        cookie = cookies[name].value if name in cookies else ""
        session = self._sessions.find(cookie, request.headers.get(KEY_HEADER, "") if key is None else key)
        if session is None:
            raise Refused(401, "you are not logged in: run `homeport dashboard`")
        return session

    async def _who(self, request: BaseRequest) -> Response:
        return _json(200, _identity(self._session(request)))

    async def _end(self, request: BaseRequest) -> Response:
        self._sessions.end(self._session(request), "you logged out")
        answer = _json(200, {})
        answer.headers["Set-Cookie"] = f"{_cookie(request)}=; Path={BASE}; HttpOnly; SameSite=Strict; Max-Age=0"
        return answer

    # -- what they do ------------------------------------------------------------------------------------------

    async def _forward(self, request: BaseRequest) -> Response:
        session = self._session(request)
        person = self._people[session]
        try:
            asked = msgspec.json.decode(await _read(request), type=Forwarded)
            asked.check()
        except (msgspec.MsgspecError, ForwardError) as error:
            raise Refused(400, str(error)) from None
        body = asked.body.encode() if asked.body else None
        answer = await person.client.raw(
            asked.method, asked.path, body, content_type=asked.content_type, accept=asked.accept
        )
        if answer.status == 401:
            self._sessions.end(session, REJECTED)
            return _json(401, {"message": REJECTED, "ended": REJECTED})
        headers = {**HEADERS, "Content-Type": "application/json", "Cache-Control": "no-store"}
        headers["X-Homeport-Status"] = str(answer.status)
        if warning := answer.headers.get("Warning"):
            headers["X-Homeport-Warning"] = warning
        return Response(body=answer.body, headers=headers)

    async def _errand(self, request: BaseRequest) -> Response:
        session = self._session(request)
        try:
            asked = msgspec.json.decode(await _read(request), type=Asked)
            work = do_errand(asked, self._people[session], session.login.config, self._errands)
            result = await (_while_wanted(request, work) if asked.errand in READING else work)
        except msgspec.MsgspecError as error:
            raise Refused(400, str(error)) from None
        except (ErrandError, ApiError) as error:
            return _json(200, {"problem": str(error)})
        return _json(200, {"result": result})

    async def _stream(self, request: BaseRequest) -> StreamResponse:
        def log_in(key: str) -> tuple[Session, Person]:
            session = self._session(request, key)
            return session, self._people[session]

        return await serve_stream(request, log_in)


async def _while_wanted(request: BaseRequest, work: Coroutine[Any, Any, Any]) -> Any:
    """Ends the work when the browser has left: a process must not go on for nobody."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait([task], timeout=1.0))[0]:
            if request.transport is None or request.transport.is_closing():
                raise ErrandError("the browser has left")
    finally:
        task.cancel()
    return task.result()


def _cookie(request: BaseRequest) -> str:
    """Its name has the port: browsers send cookies to every port of a host, and another plane there has its own."""
    port = request.headers["Host"].rpartition(":")[2]  # the guard has checked it
    return f"{COOKIE}-{port}" if port.isdecimal() else COOKIE


def _identity(session: Session) -> dict[str, str]:
    return {"user": session.login.user, "namespace": session.login.config.namespace}


async def _read(request: BaseRequest) -> bytes:
    if (request.content_length or 0) > _MOST_BYTES:
        raise Refused(413, f"the request is larger than {_MOST_BYTES} bytes")
    if request.headers.get("Content-Type", "").partition(";")[0] != "application/json":
        raise Refused(415, "expected application/json")
    content = bytearray()
    async for chunk in request.content.iter_any():
        content += chunk
        if len(content) > _MOST_BYTES:
            raise Refused(413, f"the request is larger than {_MOST_BYTES} bytes")
    return bytes(content)


def _json(code: int, content: object) -> Response:
    headers = {**HEADERS, "Content-Type": "application/json", "Cache-Control": "no-store"}
    return Response(status=code, body=orjson.dumps(content), headers=headers)


def _quiet_logger() -> logging.Logger:
    """aiohttp reports what peers do wrong as errors of ours."""
    made = logging.getLogger("homeport.dashboard.http")
    made.addHandler(logging.NullHandler())
    made.propagate = False
    return made
