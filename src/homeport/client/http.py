"""HttpClient: any Kubernetes API server, over the wire. It, its failures and its WebSockets alone know aiohttp."""

from __future__ import annotations

import asyncio
import io
import ipaddress
import math
import socket
import ssl
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, replace
from typing import Any, TypeVar, Unpack
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from homeport import __version__
from homeport.client.config import USER_AGENT_NAME, Config
from homeport.client.credential import Certificate
from homeport.client.errors import ApiError, NotConnected, Timeout, Unauthorized, Unavailable
from homeport.client.portforward import Stream, forward_path
from homeport.client.protocol import Key, Warnings
from homeport.client.wire import tls
from homeport.client.wire.address import DEFAULT_MANAGER
from homeport.client.wire.failure import BROKEN, UNREACHED, reason_of, tls_reason
from homeport.client.wire.reach import Reach
from homeport.client.wire.rest import JSON, Answer, Form, RestClient
from homeport.client.wire.resumption import forget_sessions
from homeport.client.wire.retry import REFUSED, Retry, retry_after
from homeport.client.wire.warning import parse_warnings
from homeport.client.wire.websocket import Connection, Refused, Socket, refusal
from homeport.machinery.portforward import CHANNEL

CONNECTIONS = 100  # for requests; every watch and log has a connection of its own besides
LARGE_BYTES = 512 * 1024
_READS = frozenset({"GET", "HEAD"})

