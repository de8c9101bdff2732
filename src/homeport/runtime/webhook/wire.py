"""HTTPS for API servers that ask us. Bounded in size, time and number; nothing else is spoken here."""

from __future__ import annotations

import asyncio
import inspect
import logging
import ssl
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
import structlog
from aiohttp import ClientPayloadError
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import BaseRequest, RequestPayloadError, Response, Server

from homeport.runtime.webhook.configuration import CONVERT_PATH, DEFAULT_PATH, VALIDATE_PATH
from homeport.runtime.webhook.hook import Hooks
from homeport.runtime.webhook.review import Read, ReviewError, answer_convert, answer_default, answer_validate
from homeport.runtime.webhook.shape import Shapes

log = structlog.get_logger(__name__)

_IDLE_SECONDS = 120.0
_HANDSHAKE_SECONDS = 10.0
_LARGE_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    review_bytes: int = 8 * 1024 * 1024  # an object and its old state, each of the largest size etcd takes
    conversion_bytes: int = 128 * 1024 * 1024  # a whole list may come in one question
    total_bytes: int = 256 * 1024 * 1024  # of all bodies being read at one time
    read_seconds: float = 20.0
    answer_seconds: float = 30.0
    linger_seconds: float = 1.0  # for API servers to learn that open connections end
    drain_seconds: float = 10.0


