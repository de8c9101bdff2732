"""Port forwarding over SPDY: any number of connections, each a pair of streams that the client opens.

Peers of this kind don't count windows. Who is slow is waited for by not reading on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from homeport.apiserver.http.stream.carrier import Carrier
from homeport.apiserver.http.stream.inbox import Inbox
from homeport.apiserver.http.stream.outbox import Outbox
from homeport.apiserver.http.stream.pump import forward
from homeport.apiserver.registry import Forward
from homeport.machinery.portforward import DATA, ERROR, PORT, REQUEST, STREAM_TYPE, parse_port
from homeport.machinery.spdy import (
    CANCEL,
    PING,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    RST_STREAM,
    SYN_STREAM,
    Decoder,
    Encoder,
    Frame,
    SpdyError,
)

MAX_PAIRS = 256
PAIR_SECONDS = 30.0  # between the two streams of a pair


class _Pair:
    """A forwarded connection: a stream of data and one of errors, once both are there."""

    def __init__(self, session: SpdySession, request: str, port: int) -> None:
        self.request = request
        self.port = port
        self.data = 0
        self.error = 0
        self.inbox = Inbox()
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self._session = session

    @property
    def complete(self) -> bool:
        return bool(self.data and self.error)

    async def read(self) -> bytes:
        return await self.inbox.read()

    async def write(self, data: bytes) -> None:
        await self._session.send(self._session.encoder.data(self.data, data))


class SpdySession:
    def __init__(self, carrier: Carrier, answer: Forward, touch: Callable[[], None]) -> None:
        self.encoder = Encoder()
        self._carrier = carrier
        self._answer = answer
        self._touch = touch
        self._outbox = Outbox(carrier.write)
        self._decoder = Decoder()
        self._last = 0
        self._pairs: dict[str, _Pair] = {}  # by request
        self._streams: dict[int, _Pair] = {}

    async def run(self) -> None:
        """Until the client is gone."""
        status = 0
        try:
            while data := await self._carrier.read():
                self._touch()
                for frame in self._decoder.feed(data):
                    await self._take(frame)
        except SpdyError:
            status = PROTOCOL_ERROR
        finally:
            await self._close(status)

    async def send(self, frame: bytes) -> None:
        self._touch()
        await self._outbox.put(frame)

    async def _close(self, status: int) -> None:
        tasks = []
        for pair in list(self._pairs.values()):
            if pair.task is not None:
                pair.task.cancel()
                tasks.append(pair.task)
            self._forget(pair)
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.send(self.encoder.goodbye(self._last, status))
        finally:
            await self._outbox.finish()

    # -- what comes --------------------------------------------------------------------------------------------

    async def _take(self, frame: Frame) -> None:
        if frame.kind == SYN_STREAM:
            await self._open(frame)
        elif frame.kind == PING:
            if frame.number % 2:  # the client's own; even ones would be answers
                await self.send(self.encoder.ping(frame.number))
        elif frame.kind == RST_STREAM:
            self._reset(frame.number)
        elif frame.kind == 0:
            await self._receive(frame)

    async def _receive(self, frame: Frame) -> None:
        pair = self._streams.get(frame.number)
        if pair is None or frame.number != pair.data:
            return  # a stream that has ended meanwhile, or the end of one that only we write
        if frame.data:
            await pair.inbox.put(frame.data)
        if frame.fin:
            pair.inbox.end()

    def _reset(self, stream: int) -> None:
        pair = self._streams.get(stream)
        if pair is None:
            return
        if pair.task is not None and stream == pair.data:
            pair.task.cancel()
        elif pair.task is None:
            self._forget(pair)

    async def _open(self, frame: Frame) -> None:
        stream = frame.number
        if stream % 2 == 0 or stream <= self._last:
            await self.send(self.encoder.reset(stream, PROTOCOL_ERROR))
            return
        self._last = stream
        pair = self._pair(stream, frame)
        if pair is None:
            await self.send(self.encoder.reset(stream, REFUSED_STREAM))
            return
        self._streams[stream] = pair
        if frame.fin and stream == pair.data:
            pair.inbox.end()
        await self.send(self.encoder.reply(stream, {}))
        if pair.complete and pair.task is None:
            if pair.timer is not None:
                pair.timer.cancel()
            pair.task = asyncio.create_task(self._forward(pair), name=f"forwarding port {pair.port}")

    def _pair(self, stream: int, frame: Frame) -> _Pair | None:
        """The pair that the stream belongs to; None if the stream can't be served."""
        kind = frame.headers.get(STREAM_TYPE, "")
        try:
            port = parse_port(frame.headers.get(PORT, ""))
        except ValueError:
            return None
        if kind not in (DATA, ERROR):
            return None
        # Old clients name no request; theirs are the two streams with numbers that follow each other, errors first.
        request = frame.headers.get(REQUEST) or f"#{stream if kind == ERROR else stream - 2}"
        pair = self._pairs.get(request)
        if pair is None:
            if len(self._pairs) >= MAX_PAIRS:
                return None
            pair = self._pairs[request] = _Pair(self, request, port)
            pair.timer = asyncio.get_running_loop().call_later(PAIR_SECONDS, self._expire, pair)
        if (pair.data if kind == DATA else pair.error) or pair.port != port:
            return None
        if kind == DATA:
            pair.data = stream
        else:
            pair.error = stream
        return pair

    def _expire(self, pair: _Pair) -> None:
        """The other stream never came."""
        pair.task = asyncio.create_task(self._fail(pair, f"request {pair.request}: its other stream did not come"))

    # -- what goes ---------------------------------------------------------------------------------------------

    async def _forward(self, pair: _Pair) -> None:
        try:
            text = await forward(pair, pair.port, self._answer)
            if text:
                await self._fail(pair, text)
            else:
                await self.send(self.encoder.data(pair.data, b"", fin=True))
                await self.send(self.encoder.data(pair.error, b"", fin=True))
        finally:
            self._forget(pair)

    async def _fail(self, pair: _Pair, text: str) -> None:
        if pair.error:
            await self.send(self.encoder.data(pair.error, text.encode()))
        for stream in (pair.data, pair.error):
            if stream:
                await self.send(self.encoder.reset(stream, CANCEL))
        self._forget(pair)

    def _forget(self, pair: _Pair) -> None:
        if pair.timer is not None:
            pair.timer.cancel()
        pair.inbox.close()
        if self._pairs.get(pair.request) is pair:
            del self._pairs[pair.request]
        for stream in (pair.data, pair.error):
            self._streams.pop(stream, None)