R = TypeVar("R", bound="Answer | Body | Socket")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. `request` bounds one attempt, its answer included. `idle`: how long an unused connection stays open."""

    connect: float = 10.0
    request: float = 60.0
    idle: float = 60.0


DEFAULT_TIMEOUTS = Timeouts()
DEFAULT_RETRY = Retry()


class _NotSent(Exception):
    """No connection: the server has seen nothing of the request."""


class _Lost(Exception):
    """The connection broke, or the time passed, after the request may have been sent."""


class Body:
    """An answer that comes bit by bit."""

    def __init__(self, response: aiohttp.ClientResponse, what: str, heard: Callable[[], None]) -> None:
        self._response = response
        self._what = what
        self._heard = heard
        self.status = response.status
        self.headers = response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                self._heard()
                yield chunk
        except BROKEN as error:
            raise Unavailable(f"{self._what}: the connection was lost: {reason_of(error)}") from error
        except RuntimeError as error:
            if str(error) != "Connection closed.":  # how aiohttp calls one that went between two reads
                raise
            raise Unavailable(f"{self._what}: the connection was lost") from error

    def close(self) -> None:
        connection = self._response.connection
        transport = None if connection is None else connection.transport
        self._response.close()
        # An aborted stream needs no closing handshake, and the peer may be gone.
        if transport is not None:
            transport.abort()


class HttpTransport:
    """Connections to one server, its credential, and the rules for repeating a request."""

    def __init__(self, config: Config, timeouts: Timeouts, retry: Retry) -> None:
        self.config = config
        self.timeouts = timeouts
        self.retry = retry
        self.warnings = Warnings()
        self.reach = Reach(retry.apart_seconds)
        self._host = urlsplit(config.server).netloc.rpartition("@")[2]  # without a password, for messages
        self._proxy = config.proxy or _system_proxy(config.server)
        # One pool for everything: a request may take the connection of a watch that has just ended.
        self._shared: aiohttp.ClientSession | None = None
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._tls: ssl.SSLContext | bool | None = None
        self._tls_for: tuple[Certificate | None, bytes | None] = (None, None)
        self._authority = tls.Authority(config)
        self._closed = False
        self._rejected: float | None = None  # since when the server accepts our credential no more
        self.answered = -math.inf  # when the server last answered, or sent something in a watch, by the loop's clock

    async def close(self) -> None:
        self._closed = True
        session, self._shared = self._shared, None
        try:
            if session is not None:  # to its end, though the caller is cancelled meanwhile
                await asyncio.shield(session.close())
        finally:
            forget_sessions(self._tls)

    async def send(self, method: str, path: str, body: bytes | None = None, **form: Unpack[Form]) -> Answer:
        sent = {"Accept": form.get("accept", JSON), **(form.get("headers") or {})}
        if body is not None:
            sent["Content-Type"] = form.get("content_type", JSON)
        session = self._session()

        async def once() -> Answer:
            async with self._slots:
                return await self._read(await self._open(session, method, path, body, sent))

        return await self._persist(method, path, once)

    async def stream(self, path: str, *, accept: str = JSON, seconds: float | None = None) -> Body:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.timeouts.connect, sock_read=seconds)
        session = self._session()
        what = f"GET {path.partition('?')[0]} on {self._host}"

        async def once() -> Answer | Body:
            response = await self._open(session, "GET", path, None, {"Accept": accept}, timeout=timeout)
            if response.status != 200:
                return await self._read(response)
            self._note(response)
            return Body(response, what, self._hear)

        answer = await self._persist("GET", path, once)
        if isinstance(answer, Answer):
            raise answer.error(what)
        return answer

    async def connect(self, path: str, protocol: str) -> Socket:
        """A WebSocket that speaks `protocol`. Raises ApiError."""
        connector = self._session().connector
        what = f"GET {path.partition('?')[0]} on {self._host}"

        async def once() -> Answer | Socket:
            headers = await self._authorized({})
            session = self._make_session(connector, refusal)
            try:
                with self._troubles():
                    async with asyncio.timeout(self.timeouts.request):
                        inner = await session.ws_connect(
                            URL(self.config.server + path, encoded=True),
                            protocols=(protocol,),
                            headers=headers,
                            ssl=self._context(),
                            server_hostname=self.config.server_name or None,
                            proxy=self._proxy or None,
                        )
            except Refused as refused:
                return refused.answer
            finally:
                session.detach()  # the WebSocket keeps its connection
            assert isinstance(inner, Connection)
            return Socket(inner, what)

        answer = await self._persist("GET", path, once)
        if isinstance(answer, Answer):
            raise answer.error(what)
        return answer

    @property
    def rejected_seconds(self) -> float:
        """For how long the server has answered nothing but 401; 0 while it accepts our credential."""
        return 0.0 if self._rejected is None else time.monotonic() - self._rejected

    def _hear(self) -> None:
        self.answered = asyncio.get_running_loop().time()

    def _return(self) -> None:
        """Not within the request that was answered, nor in the context of whoever made it."""
        if self.reach.on_return is not None:
            asyncio.get_running_loop().call_soon(self.reach.on_return, context=Context())

    def _judge(self, status: int) -> None:
        if status < 500 and status != 401:
            self._hear()
        if status != 401:
            self._rejected = None
        elif self._rejected is None:
            self._rejected = time.monotonic()

    async def _persist(self, method: str, path: str, once: Callable[[], Awaitable[R]]) -> R:
        attempt, waited, renewed = 1, 0.0, False
        while True:
            last = attempt >= self.retry.attempts
            after = 0
            if refusal := self.reach.refusal(asyncio.get_running_loop().time()):
                raise NotConnected(f"no connection to {self._address()}: {refusal}")
            try:
                answer = await once()
            except _NotSent as error:
                self.reach.miss(asyncio.get_running_loop().time(), str(error))
                if last:
                    raise NotConnected(f"no connection to {self._address()}: {error}") from error.__cause__
            except _Lost as error:
                if last or method not in _READS:
                    raise self._lost(method, path, error) from error.__cause__
            else:
                if self.reach.hit():
                    self._return()
                if answer.status == 401 and not renewed and self.config.credential.renew():
                    renewed = True
                    continue
                self._judge(answer.status)
                if answer.status not in REFUSED or "Retry-After" not in answer.headers or last:
                    return answer
                after = retry_after(answer.headers)
                if waited + after > self.retry.patience_seconds:
                    return answer
            pause = max(after, self.retry.pause(attempt))
            attempt += 1
            waited += pause
            await asyncio.sleep(pause)

    async def _open(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        **more: Any,
    ) -> aiohttp.ClientResponse:
        """One attempt, up to the answer's headers."""
        headers = await self._authorized(headers)
        with self._troubles():
            return await session.request(
                method,
                URL(self.config.server + path, encoded=True),
                # aiohttp writes a large body in pieces only if it can read it like a file.
                data=io.BytesIO(body) if body is not None and len(body) > LARGE_BYTES else body,
                headers=headers,
                ssl=self._context(),
                server_hostname=self.config.server_name or None,
                proxy=self._proxy or None,
                allow_redirects=False,  # the credential is for this server alone
                **more,
            )

    async def _authorized(self, headers: dict[str, str]) -> dict[str, str]:
        try:
            authorization = await self.config.credential.header()
        except Unauthorized:
            self._judge(401)  # there is none to show
            raise
        if authorization:
            headers["Authorization"] = authorization
        return headers

    @contextmanager
    def _troubles(self) -> Iterator[None]:
        """Tells apart what may be repeated and what may not."""
        try:
            yield
        except aiohttp.ClientSSLError as error:
            raise Unavailable(f"TLS with {self._address()} failed: {tls_reason(error)}") from error
        except UNREACHED as error:
            raise _NotSent(reason_of(error)) from error
        except BROKEN as error:
            if self._closed:
                raise self._shut() from error
            raise _Lost(reason_of(error)) from error
        except RuntimeError as error:
            if not self._closed:
                raise
            raise self._shut() from error  # between two attempts
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if not self._closed or task is None or task.cancelling():
                raise
            raise self._shut() from error  # it waited for a connection, which aiohttp reports as a cancellation

    def _shut(self) -> Unavailable:
        return Unavailable(f"the client for {self._address()} is closed")

    async def _read(self, response: aiohttp.ClientResponse) -> Answer:
        try:
            content = await response.read()
        except BROKEN as error:
            raise _Lost(reason_of(error)) from error
        finally:
            response.release()
        self._note(response)
        return Answer(response.status, response.headers, content)

    def _note(self, response: aiohttp.ClientResponse) -> None:
        if "Warning" in response.headers:
            for text in parse_warnings(response.headers.getall("Warning")):
                self.warnings.add(text)

    def _session(self) -> aiohttp.ClientSession:
        if self._closed:
            raise self._shut()
        if self._shared is None:
            idle = self.timeouts.idle
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=idle, socket_factory=_keepalive_socket)
            self._shared = self._make_session(connector)
        return self._shared

    def _make_session(
        self, connector: aiohttp.BaseConnector | None, *middlewares: aiohttp.ClientMiddlewareType
    ) -> aiohttp.ClientSession:
        headers = CIMultiDict({"User-Agent": f"{USER_AGENT_NAME}/{__version__}", "Accept-Encoding": "identity"})
        for name, value in self.config.impersonate.headers():
            headers.add(name, value)
        return aiohttp.ClientSession(
            connector=connector,
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            middlewares=middlewares,
            ws_response_class=Connection,
            timeout=aiohttp.ClientTimeout(total=self.timeouts.request, sock_connect=self.timeouts.connect),
        )

    def _context(self) -> ssl.SSLContext | bool:
        wanted = (self.config.credential.certificate(), self._authority.read())
        if self._tls is None or wanted[0] is not self._tls_for[0] or wanted[1] is not self._tls_for[1]:
            config = replace(self.config, ca=wanted[1])
            forget_sessions(self._tls)
            self._tls = tls.context(config, wanted[0]) if self.config.server.startswith("https://") else True
            self._tls_for = wanted
        return self._tls

    def _address(self) -> str:
        return f"{urlsplit(self.config.server).scheme}://{self._host}"

    def _lost(self, method: str, path: str, error: Exception) -> ApiError:
        what = f"{method} {path.partition('?')[0]} on {self._host}: {error}"
        if method not in _READS:
            return Unavailable(f"{what} after the request was sent; it may have been carried out")
        return Timeout(what) if isinstance(error.__cause__, TimeoutError) else Unavailable(what)


