"""The last lines that each controller logged, to be read and followed: what the `log` endpoint of Pods serves.

A stream is a ring bounded in lines and bytes. Followers keep their place by number: one that is too slow misses lines
and gets a line with their number; a slow reader never delays logging.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from itertools import islice
from typing import NamedTuple

from homeport.apiserver.kinds.pod.log import LogLine

PROCESS = ""  # the stream of lines that no controller logged


class _Entry(NamedTuple):
    object: str  # the key in work, '' if none
    line: LogLine


class LogStream:
    """A LogSource of the API server."""

    def __init__(self, max_lines: int = 2000, max_bytes: int = 256 * 1024) -> None:
        self._entries: deque[_Entry] = deque()
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._bytes = 0
        self._first = 0  # number of the oldest line that is kept
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, time: float, text: str, key: str = "") -> None:
        """From any thread."""
        self._entries.append(_Entry(key, LogLine(time, text)))
        self._bytes += len(text)
        while len(self._entries) > self._max_lines or (self._bytes > self._max_bytes and len(self._entries) > 1):
            self._bytes -= len(self._entries.popleft().line.text)
            self._first += 1
        for loop, event in self._waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def lines(self) -> list[LogLine]:
        """What is kept, oldest first."""
        return [entry.line for entry in list(self._entries)]

    def follow(self) -> AsyncGenerator[LogLine, None]:
        """What is logged from this call on."""
        return self._following(self._first + len(self._entries))

    async def _following(self, place: int) -> AsyncGenerator[LogLine, None]:
        event = asyncio.Event()
        waiting = (asyncio.get_running_loop(), event)
        self._waiting.append(waiting)
        try:
            while True:
                event.clear()
                if place < self._first:
                    lost, place = self._first - place, self._first
                    time = self._entries[0].line.time
                    yield LogLine(time, f"... {lost} lines were lost: reading is slower than logging")
                    continue
                for entry in list(islice(self._entries, place - self._first, None)):
                    place += 1
                    yield entry.line
                if place >= self._first + len(self._entries):
                    await event.wait()
        finally:
            self._waiting.remove(waiting)


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
