"""The guard that finds connections which a test leaves open."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import connector

from leftover import take_leftovers


def test_a_connection_that_is_open_when_its_loop_ends_is_found_and_closed() -> None:
    loop = asyncio.new_event_loop()
    kept: list[asyncio.StreamWriter] = []  # both ends: a newer Python closes and reports a writer that nobody has

    async def connect() -> None:
        accepted = asyncio.Event()

        def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            kept.append(writer)
            accepted.set()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        kept.append((await asyncio.open_connection("127.0.0.1", port))[1])
        await accepted.wait()
        server.close()

    loop.run_until_complete(connect())
    assert take_leftovers() == []  # the loop could still close them
    loop.close()
    assert any("StreamReaderProtocol" in each for each in take_leftovers())
    assert take_leftovers() == []


async def test_a_connection_that_is_being_closed_is_not_reported() -> None:
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()
    assert take_leftovers() == []


def test_a_request_that_nobody_ended_is_not_blamed_on_a_later_test() -> None:
    loop = asyncio.new_event_loop()
    use = connector.Connection(Any, Any, Any, loop)  # type: ignore[arg-type]
    assert take_leftovers() == []
    assert use.protocol is not None  # its loop could still end it
    loop.close()
    assert take_leftovers() == []
    assert use.protocol is None
