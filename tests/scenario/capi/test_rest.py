"""A workload cluster at rest costs one connection, and what happens to it is still noticed in time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from homeport.capi.remote.workload import RENEW_SECONDS, Remote
from homeport.client.errors import ApiError
from homeport.client.protocol import Key, Query
from homeport.runtime.testing import virtual
from scenario.capi.test_remote import CLUSTER, POD, World, admin, cluster, node, secret, world

pytestmark = pytest.mark.usefixtures("idle_connections_age")
PODS = Query(namespace="default")


def pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


class Line:
    """A way to a server that can be cut without either end noticing."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._hangs = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1")
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    def hang(self) -> None:
        self._hangs = True

    def cut(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self._port)
        for source, sink in ((reader, outer), (inner, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                if not self._hangs:
                    sink.write(data)
        finally:
            sink.transport.abort()


class Seen:
    """Names of Pods in the order in which somebody was told of them."""

    def __init__(self, w: World, remote: Remote) -> None:
        self.names: list[str] = []
        self._world = w
        remote.watch(POD, PODS, self._changed)

    def _changed(self, old: Any, new: Any) -> None:
        self.names.append((new or old).name)
        self._world._wakeup.set()

    async def until(self, *names: str) -> float:
        """The seconds that it took."""
        began = asyncio.get_running_loop().time()
        await self._world.until(lambda: self.names == list(names))
        return asyncio.get_running_loop().time() - began


@asynccontextmanager
async def at_rest(content: Callable[[World], str] = admin) -> AsyncIterator[tuple[World, Remote, Seen]]:
    async with world() as w:
        await w.management.have(cluster(), secret(content(w)))
        await w.connected()
        remote = w.remotes.get(CLUSTER)
        assert remote is not None
        seen = Seen(w, remote)
        await remote.cached(POD, PODS)
        remote.attend(POD, PODS, closely=False)
        await asyncio.sleep(120)
        yield w, remote, seen


def connections(w: World) -> int:
    assert w.workload.server.http is not None
    return w.workload.server.http.connections


def requests(w: World) -> Counter[str]:
    assert w.workload.server.http is not None
    return Counter(w.workload.server.http.metrics.requests())


@virtual
async def test_a_cluster_at_rest_has_one_connection_on_which_further_kinds_are_listed() -> None:
    async with at_rest() as (w, _, _):
        before = requests(w)
        most = 0
        for _ in range(600):
            await asyncio.sleep(1)
            most = max(most, connections(w))
        asked = requests(w) - before
        assert most == 1
        assert set(asked) == {"WATCH nodes", "LIST pods"}
        assert 10 <= asked["LIST pods"] <= 14


@virtual
async def test_a_change_at_rest_is_noticed_within_a_minute_and_a_deletion_too() -> None:
    async with at_rest() as (w, _, seen):
        await w.workload.have(pod("p"))
        assert await seen.until("p") <= 61
        await w.workload.client.delete(POD, Key("default", "p"))
        assert await seen.until("p", "p") <= 61
        assert connections(w) == 1


@virtual
async def test_whoever_needs_to_know_at_once_gets_the_watch_back_with_all_that_changed_meanwhile() -> None:
    async with at_rest() as (w, remote, seen):
        await w.workload.have(pod("p"))
        remote.attend(POD, PODS, closely=True)
        assert await seen.until("p") < 1
        await w.workload.have(pod("q"))
        assert await seen.until("p", "q") < 1


@virtual
async def test_whoever_decides_something_at_rest_can_ask_for_what_there_is_now() -> None:
    async with at_rest() as (w, remote, _):
        await w.workload.have(pod("p"))
        assert Key("default", "p") in await remote.cached(POD, PODS, max_age=0)
        before = requests(w)
        await remote.cached(POD, PODS, max_age=10)
        assert not requests(w) - before


@virtual
async def test_whoever_decides_something_when_the_watch_has_just_begun_again_gets_what_there_is_now() -> None:
    async with at_rest() as (w, remote, _):
        await w.workload.have(pod("p"))
        remote.attend(POD, PODS, closely=True)
        assert remote.is_at_rest(POD, PODS), "what happened at rest is not known yet"
        assert Key("default", "p") in await remote.cached(POD, PODS, max_age=0)
        assert not remote.is_at_rest(POD, PODS)


@virtual
async def test_a_watch_that_begins_while_a_list_is_under_way_has_the_last_word() -> None:
    async with at_rest() as (w, remote, _):
        listing = asyncio.create_task(remote.cached(POD, PODS, max_age=0))
        await asyncio.sleep(0)
        remote.attend(POD, PODS, closely=True)
        await w.workload.have(pod("p"))
        assert Key("default", "p") in await remote.cached(POD, PODS, max_age=0)
        assert Key("default", "p") in await listing


@virtual
async def test_a_list_that_ends_after_the_connection_is_not_known_to_be_complete() -> None:
    async with at_rest() as (_, remote, _):
        listing = asyncio.create_task(remote.cached(POD, PODS, max_age=0))
        await asyncio.sleep(0)
        stopping = asyncio.create_task(remote.stop())
        with pytest.raises(ApiError):
            await listing
        await stopping
        assert not remote.has_synced(POD, PODS)


@pytest.fixture
def long_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """No watch of Nodes is ended by the server between two cuts of its line."""
    monkeypatch.setattr("homeport.client.wire.rhythm.Rhythm.seconds", lambda rhythm: RENEW_SECONDS)


@pytest.mark.usefixtures("long_watches")
@virtual
async def test_a_watch_of_nodes_that_is_never_renewed_in_order_keeps_nothing_at_rest() -> None:
    async with world() as w:
        line = Line(int(w.workload.server.url.rpartition(":")[2]))
        port = await line.start()
        await w.management.have(cluster(), secret(w.workload.server.pki.kubeconfig(f"https://127.0.0.1:{port}")))
        await w.connected()
        remote = w.remotes.get(CLUSTER)
        assert remote is not None
        seen = Seen(w, remote)
        remote.attend(POD, PODS, closely=False)
        await asyncio.sleep(120)
        assert remote.is_at_rest(POD, PODS)
        for each in range(60):  # what happens tells that the connection works, as far as anybody can know
            await w.workload.have(node(f"n{each}"))
            await asyncio.sleep(3)
            if not each % 6:
                line.cut()
        await w.workload.have(pod("p"))
        assert await seen.until("p") < 1
        await line.close()


@virtual
async def test_a_node_that_changes_at_rest_is_noticed_at_once() -> None:
    async with at_rest() as (w, _, _):
        await w.workload.have(node("n1"))
        began = w.management.clock.monotonic()
        await w.until(lambda: w.nodes == [(None, "n1")])
        assert w.management.clock.monotonic() - began < 1


@virtual
async def test_a_server_that_hangs_at_rest_is_noticed_within_fifty_seconds() -> None:
    async with world() as w:
        line = Line(int(w.workload.server.url.rpartition(":")[2]))
        port = await line.start()
        await w.management.have(cluster(), secret(w.workload.server.pki.kubeconfig(f"https://127.0.0.1:{port}")))
        await w.connected()
        remote = w.remotes.get(CLUSTER)
        assert remote is not None
        remote.watch(POD, PODS)
        remote.attend(POD, PODS, closely=False)
        await asyncio.sleep(300)
        assert connections(w) == 1
        w.told.clear()
        hung = w.management.clock.monotonic()
        line.hang()
        await w.until(lambda: bool(w.told))
        assert w.management.clock.monotonic() - hung <= 51
        assert w.remotes.failures(CLUSTER) > 0
        await w.until(lambda: w.remotes.get(CLUSTER) is None)
        assert w.management.clock.monotonic() - hung <= 130
        await line.close()


@virtual
async def test_a_server_that_dies_at_rest_is_noticed_and_what_changed_is_known_when_it_is_back() -> None:
    async with at_rest() as (w, _, seen):
        port = int(w.workload.server.url.rpartition(":")[2])
        assert w.workload.server.http is not None
        died = w.management.clock.monotonic()
        await w.workload.server.http.drain(0)
        await asyncio.sleep(10)
        assert w.remotes.failures(CLUSTER) >= 1
        await w.workload.have(pod("p"))
        await w.workload.server.serve(port=port)
        await seen.until("p")
        assert w.management.clock.monotonic() - died <= 60
        await asyncio.sleep(120)
        assert connections(w) == 1
