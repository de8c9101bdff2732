"""A watch that outlives its connection: it resumes from the last resourceVersion it has seen."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from homeport.client.errors import ApiError, Unavailable
from homeport.client.protocol import Event
from homeport.client.wire.codec import Codec
from homeport.client.wire.retry import TRANSIENT, Retry
from homeport.client.wire.rhythm import Rhythm

T = TypeVar("T")
# Servers end a watch now and then; asking for different times keeps many watches from ending together.
ENDLESS_SECONDS = (300, 600)
# A server's timer and ours are not the same to the millisecond.
SLACK_SECONDS = 0.5
# Servers end watches after minutes. One that ended sooner than this is asked for again after a pause that grows.
SHORT_SECONDS = 5.0


class Chunks(Protocol):
    def chunks(self) -> AsyncIterator[bytes]:
        """Raises Unavailable when the connection is lost."""

    def close(self) -> None: ...


class LineStream:
    """The body of a watch answer, cut into lines: as many at a time as have come."""

    def __init__(self, source: Chunks) -> None:
        self._source = source

    async def lines(self) -> AsyncIterator[list[bytes]]:
        rest: list[bytes] = []  # pieces of a line that is not whole yet; joined once, however many they are
        async for chunk in self._source.chunks():
            first, newline, tail = chunk.partition(b"\n")
            rest.append(first)
            if not newline:
                continue
            *whole, end = tail.split(b"\n")
            yield [line for line in (b"".join(rest), *whole) if line]
            rest = [end] if end else []

    def close(self) -> None:
        self._source.close()


Open = Callable[[str, bool, int], Awaitable[LineStream]]
"""(resourceVersion, initial events, seconds) > the server's answer."""
Between = Callable[[], Awaitable[None]]
"""Called when the server ended the watch in order, before it is asked for again. Must not raise."""


class Watch(Generic[T]):
    """One watch. `async for` gives events until the timeout has passed, or raises (Expired: list again)."""

    def __init__(
        self,
        open_: Open,
        codec: Codec[T],
        start: str,
        *,
        initial_events: bool,
        timeout: float | None,
        retry: Retry,
        lenient: bool = False,
        renew: int = 0,
        between: Between | None = None,
    ) -> None:
        self._open = open_
        self._codec = codec
        self._start = start
        self._initial = initial_events
        self._lenient = lenient
        self._retry = retry
        self._between = between
        self._clock = asyncio.get_running_loop().time
        self._rhythm = Rhythm(renew, self._clock) if renew else None
        self._deadline = None if timeout is None else self._clock() + timeout
        # The first events of these come in order of names, so their versions say nothing about what was missed.
        self._resume = "" if initial_events or start in ("", "0") else start
        self._stream: LineStream | None = None
        self._ended = False

    async def begin(self) -> None:
        self._stream = await self._open(self._start, self._initial, self._seconds())

    def end(self) -> None:
        """The caller has left the watch: reading on would open a connection that nobody closes."""
        self._ended = True
        self._close()

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    async def events(self) -> AsyncIterator[Event[T]]:
        failures = short = 0
        while True:
            lost: ApiError | None = None
            began = self._clock()
            if self._ended:
                raise RuntimeError("the watch is closed: read its events inside the `async with` block")
            try:
                if self._stream is None:
                    self._stream = await self._open(self._resume, False, self._seconds())
                async for lines in self._stream.lines():
                    for line in lines:
                        event = self._codec.event(line, lenient=self._lenient)
                        failures = 0
                        self._note(event)
                        yield event
            except TRANSIENT as error:
                lost = error
            self._close()
            if self._over():
                return
            if lost is not None:
                failures += 1
                await self._pause(failures, lost)
            elif not self._resume:
                return  # the server ended it in order, and only the caller can start over
            else:
                short = short + 1 if self._clock() - began < SHORT_SECONDS else 0
                await self._go_on(short)

    def _note(self, event: Event[T]) -> None:
        if not event.resource_version:
            return
        burst_over = event.initial_events_end if self._initial else event.type != "ADDED"
        if self._resume or burst_over:
            self._resume = event.resource_version

    def _seconds(self) -> int:
        if self._deadline is not None:
            return max(1, math.ceil(self._deadline - self._clock()))
        if self._rhythm is not None:
            return self._rhythm.seconds()
        return random.randint(*ENDLESS_SECONDS)  # noqa: S311 - not for secrets

    def _over(self) -> bool:
        return self._deadline is not None and self._clock() >= self._deadline - SLACK_SECONDS

    async def _go_on(self, short: int) -> None:
        """The server ended the watch in order, for the `short`th time in a row soon after it began."""
        pause = self._retry.pause(short) if short else self._rhythm.pause() if self._rhythm is not None else 0.0
        if pause:
            await asyncio.sleep(pause if self._deadline is None else min(pause, self._deadline - self._clock()))
        if self._between is not None:
            await self._between()

    async def _pause(self, failures: int, lost: ApiError) -> None:
        if not self._resume:
            raise Unavailable(
                f"{self._codec.resource.qualified}: the watch was lost before it could be resumed: {lost.message}"
            ) from lost
        if failures >= self._retry.attempts:
            raise lost
        await asyncio.sleep(max(lost.retry_after, self._retry.pause(failures)))
