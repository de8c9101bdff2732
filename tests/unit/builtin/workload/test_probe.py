from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from homeport.builtin.workload.page import Page
from homeport.builtin.workload.probe import Probe
from present import present


class Nothing:
    ready = True

    async def probe(self, command: list[str]) -> bool:
        return command == ["good"]


def _probe(spec: dict[str, Any], told: list[bool] | None = None) -> Probe:
    container = {"ports": [{"name": "web", "containerPort": spec.pop("port", 1)}]}
    return Probe(spec, container, "127.0.0.1", Nothing(), (told if told is not None else []).append)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 503 Busy\r\n\r\n", False),
        (b"", False),
        (b"nonsense\r\n", False),
    ],
)
async def test_a_page_that_answers_well_is_healthy(answer: bytes, good: bool) -> None:
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readline())
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await _probe({"httpGet": {"path": "/healthz", "port": "web"}, "port": port}).ask() is good
    assert seen == [b"GET /healthz HTTP/1.1\r\n"]


async def test_a_port_that_opens_is_healthy() -> None:
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    probe = _probe({"tcpSocket": {"port": port}})
    async with server:
        assert await probe.ask()
    assert not await probe.ask()


async def test_a_command_that_ends_well_is_healthy() -> None:
    assert await _probe({"exec": {"command": ["good"]}}).ask()
    assert not await _probe({"exec": {"command": ["bad"]}}).ask()


async def test_a_busy_process_does_not_take_its_own_delay_for_the_containers() -> None:
    """The loop was late by half a second: an answer that takes longer than the timeout still counts."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.3)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        probe = _probe({"httpGet": {"path": "/", "port": port}, "timeoutSeconds": 0.1})
        assert not await probe.ask()
        probe._late = 0.5
        assert await probe.ask()


class Counting:
    """Answers every request, `most` times on one connection."""

    def __init__(self, most: int = 1000) -> None:
        self.connections = 0
        self.requests = 0
        self._most = most
        self._tasks: list[asyncio.Task[Any]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._tasks.append(present(asyncio.current_task()))
        with contextlib.suppress(asyncio.IncompleteReadError):
            for _ in range(self._most):
                await reader.readuntil(b"\r\n\r\n")
                self.requests += 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def end(self, page: Page) -> None:
        page.close()
        await asyncio.gather(*self._tasks)


async def ask(page: Page, times: int) -> list[int]:
    return [await page.get("/", {"Host": "localhost"}) for _ in range(times)]


async def test_a_connection_is_used_again_and_replaced_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Counting()
    async with await asyncio.start_server(program.serve, "127.0.0.1", 0) as server:
        page = Page("127.0.0.1", server.sockets[0].getsockname()[1], None)
        assert await ask(page, 3) == [200] * 3
        assert program.connections == 1
        monkeypatch.setattr("homeport.builtin.workload.page._LIFE_SECONDS", 0.0)
        assert await ask(page, 2) == [200] * 2
        assert program.connections == 3
        await program.end(page)


async def test_a_connection_that_the_program_closed_is_no_failure_of_the_program() -> None:
    program = Counting(most=1)
    async with await asyncio.start_server(program.serve, "127.0.0.1", 0) as server:
        page = Page("127.0.0.1", server.sockets[0].getsockname()[1], None)
        assert await ask(page, 3) == [200] * 3
        assert program.connections == 3
        await program.end(page)


async def test_a_program_that_is_gone_is_noticed_at_once_though_it_answered_before() -> None:
    program = Counting(most=1)
    server = await asyncio.start_server(program.serve, "127.0.0.1", 0)
    probe = _probe({"httpGet": {"path": "/", "port": server.sockets[0].getsockname()[1]}})
    assert await probe.ask()
    server.close()
    await server.wait_closed()
    assert not await probe.ask()