class _Refusal(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Wire:
    """`unready` says why we can't be used at the moment, '' if we can."""

    def __init__(
        self,
        hooks: Hooks,
        unready: Callable[[], str],
        limits: Limits | None = None,
        read: Read | None = None,
        shapes: Shapes | None = None,
    ) -> None:
        self._hooks = hooks
        self._unready = unready
        self._limits = limits or Limits()
        self._read_object = read
        self._shapes = shapes
        self._reading = 0  # bytes of bodies held now
        self._server: asyncio.Server | None = None
        self._http: Server | None = None
        self._open = 0
        self._idle: asyncio.Event | None = None
        self._draining = False

    async def start(self, host: str, port: int, tls: ssl.SSLContext) -> tuple[str, int]:
        """Listens; gives the address. `host` '*': all addresses. Raises OSError when it is taken."""
        self._draining = False
        self._http = Server(
            self._serve,
            access_log=None,
            logger=_quiet_logger(),
            keepalive_timeout=_IDLE_SECONDS,
            auto_decompress=False,
            lingering_time=2.0,
        )
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._http, None if host == "*" else host, port, ssl=tls, ssl_handshake_timeout=_HANDSHAKE_SECONDS
        )
        name = self._server.sockets[0].getsockname()
        return str(name[0]), int(name[1])

    async def stop(self) -> None:
        """No new connections; what is under way gets its answer.

        An API server sends its next review on a connection that it has, and does not repeat it if that ends meanwhile.
        So open ones are answered for a moment longer, each for the last time: the answer says that it ends.
        """
        self._draining = True
        if self._server is not None:
            self._server.close()
        if self._http is not None and self._http.connections:
            await asyncio.sleep(self._limits.linger_seconds)
        if self._open:
            self._idle = asyncio.Event()
            try:
                async with asyncio.timeout(self._limits.drain_seconds):
                    await self._idle.wait()
            except TimeoutError:
                log.warning("reviews were still running when the time to drain was over", reviews=self._open)
        if self._http is not None:
            open_connections = [connection.transport for connection in self._http.connections]
            await self._http.shutdown(0.1)
            # A peer that does not take part in the farewell of TLS would keep its connection for half a minute.
            for transport in open_connections:
                if transport is not None:
                    transport.abort()
            await asyncio.sleep(0)

    async def _serve(self, request: BaseRequest) -> Response:
        self._open += 1
        try:
            response = await self._answered(request)
        finally:
            self._open -= 1
            if self._idle is not None and not self._open:
                self._idle.set()
        if self._draining:
            response.force_close()
        return response

    async def _answered(self, request: BaseRequest) -> Response:
        try:
            return await self._answer(request)
        except _Refusal as refusal:
            return _text(refusal.code, str(refusal))
        except ReviewError as error:
            log.warning("a question could not be answered", path=request.path, error=str(error))
            return _text(400, str(error))
        except TimeoutError:
            return _text(504, "the review took too long")
        except ConnectionError:
            raise  # the client is gone: there is no one to answer
        except Exception:
            # As text: loggers that draw exceptions show local variables, and those hold objects.
            log.error("a hook failed", path=request.path, traceback=traceback.format_exc())
            return _text(500, "a hook failed; see the log of the webhook server")

    async def _answer(self, request: BaseRequest) -> Response:
        path = request.path
        if request.method == "GET":
            return self._health(path)
        answer = _answerer(path)
        if answer is None:
            raise _Refusal(404, f"{path}: nothing is served here")
        if request.method != "POST":
            raise _Refusal(405, f"{request.method} is not supported: POST a review")
        if request.content_type != "application/json":
            raise _Refusal(415, f"Content-Type {request.content_type}: only application/json is understood")
        conversion = answer is answer_convert
        limit = self._limits.conversion_bytes if conversion else self._limits.review_bytes
        body = await self._read(request, limit)
        async with asyncio.timeout(self._limits.answer_seconds):
            if conversion and len(body) > _LARGE_BYTES:
                # A long list takes seconds, in which others want their answers; converters only touch what they get.
                rendered = await asyncio.to_thread(lambda: orjson.dumps(answer_convert(self._hooks, _parsed(body))))
            else:
                more = {answer_validate: (self._read_object,), answer_default: (self._shapes,)}.get(answer, ())
                result = answer(self._hooks, _parsed(body), *more)
                rendered = orjson.dumps(await result if inspect.isawaitable(result) else result)
        return Response(body=rendered, content_type="application/json")

    def _health(self, path: str) -> Response:
        if path in ("/healthz", "/livez"):
            return _text(200, "ok")
        if path == "/readyz":
            why = "shutting down" if self._draining else self._unready()
            return _text(503, why) if why else _text(200, "ok")
        return _text(404, f"{path}: nothing is served here")

    async def _read(self, request: BaseRequest, limit: int) -> bytes:
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise _Refusal(415, "a body with a Content-Encoding is not accepted: send it as it is")
        if (request.content_length or 0) > limit:
            raise _Refusal(413, f"the body has more than {limit} bytes")
        held = 0
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.read_seconds):
                while chunk := await request.content.readany():
                    held += len(chunk)
                    self._reading += len(chunk)
                    if held > limit:
                        raise _Refusal(413, f"the body has more than {limit} bytes")
                    if self._reading > self._limits.total_bytes:
                        raise _Refusal(503, "too many large reviews at once: ask again")
                    chunks.append(chunk)
            return b"".join(chunks)
        except TimeoutError as late:
            raise _Refusal(408, f"the body did not come within {self._limits.read_seconds:g} s") from late
        except (RequestPayloadError, ClientPayloadError, HttpProcessingError) as broken:
            raise _Refusal(400, f"the body could not be read: {broken}") from broken
        finally:
            self._reading -= held


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as broken:
        raise _Refusal(400, f"the body is not valid JSON: {broken}") from broken


def _answerer(path: str) -> Any:
    if path == CONVERT_PATH:
        return answer_convert
    if path.startswith(DEFAULT_PATH + "/"):
        return answer_default
    if path.startswith(VALIDATE_PATH + "/"):
        return answer_validate
    return None


def _text(code: int, text: str) -> Response:
    return Response(status=code, text=text)


def _quiet_logger() -> logging.Logger:
    """aiohttp logs malformed requests of clients as errors; they are not errors of this server."""
    logger = logging.getLogger("homeport.runtime.webhook.connection")
    logger.setLevel(logging.CRITICAL)
    return logger