class HttpClient(RestClient):
    """A protocol.Client over HTTP. Use as `async with`, or close it."""

    def __init__(
        self,
        config: Config,
        *,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        retry: Retry = DEFAULT_RETRY,
        field_manager: str = DEFAULT_MANAGER,
    ) -> None:
        self._http = HttpTransport(config, timeouts, retry)
        super().__init__(self._http, field_manager=field_manager)
        self.config = config

    @property
    def rejected_seconds(self) -> float:
        """For how long the server has rejected our credential, without a request that it accepted; 0: it accepts it."""
        return self._http.rejected_seconds

    @property
    def silent_seconds(self) -> float:
        """For how long the server has neither answered nor sent anything in a watch; infinite: it never did."""
        return asyncio.get_running_loop().time() - self._http.answered

    def on_return(self, called: Callable[[], None]) -> None:
        """`called` when the server answers again after attempts to connect failed (see Retry.apart_seconds)."""
        self._http.reach.on_return = called

    async def port_forward(self, key: Key, port: int) -> Stream:
        """A connection to a port of the Pod; each call makes a new one. Raises ApiError or ForwardError."""
        what = f"port {port} of pod {key.namespace}/{key.name}"
        return await Stream.open(await self._http.connect(forward_path(key, port), CHANNEL), port, what)


def _keepalive_socket(info: Any) -> socket.socket:
    """A peer that vanished without a word is noticed after about a minute, also on a silent watch."""
    made = socket.socket(info[0], info[1], info[2])
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _system_proxy(server: str) -> str:
    """As Go does it: HTTPS_PROXY and NO_PROXY count, loopback never goes through a proxy."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if loopback or urllib.request.proxy_bypass(host):
        return ""
    return urllib.request.getproxies().get(parts.scheme, "")
