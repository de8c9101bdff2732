"""The API server is away or hangs: the browser is told since when it shows old data, and gets the new data afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from homeport.api.meta import Resource
from homeport.client.protocol import Key
from unit.dashboard.stage import Stage, open_stage

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
ROWS = {"id": 1, "open": "rows", "with": {"plural": "configmaps", "namespace": "default", "columns": []}}


class Way:
    """The network between the dashboard and the API server."""

    def __init__(self) -> None:
        self._target = ("", 0)
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open = asyncio.Event()  # cleared: nothing passes, and nobody learns of it
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def lead(self, url: str) -> str:
        parts = urlsplit(url)
        self._target = (str(parts.hostname), int(parts.port or 443))
        await self.restore()
        return f"https://127.0.0.1:{self._port}"

    async def restore(self) -> None:
        self._open.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
            self._port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Connections end, and new ones are refused."""
        assert self._server is not None
        self._server.close()
        self._server = None
        for writer in self._writers:
            writer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def hang(self) -> None:
        self._open.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pass(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        self._writers.add(sink)
        try:
            while content := await source.read(65536):
                await self._open.wait()
                sink.write(content)
                await sink.drain()
        except OSError:
            pass  # the other side has gone
        finally:
            self._writers.discard(sink)
            sink.close()


@pytest.fixture
async def way() -> AsyncIterator[Way]:
    made = Way()
    yield made
    await made.cut()


@pytest.fixture
async def stage(tmp_path: Path, way: Way) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path, way.lead) as made:
        yield made


async def said(socket: aiohttp.ClientWebSocketResponse, name: str) -> dict[str, Any]:
    """The next message that has this field."""
    while True:
        message: dict[str, Any] = await socket.receive_json(timeout=60)
        if name in message:
            return message


@pytest.mark.parametrize("fault", ["cut", "hang"])
async def test_the_browser_is_told_since_when_its_data_is_old_and_gets_the_new_data_by_itself(
    stage: Stage, way: Way, fault: str
) -> None:
    socket = await stage.connect()
    await socket.send_json(ROWS)
    await said(socket, "rows")
    began = time.time()
    await getattr(way, fault)()
    stale = (await said(socket, "stale"))["stale"]
    assert began - 10 < stale["since"] < time.time()
    assert stale["why"]
    late = await stage.connect()  # a page that is opened now learns of it, too
    assert (await said(late, "stale"))["stale"]["since"] == stale["since"]
    await stage.client.create({"metadata": {"name": "new", "namespace": "default"}}, kind=CONFIG_MAPS)
    uid = (await stage.client.get(CONFIG_MAPS, Key("default", "new"))).uid
    await way.restore()
    rows = await said(socket, "rows")
    assert any(uid in row for row in rows["rows"]), rows
    while (now := (await said(socket, "stale"))["stale"]) is not None:
        assert now["since"] == stale["since"], "the reason may change, but not since when it is old"
    await late.close()
    await socket.close()
