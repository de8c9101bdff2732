"""The last lines that each controller logged, to be read and followed: what the `log` endpoint of Pods serves.

A stream is a ring bounded in lines and bytes. Readers keep their place by number: one that is too slow misses lines and
is told how many; it never holds up whoever logs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

PROCESS = ""  # the stream of lines that no controller logged


class Line(NamedTuple):
    time: float
    object: str  # the key in work, '' if none
    text: bytes  # as rendered, without a line end


@dataclass(frozen=True, slots=True)
class Reading:
    """Which part of a stream, and how: the options of the `log` endpoint."""

    follow: bool = False
    tail_lines: int | None = None
    since: float | None = None  # seconds since the epoch
    timestamps: bool = False
    limit_bytes: int | None = None


class LogStream:
    def __init__(self, max_lines: int, max_bytes: int) -> None:
        self._lines: deque[Line] = deque()
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._bytes = 0
        self._first = 0  # number of the oldest line that is kept
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(list(self._lines))

    def push(self, line: Line) -> None:
        """From any thread."""
        self._lines.append(line)
        self._bytes += len(line.text)
        while len(self._lines) > self._max_lines or (self._bytes > self._max_bytes and len(self._lines) > 1):
            self._bytes -= len(self._lines.popleft().text)
            self._first += 1
        for loop, event in self._waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def read(self, reading: Reading | None = None) -> AsyncGenerator[bytes, None]:
        """Lines with their ends; with `follow` until the reader stops."""
        reading = reading or Reading()
        left = reading.limit_bytes
        async with aclosing(self._texts(reading)) as texts:
            async for text in texts:
                part = text if left is None else text[:left]
                if part:
                    yield part
                if left is not None:
                    left -= len(part)
                    if not left:
                        return

    async def _texts(self, reading: Reading) -> AsyncGenerator[bytes, None]:
        place = self._start(reading)
        event = asyncio.Event()
        waiting = (asyncio.get_running_loop(), event)
        if reading.follow:
            self._waiting.append(waiting)
        try:
            while True:
                event.clear()
                if place < self._first:
                    yield b"... %d lines were lost: reading is slower than logging\n" % (self._first - place)
                    place = self._first
                for line in list(islice(self._lines, place - self._first, None)):
                    place += 1
                    if reading.since is None or line.time >= reading.since:
                        yield _rendered(line, timestamps=reading.timestamps)
                if not reading.follow:
                    return
                await event.wait()
        finally:
            if reading.follow:
                self._waiting.remove(waiting)

    def _start(self, reading: Reading) -> int:
        end = self._first + len(self._lines)
        if reading.tail_lines is None:
            return self._first
        return max(self._first, end - reading.tail_lines)


def _rendered(line: Line, *, timestamps: bool) -> bytes:
    if not timestamps:
        return line.text + b"\n"
    moment = datetime.fromtimestamp(line.time, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return moment.encode() + b" " + line.text + b"\n"


class LogStreams:
    """The streams of a process, by controller."""

    def __init__(self, *, max_lines: int = 2000, max_bytes: int = 256 * 1024) -> None:
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._streams: dict[str, LogStream] = {}

    def source(self, controller: str) -> LogStream:
        """The stream of a controller, whether it has logged anything yet or not."""
        stream = self._streams.get(controller)
        if stream is None:
            stream = self._streams[controller] = LogStream(self._max_lines, self._max_bytes)
        return stream

    def names(self) -> list[str]:
        return sorted(self._streams)

    def push(self, controller: str, line: Line) -> None:
        self.source(controller).push(line)

    def recent(self, key: str, lines: int = 20) -> list[str]:
        """What was last logged about an object, by whichever controller: for messages about failures."""
        about = [line for stream in self._streams.values() for line in stream if line.object == key]
        about.sort(key=lambda line: line.time)
        return [line.text.decode(errors="replace") for line in about[-lines:]]
