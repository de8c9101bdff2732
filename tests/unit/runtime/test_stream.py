from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

from homeport.api.meta import Resource
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.kinds.pod.log import LogLine, LogSources
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Key
from homeport.runtime.telemetry.stream import LogStream, LogStreams

POD = Resource("", "v1", "Pod", "pods")


def texts(stream: LogStream) -> list[str]:
    return [line.text for line in stream.lines()]


async def _next(lines: AsyncIterator[LogLine]) -> str:
    async with asyncio.timeout(5):
        return (await anext(lines)).text


def test_only_the_last_lines_are_kept() -> None:
    stream = LogStream(max_lines=3)
    for i in range(5):
        stream.push(i, str(i))
    assert texts(stream) == ["2", "3", "4"]


def test_memory_is_bounded_by_bytes_but_the_newest_line_is_always_there() -> None:
    stream = LogStream(max_lines=100, max_bytes=10)
    for text in ("aaaa", "bbbb", "cccc"):
        stream.push(0, text)
    assert texts(stream) == ["bbbb", "cccc"]
    stream.push(0, "d" * 50)
    assert texts(stream) == ["d" * 50]


async def test_a_follower_gets_what_comes_after_its_call_and_only_that() -> None:
    stream = LogStream()
    stream.push(0, "before")
    lines = stream.follow()
    stream.push(1, "between the call and the first step")
    assert await _next(lines) == "between the call and the first step"
    waiting = asyncio.ensure_future(anext(lines))
    await asyncio.sleep(0)
    stream.push(2, "new")
    assert (await waiting).text == "new"
    threading.Thread(target=stream.push, args=(3, "from a thread")).start()
    assert await _next(lines) == "from a thread"
    await lines.aclose()
    assert stream._waiting == []


async def test_a_slow_follower_gets_the_number_of_lost_lines() -> None:
    stream = LogStream(2)
    lines = stream.follow()
    for i in range(5):
        stream.push(0, str(i))
    assert await _next(lines) == "... 3 lines were lost: reading is slower than logging"
    assert [await _next(lines), await _next(lines)] == ["3", "4"]


def test_each_controller_has_its_own_stream() -> None:
    streams = LogStreams()
    streams.source("machine").push(2, "late", "default/a")
    streams.source("cluster").push(1, "early", "default/a")
    streams.source("cluster").push(3, "other", "default/b")
    assert streams.names() == ["cluster", "machine"]
    assert texts(streams.source("machine")) == ["late"]
    assert texts(streams.source("nobody")) == []


async def test_kubectl_logs_shows_what_a_controller_logs(tmp_path: Path) -> None:
    stream, sources = LogStreams().source("machine"), LogSources()
    server = await EmbeddedServer.open(None, PKI.ensure(tmp_path / "pki"))
    sources.install(server.registry)
    sources.register("kube-system", "homeport", "machine", stream)
    spec = {"nodeName": "here", "containers": [{"name": "machine", "image": "homeport"}]}
    meta = {"name": "homeport", "namespace": "kube-system"}
    await server.client().create({"metadata": meta, "spec": spec}, kind=POD)
    server.pki.write_kubeconfig(tmp_path / "config", await server.serve())
    client = HttpClient(load(tmp_path / "config"))
    stream.push(1, "one")
    stream.push(2, "two")
    async with client.log(Key("kube-system", "homeport"), follow=True, tail_lines=1) as chunks:
        assert await anext(chunks) == b"two\n"
        stream.push(3, "three")
        assert await anext(chunks) == b"three\n"
    await client.close()
    await server.close()
