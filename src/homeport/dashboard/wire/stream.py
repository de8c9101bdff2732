"""One WebSocket for everything that a browser watches. Its first message brings the other half of the key."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import orjson
import structlog
from aiohttp import WSMsgType
from aiohttp.web import BaseRequest, StreamResponse, WebSocketResponse

from homeport.client.errors import ApiError
from homeport.dashboard.person import Person, TooMany
from homeport.dashboard.session import Session
from homeport.dashboard.topic.base import TopicError
from homeport.dashboard.topic.catalog import open_topic

log = structlog.get_logger(__name__)

LOGIN_SECONDS = 10.0
MOST_STREAMS = 32  # of one session: a browser has one, or one for each tab
MOST_TOPICS = 64
_MOST_BYTES = 256 * 1024
_UNKNOWN, _TOO_MANY = 4401, 4429
_HEARTBEAT_SECONDS = 25.0
_NOT_KNOWN = b"the plane does not know it: it was restarted, or an hour passed without use"  # at most 123 bytes

LogIn = Callable[[str], tuple[Session, Person]]


async def serve_stream(request: BaseRequest, log_in: LogIn) -> StreamResponse:
    socket = WebSocketResponse(heartbeat=_HEARTBEAT_SECONDS, max_msg_size=_MOST_BYTES, compress=True)
    await socket.prepare(request)
    try:
        async with asyncio.timeout(LOGIN_SECONDS):
            first = await socket.receive_json(loads=orjson.loads)
        session, person = log_in(str(first["key"]))
    except Exception:  # whatever came was no key
        await socket.close(code=_UNKNOWN, message=_NOT_KNOWN)
        return socket
    if len(session.ending) > MOST_STREAMS:  # one of these is for what belongs to the session itself
        await socket.close(code=_TOO_MANY, message=f"a session has at most {MOST_STREAMS} streams".encode())
        return socket
    loop = asyncio.get_running_loop()
    closing: list[asyncio.Task[Any]] = []

    def end() -> None:
        closing.append(loop.create_task(socket.close(code=_UNKNOWN, message=session.why.encode())))

    session.ending.append(end)
    stream = _Stream(socket, person, session)
    try:
        await stream.run()
    finally:
        if end in session.ending:
            session.ending.remove(end)
        await stream.close()
        await asyncio.gather(*closing, return_exceptions=True)
    return socket


class _Stream:
    def __init__(self, socket: WebSocketResponse, person: Person, session: Session) -> None:
        self._socket = socket
        self._person = person
        self._session = session
        self._topics: dict[int, asyncio.Task[None]] = {}
        self._aged = asyncio.Event()  # what is shown became old, or is up to date again
        self._aging = asyncio.create_task(self._tell_stale())
        person.on_stale.append(self._aged.set)

    async def run(self) -> None:
        await self._send({"hello": True})
        if self._person.stale is not None:
            self._aged.set()
        async for message in self._socket:
            if message.type is not WSMsgType.TEXT:
                continue
            try:
                await self._take(orjson.loads(message.data))
            except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, OverflowError, AttributeError):
                await self._send({"error": "expected a subscription"})

    async def _take(self, asked: dict[str, Any]) -> None:
        if asked.get("seen"):  # a page is in view; one that is hidden does not keep its session
            self._session.touch()
            return
        number = asked["id"]
        if type(number) is not int:
            raise ValueError
        if asked.get("close"):
            if (task := self._topics.pop(number, None)) is not None:
                task.cancel()
            return
        if number in self._topics:
            raise ValueError
        if len(self._topics) >= MOST_TOPICS:
            await self._send({"id": number, "error": f"a browser has at most {MOST_TOPICS} subscriptions"})
            return
        task = asyncio.create_task(self._serve(number, str(asked["open"]), asked.get("with") or {}))
        self._topics[number] = task
        task.add_done_callback(lambda _: self._topics.pop(number, None) if self._topics.get(number) is task else None)

    async def _serve(self, number: int, name: str, options: Any) -> None:
        async def send(content: dict[str, Any]) -> None:
            await self._send({"id": number, **content})

        try:
            topic = open_topic(name, self._person, send, options)
            await topic.run()
        except (TopicError, TooMany, ApiError) as error:
            await self._send({"id": number, "error": str(error)})
        except ConnectionError:
            pass  # the browser is gone
        except Exception:
            log.exception("a subscription of the dashboard failed", topic=name)
            await self._send({"id": number, "error": "the dashboard failed: see the log of the plane"})

    async def _tell_stale(self) -> None:
        while True:
            await self._aged.wait()
            self._aged.clear()
            stale = self._person.stale
            with contextlib.suppress(ConnectionError):  # the browser is gone
                await self._send({"stale": None if stale is None else {"since": stale.since, "why": stale.why}})

    async def _send(self, content: dict[str, Any]) -> None:
        if not self._socket.closed:
            await self._socket.send_str(orjson.dumps(content).decode())

    async def close(self) -> None:
        self._person.on_stale.remove(self._aged.set)
        tasks = [self._aging, *self._topics.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
