"""Clients that open connections and send little or nothing."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.http.connection import ConnectionLimits
from homeport.apiserver.http.descriptor import raise_limit
from unit.apiserver.http.http_serving import ADMIN, CONFIG_MAPS, serving

QUICK = ConnectionLimits(handshake_seconds=0.1, header_seconds=0.1, anonymous_seconds=0.1)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def dial(port: int, sent: bytes = b"") -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    return reader, writer


async def ended(streams: Streams) -> bytes:
    """What came until the server closed the connection."""
    got = b""
    async with asyncio.timeout(10):
        try:
            while chunk := await streams[0].read(65536):
                got += chunk
        except ConnectionResetError:
            pass
    streams[1].close()
    return got


def request(token: str = "") -> bytes:
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"GET {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\n{bearer}\r\n".encode()


async def ask(streams: Streams, sent: bytes) -> int:
    reader, writer = streams
    writer.write(sent)
    async with asyncio.timeout(10):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(line[15:] for line in head.splitlines() if line.startswith("Content-Length"))
        await reader.readexactly(int(length))
    return int(head.split(" ", 2)[1])


@pytest.mark.parametrize("sent", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET / HTTP/1.1\r\nA: b\r\nC"])
async def test_a_connection_without_a_whole_header_is_closed(sent: bytes) -> None:
    async with serving(connections=QUICK) as api:
        assert await ended(await dial(api.port, sent)) == b""


async def test_a_connection_without_a_handshake_is_closed(tmp_path: Path) -> None:
    async with serving(connections=QUICK, tls=PKI.ensure(tmp_path).server_context()) as api:
        assert await ended(await dial(api.port)) == b""
        assert await ended(await dial(api.port, b"\x16\x03\x01")) == b""


async def test_an_unknown_client_may_not_stay_for_nothing() -> None:
    async with serving(connections=QUICK) as api:
        unknown, known = await dial(api.port), await dial(api.port)
        assert await ask(unknown, request()) == 403
        assert await ask(known, request(ADMIN)) == 200
        unknown[1].write(b"GET /")
        assert await ended(unknown) == b""
        assert await ask(known, request(ADMIN)) == 200
        known[1].close()


async def test_unknown_idle_clients_make_room_for_others() -> None:
    async with serving(connections=ConnectionLimits(most=4)) as api:
        known = await dial(api.port)
        assert await ask(known, request(ADMIN)) == 200
        idle = [await dial(api.port) for _ in range(3)]
        for streams in idle[:2]:
            assert await ask(streams, request()) == 403
        late = await dial(api.port)
        assert await ask(late, request(ADMIN)) == 200
        assert await ended(idle[0]) == b""
        later = await dial(api.port)
        assert await ask(later, request(ADMIN)) == 200
        assert await ended(idle[1]) == b""
        assert await ask(known, request(ADMIN)) == 200
        for streams in (idle[2], known, late, later):
            streams[1].close()


async def test_idle_clients_do_not_block_others() -> None:
    """Also not by such that are known."""
    async with serving(connections=ConnectionLimits(most=2)) as api:
        idle = [await dial(api.port) for _ in range(2)]
        for streams in idle:
            assert await ask(streams, request(ADMIN)) == 200
        late = await dial(api.port)
        assert await ask(late, request(ADMIN)) == 200
        assert await ended(idle[0]) == b""
        for streams in (idle[1], late):
            streams[1].close()


@pytest.fixture
def low_limit() -> Iterator[int]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    yield min(hard, 1 << 20) if hard != resource.RLIM_INFINITY else 1 << 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_the_server_opens_as_many_files_as_it_may(low_limit: int) -> None:
    async with serving():
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == low_limit
    assert raise_limit() == low_limit
