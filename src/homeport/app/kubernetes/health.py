"""/healthz, /readyz and /metrics of a process that serves nothing else: for the kubelet and for Prometheus."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from prometheus_client import REGISTRY, generate_latest

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_REQUEST_SECONDS = 10.0
_REQUEST_BYTES = 16 * 1024
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class HealthServer:
    """`problems` says what is wrong, by part: with any, /readyz is 503. `notes` are shown there without changing that.
    /healthz is 200 as long as we can answer and `dead` gives no reason for a restart."""

    def __init__(
        self,
        problems: Callable[[], dict[str, str]],
        notes: Callable[[], dict[str, str]] = dict,
        dead: Callable[[], str] = str,
    ) -> None:
        self._problems = problems
        self._notes = notes
        self._dead = dead
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Gives the port. `host` '*': all addresses. Raises OSError if it is taken."""
        where = None if host == "*" else host
        self._server = await asyncio.start_server(self._serve, where, port, limit=_REQUEST_BYTES)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request per connection: probes and scrapes come every few seconds."""
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # not a request, or the client has gone
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _answer(self, head: bytes) -> bytes:
        parts = head.split(b"\r\n", 1)[0].split(b" ")
        if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
            return _reply(400, "not an HTTP request\n")
        if parts[0] not in (b"GET", b"HEAD"):
            return _reply(405, "only GET and HEAD\n")
        return self._find(parts[1].partition(b"?")[0].decode("latin-1"), body=parts[0] == b"GET")

    def _find(self, path: str, *, body: bool) -> bytes:
        if path in ("/healthz", "/livez"):
            dead = self._dead()
            return _reply(503, f"{dead}\n", body=body) if dead else _reply(200, "ok", body=body)
        if path == "/readyz":
            problems, notes = self._problems(), self._notes()
            told = "".join(f"[-]{name}: {why}\n" for name, why in problems.items())
            told += "".join(f"[!]{name}: {why}\n" for name, why in notes.items())
            if problems:
                return _reply(503, told, body=body)
            return _reply(200, f"ok\n{told}" if told else "ok", body=body)
        if path == "/metrics":
            return _reply(200, generate_latest(REGISTRY).decode(), content_type=_METRICS_TYPE, body=body)
        return _reply(404, "not found: use /healthz, /readyz or /metrics\n", body=body)


def _reply(code: int, text: str, *, content_type: str = "text/plain; charset=utf-8", body: bool = True) -> bytes:
    content = text.encode()
    head = (
        f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (content if body else b"")
