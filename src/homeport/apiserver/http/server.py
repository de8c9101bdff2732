"""The API server's front door: connections in, one fixed order of checks for every request, and a clean way out.

Order: request id > path > authentication > audit > impersonation > in-flight limit > authorisation > verb.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import perf_counter, time
from typing import Protocol

import msgspec
import structlog
from aiohttp.web import BaseRequest, StreamResponse

from homeport.apiserver.audit import AuditLog
from homeport.apiserver.auth.decision import Attributes, forbidden
from homeport.apiserver.auth.impersonation import impersonate
from homeport.apiserver.auth.rbac.rbac import CHANGES_PATH, Rbac
from homeport.apiserver.auth.token.serviceaccount import ServiceAccounts
from homeport.apiserver.discovery import Document
from homeport.apiserver.http.auditing import entry_of
from homeport.apiserver.http.connect import Connectors
from homeport.apiserver.http.connection import Connection, ConnectionLimits, ConnectionServer
from homeport.apiserver.http.descriptor import most_connections, raise_limit
from homeport.apiserver.http.exchange import AUTHORIZATION, Exchange
from homeport.apiserver.http.health import Health
from homeport.apiserver.http.limit import InFlight
from homeport.apiserver.http.query import check_timeout
from homeport.apiserver.http.respond import reply_error
from homeport.apiserver.http.root import Root
from homeport.apiserver.http.storage import StoreCheck, StoreCollector
from homeport.apiserver.http.verb import Verbs
from homeport.apiserver.http.watch import OpenStream, Watches
from homeport.apiserver.metrics import Metrics
from homeport.apiserver.name import path_segment
from homeport.apiserver.registry import Registry
from homeport.apiserver.request import ANONYMOUS, User
from homeport.apiserver.trail import Trail
from homeport.client.errors import ApiError, BadRequest, Internal, Timeout
from homeport.machinery.selector import SelectorError, parse_fields

log = structlog.get_logger(__name__)

REQUEST_SECONDS = 60.0
_GOODBYE_SECONDS = 0.25  # how long closing TLS connections may take
_HEADER_BYTES = 64 * 1024
_LONG = frozenset(("log", "exec", "attach", "portforward", "proxy"))


Answer = StreamResponse
Dispatch = Callable[[Exchange], Awaitable[Answer]]
# Stands before every request whose user is known, and passes it on or not: simulators inject their faults there.
Gate = Callable[[Exchange, Dispatch], Awaitable[Answer]]


class Authenticate(Protocol):
    """What auth.authn.Authenticator is to us."""

    async def authenticate(self, *, peer_cert: bytes | None, authorization: str) -> User | None: ...


class HttpServer:
    """`rbac` None: everybody may do everything. `accounts` publish the keys of their tokens."""

    def __init__(
        self,
        registry: Registry,
        authenticator: Authenticate,
        rbac: Rbac | None,
        *,
        metrics: Metrics | None = None,
        health: Health | None = None,
        limits: InFlight | None = None,
        audit: AuditLog | None = None,
        trail: Trail | None = None,
        accounts: ServiceAccounts | None = None,
        connections: ConnectionLimits | None = None,
        bookmark_seconds: float = 60.0,
    ) -> None:
        self.metrics = metrics or Metrics()
        self.health = health or Health()
        self.gate: Gate | None = None
        self._authenticator = authenticator
        self._rbac = rbac
        self._audit = audit
        self._limits = limits or InFlight()
        self._connection_limits = connections or ConnectionLimits()
        self.watches = Watches(registry, self.metrics, bookmark_seconds=bookmark_seconds)
        self._connectors = Connectors(self.metrics)
        self._verbs = Verbs(registry, self.watches, self._connectors, self._authorize_creation, trail)
        self.root = Root(registry.catalog, self.health, self.metrics, accounts)
        if trail is not None:
            self.root.mount(lambda exchange: self._changes(exchange, trail), lambda: (CHANGES_PATH,))
        self._server: asyncio.Server | None = None
        self._http: ConnectionServer | None = None
        self._tls: ssl.SSLContext | None = None
        self._draining = False
        self._idle: asyncio.Event | None = None
        self._open = 0
        self.metrics.gauge(
            "apiserver_current_inflight_requests", "Requests under way.", "request_kind", self._limits.read
        )
        self.metrics.gauge("homeport_http_connections", "Open connections.", "", lambda: {"": self.connections})
        self.metrics.registry.register(StoreCollector(registry.store))
        self.health.add("store", StoreCheck(registry.store))
        self.health.add("shutdown", lambda: "process is shutting down" if self._draining else "", live=False)

    # -- life --------------------------------------------------------------------------------------------------

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Listens; gives the port (0 chooses a free one). Raises OSError when it is taken."""
        loop = asyncio.get_running_loop()
        files = raise_limit()
        if not self._connection_limits.most:
            self._connection_limits = replace(self._connection_limits, most=most_connections(files))
        self._http = ConnectionServer(
            self._serve,
            limits=self._connection_limits,
            access_log=None,
            logger=_quiet_logger(),
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
            auto_decompress=False,
            lingering_time=2.0,
        )
        if tls is not None:
            # Few clients resume sessions, so two tickets are one too many. None at all would cost each new connection
            # 40 ms: it is the ticket that acknowledges the client's handshake and lets its first request out.
            tls.num_tickets = 1
        self._tls = tls
        self._server = await loop.create_server(
            self._http, host, port, ssl=tls, backlog=1024, ssl_handshake_timeout=self._patience
        )
        self.watches.start()
        return int(self._server.sockets[0].getsockname()[1])

    async def take(self, sock: socket.socket) -> None:
        """Serves a connection that came another way than by our port."""
        assert self._http is not None
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(self._http, sock, ssl=self._tls, ssl_handshake_timeout=self._patience)
        except OSError:  # the client left, or did not trust us
            sock.close()

    @property
    def _patience(self) -> float | None:
        return self._connection_limits.handshake_seconds if self._tls is not None else None

    @property
    def connections(self) -> int:
        return len(self._http.connections) if self._http is not None else 0

    async def drain(self, seconds: float = 10.0) -> None:
        """No new connections, watches end, running requests finish; then everything is closed."""
        self._draining = True
        if self._server is not None:
            self._server.close()
        self.watches.close()
        self._connectors.close()
        if self._open:
            self._idle = asyncio.Event()
            try:
                async with asyncio.timeout(seconds):
                    await self._idle.wait()
            except TimeoutError:
                log.warning("requests were still running when the time to drain was over", requests=self._open)
        await self.stop()

    async def stop(self) -> None:
        """Closes at once."""
        self._draining = True
        self.watches.close()
        self._connectors.close()
        if self._server is not None:
            self._server.close()
        if self._http is not None:
            self._http.stop_sweeping()
            self._http.pre_shutdown()  # idle connections end now, not after the second that busy ones get
            await self._http.shutdown(1.0)
            await self._http.hang_up(_GOODBYE_SECONDS)

    # -- a request ---------------------------------------------------------------------------------------------

    async def _serve(self, request: BaseRequest) -> StreamResponse:
        """Everything of one request. This frame stays while a watch lasts, so it holds little."""
        started = perf_counter()
        self._open += 1
        exchange = Exchange(request)
        audited = exchange if self._audit is not None else None
        response: StreamResponse | None = None
        try:
            response = await self._answered(exchange)
            if not response.prepared:
                self.metrics.observe(exchange.labels, response.status, perf_counter() - started)
            elif isinstance(response, OpenStream):
                del exchange
                await response.run(request)
        finally:
            self._open -= 1
            connection = request.protocol
            if isinstance(connection, Connection):
                connection.quiet_since = connection._loop.time()
            if self._idle is not None and not self._open:
                self._idle.set()
            if audited is not None:
                self._record(audited, response, perf_counter() - started)
        if self._draining:
            response.force_close()
        return response

    def _record(self, exchange: Exchange, response: StreamResponse | None, seconds: float) -> None:
        if self._audit is not None:
            now = time()
            code = response.status if response is not None else 499  # the client left before there was an answer
            self._audit.write(entry_of(exchange, code, now - seconds, now))

    def _changes(self, exchange: Exchange, trail: Trail) -> Document | None:
        """Everybody may ask: the answer has only writes to objects that the user may read. For a client without
        a credential, nothing is looked up."""
        if exchange.info.path != CHANGES_PATH:
            return None
        if exchange.user.name == ANONYMOUS.name:
            return Document(b"[]")

        def may(asked: Attributes) -> bool:
            return self._rbac is None or self._rbac.authorize(asked).allowed

        namespace = exchange.query.get("namespace")
        return Document(msgspec.json.encode(trail.visible(may, exchange.user, namespace)))

    async def _answered(self, exchange: Exchange) -> StreamResponse:
        try:
            return await self._answer(exchange)
        except ApiError as error:
            return self._refused(exchange, error)
        except ConnectionError:
            raise  # the client is gone: there is no one to answer
        except Exception as error:
            if _too_deep(error):
                return self._refused(exchange, BadRequest("the object would be nested too deeply"))
            # As text: loggers that draw exceptions show local variables, and those hold bodies.
            log.error(
                "request failed",
                traceback=traceback.format_exc(),
                audit_id=exchange.audit_id,
                method=exchange.request.method,
                path=exchange.info.path,
                user=exchange.user.name,
            )
            text = f"Internal error occurred: see the server's log under Audit-Id {exchange.audit_id}"
            return self._refused(exchange, Internal(text))

    def _refused(self, exchange: Exchange, error: ApiError) -> StreamResponse:
        # Its traceback holds the frames that hold the body, and the exchange holds the error: megabytes would stay
        # until the garbage collector happens to look at old objects.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        exchange.error = error
        return reply_error(exchange, error)

    async def _answer(self, exchange: Exchange) -> StreamResponse:
        exchange.parse()
        await self._authenticate(exchange)
        check_timeout(exchange.query)
        return await (self._dispatch(exchange) if self.gate is None else self.gate(exchange, self._dispatch))

    async def _dispatch(self, exchange: Exchange) -> StreamResponse:
        info = exchange.info
        if info.verb == "watch" or info.subresource in _LONG:
            self._authorize(exchange)
            return await self._verbs.serve(exchange)
        place = self._limits.enter(info.verb, exchange.user)
        try:
            self._authorize(exchange)
            if not info.resource:
                return await self.root.serve(exchange)
            if info.verb in ("get", "list"):
                return await self._verbs.serve(exchange)
            async with asyncio.timeout(REQUEST_SECONDS) as limit:
                return await self._verbs.serve(exchange)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise Timeout("request did not complete within the allotted timeout", retry_after=1) from error
        finally:
            self._limits.leave(place)

    async def _authenticate(self, exchange: Exchange) -> None:
        connection = exchange.request.protocol
        assert isinstance(connection, Connection)
        user = await self._authenticator.authenticate(
            peer_cert=connection.peer_certificate, authorization=exchange.header(AUTHORIZATION)
        )
        exchange.user = user or ANONYMOUS
        connection.known = user is not None
        if self._rbac is not None and exchange.impersonates:
            actor = exchange.user
            exchange.user = impersonate(actor, exchange.request.headers.items(), self._rbac)
            exchange.actor = actor

    def _authorize(self, exchange: Exchange) -> None:
        if self._rbac is None:
            return
        asked = attributes_of(exchange)
        decision = exchange.decision = self._rbac.authorize(asked)
        if not decision.allowed:
            raise forbidden(asked, decision.reason)

    def _authorize_creation(self, exchange: Exchange) -> None:
        """A PUT or PATCH of what is not there creates it, which takes the right to."""
        if self._rbac is None:
            return
        asked = attributes_of(exchange)._replace(verb="create")
        decision = self._rbac.authorize(asked)
        if not decision.allowed:
            raise forbidden(asked, decision.reason)


def _too_deep(error: Exception) -> bool:
    """Patches can nest objects further than any one body may; what then gives up is Python or the encoder."""
    return isinstance(error, RecursionError) or (isinstance(error, TypeError) and "Recursion limit" in str(error))


def _quiet_logger() -> logging.Logger:
    """aiohttp logs malformed requests of clients as errors; they are not errors of this server."""
    logger = logging.getLogger("homeport.apiserver.http.connection")
    logger.setLevel(logging.CRITICAL)
    return logger


def attributes_of(exchange: Exchange) -> Attributes:
    info = exchange.info
    if not info.resource:
        return Attributes(exchange.user, info.verb, path=info.path)
    name = info.name or _selected_name(exchange)
    return Attributes(
        exchange.user,
        info.verb,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        info.namespace,
        name,
    )


def _selected_name(exchange: Exchange) -> str:
    """A list or watch of `metadata.name=x` asks for that one object alone."""
    if exchange.info.verb not in ("list", "watch") or "fieldSelector" not in exchange.query:
        return ""
    try:
        name = parse_fields(exchange.query["fieldSelector"]).require("metadata.name") or ""
    except SelectorError:
        return ""  # said properly where the list is made
    return "" if path_segment(name) else name
