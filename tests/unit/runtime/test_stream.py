from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

from homeport.runtime.stream import Line, LogStream, LogStreams, Reading


def line(text: str, time: float = 0.0, key: str = "") -> Line:
    return Line(time, key, text.encode())


async def read(stream: LogStream, reading: Reading | None = None) -> bytes:
    return b"".join([text async for text in stream.read(reading)])


async def test_lines_come_in_order_and_only_the_last_are_kept() -> None:
    stream = LogStream(max_lines=3, max_bytes=1000)
    for i in range(5):
        stream.push(line(str(i), time=i))
    assert await read(stream) == b"2\n3\n4\n"
    assert await read(stream, Reading(tail_lines=2)) == b"3\n4\n"
    assert await read(stream, Reading(tail_lines=0)) == b""
    assert await read(stream, Reading(tail_lines=9)) == b"2\n3\n4\n"
    assert await read(stream, Reading(since=4)) == b"4\n"
    assert await read(stream, Reading(limit_bytes=3)) == b"2\n3"
    assert await read(stream, Reading(tail_lines=1, timestamps=True)) == b"1970-01-01T00:00:04.000000Z 4\n"


async def test_memory_is_bounded_by_bytes_but_the_newest_line_is_always_there() -> None:
    stream = LogStream(max_lines=100, max_bytes=10)
    for text in ("aaaa", "bbbb", "cccc"):
        stream.push(line(text))
    assert await read(stream) == b"bbbb\ncccc\n"
    stream.push(line("d" * 50))
    assert await read(stream) == b"d" * 50 + b"\n"


async def _next(lines: AsyncIterator[bytes]) -> bytes:
    async with asyncio.timeout(5):
        return await anext(lines)


async def test_a_follower_gets_what_is_there_and_then_what_comes() -> None:
    stream = LogStream(100, 1000)
    stream.push(line("old"))
    lines = stream.read(Reading(follow=True, tail_lines=1))
    assert await _next(lines) == b"old\n"
    waiting = asyncio.ensure_future(anext(lines))
    await asyncio.sleep(0)
    stream.push(line("new"))
    assert await waiting == b"new\n"
    threading.Thread(target=stream.push, args=(line("from a thread"),)).start()
    assert await _next(lines) == b"from a thread\n"
    await lines.aclose()
    assert stream._waiting == []


async def test_a_slow_follower_is_told_what_it_missed() -> None:
    stream = LogStream(2, 1000)
    lines = stream.read(Reading(follow=True))
    first = asyncio.ensure_future(anext(lines))
    await asyncio.sleep(0)
    for i in range(5):
        stream.push(line(str(i)))
    assert await first == b"... 3 lines were lost: reading is slower than logging\n"
    assert [await _next(lines), await _next(lines)] == [b"3\n", b"4\n"]


async def test_each_controller_has_its_own_stream_and_an_object_is_found_in_all() -> None:
    streams = LogStreams()
    streams.push("machine", line("late", 2, "default/a"))
    streams.push("cluster", line("early", 1, "default/a"))
    streams.push("cluster", line("other", 3, "default/b"))
    assert streams.names() == ["cluster", "machine"]
    assert await read(streams.source("machine")) == b"late\n"
    assert streams.recent("default/a") == ["early", "late"]
    assert streams.recent("default/a", lines=1) == ["late"]
    assert await read(streams.source("nobody")) == b""
