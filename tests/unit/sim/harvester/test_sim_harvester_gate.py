"""Faults of a simulated Kubernetes API, seen by a client over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from homeport.api.meta import Resource
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.config import Config
from homeport.client.credential import Certificate, Static
from homeport.client.errors import ApiError, Conflict, TooManyRequests, Unavailable
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, Query
from homeport.client.wire.retry import NEVER
from homeport.runtime.testing import shared_pki
from homeport.sim.engine.document import DocumentError
from homeport.sim.engine.fault import parse_faults
from homeport.sim.engine.injector import Injector
from homeport.sim.engine.journal import Entry, Journal
from homeport.sim.harvester.fault import VOCABULARY
from homeport.sim.harvester.gate import KubernetesGate, RevisionHistory

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
HERE = Query(namespace="default")


class HandClock:
    time = 100.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


@dataclass
class Rehearsal:
    server: EmbeddedServer
    client: HttpClient
    faults: Injector
    journal: Journal
    clock: HandClock

    def inject(self, text: str) -> None:
        self.faults.set(parse_faults(f"faults: [{text}]", vocabulary=VOCABULARY))

    async def create(self, name: str) -> None:
        await self.client.create({"metadata": {"name": name, "namespace": "default"}}, kind=CONFIG_MAP)

    async def names(self) -> list[str]:
        return [each["metadata"]["name"] for each in (await self.client.list(CONFIG_MAP, HERE)).items]

    def stored(self, name: str) -> bool:
        return self.server.store.get("configmaps", f"default/{name}") is not None


@pytest.fixture
async def site() -> AsyncIterator[Rehearsal]:
    pki, clock = shared_pki(), HandClock()
    server = await EmbeddedServer.open(None, pki)
    url = await server.serve()
    faults, journal = Injector(clock), Journal()
    assert server.http is not None
    server.http.gate = KubernetesGate(faults, journal, RevisionHistory(server.store, clock), clock)
    issued = pki.issue_client("admin", ("system:masters",))
    config = Config(url, Static(cert=Certificate(issued.certificate, issued.key)), pki.ca_pem)
    async with HttpClient(config, retry=NEVER) as client:
        yield Rehearsal(server, client, faults, journal, clock)
    await server.close(drain_seconds=1.0)


async def test_a_request_is_refused_with_a_status_as_kubernetes_writes_it(site: Rehearsal) -> None:
    site.inject("{match: {verb: create, resource: configmaps, nth: 2}, effect: {kind: status, status: 409}}")
    await site.create("a")
    with pytest.raises(Conflict, match="refused on purpose"):
        await site.create("b")
    await site.create("c")
    assert not site.stored("b")


async def test_a_fault_meets_the_name_of_an_object_that_is_created(site: Rehearsal) -> None:
    site.inject("{match: {verb: create, entity: 'x-*'}, effect: {kind: throttle, retryAfter: 3}}")
    await site.create("a")
    with pytest.raises(TooManyRequests) as refused:
        await site.create("x-1")
    assert refused.value.retry_after == 3


@pytest.mark.parametrize("resource", ["secrets", "configmaps.apps", "configmaps/status"])
async def test_another_resource_is_not_met(site: Rehearsal, resource: str) -> None:
    site.inject(f"{{match: {{resource: {resource}}}, effect: {{kind: status, status: 503}}}}")
    await site.create("a")
    assert site.stored("a")


@pytest.mark.parametrize(("when", "stored"), [("before", False), ("after", True)])
async def test_a_connection_is_dropped_before_or_after_the_request_takes_effect(
    site: Rehearsal, when: str, stored: bool
) -> None:
    site.inject(f"{{name: lost, match: {{verb: create}}, effect: {{kind: drop, when: {when}}}, times: 1}}")
    with pytest.raises(Unavailable):
        await site.create("a")
    assert site.stored("a") is stored
    entry = next(each for each in site.journal if each.method == "POST")
    assert (entry.status, entry.faults, entry.route) == (0, ("lost",), "configmaps")


async def test_a_drop_after_a_refusal_is_a_drop(site: Rehearsal) -> None:
    await site.create("a")
    site.inject("{match: {verb: create}, effect: {kind: drop, when: after}}")
    with pytest.raises(Unavailable):
        await site.create("a")


async def test_reads_are_answered_from_the_past(site: Rehearsal) -> None:
    await site.create("a")
    site.clock.time += 60
    await site.create("b")
    site.inject("{match: {verb: list}, effect: {kind: stale, seconds: 30}}, "
                "{match: {verb: get}, effect: {kind: stale, seconds: 30}}")  # fmt: skip
    assert await site.names() == ["a"]
    with pytest.raises(ApiError, match="not found"):
        await site.client.get(CONFIG_MAP, Key("default", "b"))
    site.clock.time += 31
    assert "b" in await site.names()
    assert await site.client.get(CONFIG_MAP, Key("default", "b"))


@pytest.mark.parametrize("abrupt", ["false", "true"])
async def test_a_watch_is_cut_and_the_next_one_continues(site: Rehearsal, abrupt: str) -> None:
    site.inject(f"{{match: {{verb: watch}}, effect: {{kind: watch-cut, abrupt: {abrupt}}}, times: 1}}")
    again = asyncio.Event()

    def told(entry: Entry) -> None:
        if "watch=" in entry.query and not entry.faults:
            again.set()

    site.journal.on_entry = told
    listed = await site.client.list(CONFIG_MAP, HERE)
    since = Query(namespace="default", resource_version=listed.resource_version)
    async with asyncio.timeout(20), HttpClient(site.client.config) as client, client.watch(CONFIG_MAP, since) as events:
        first = asyncio.ensure_future(anext(aiter(events)))
        await again.wait()
        await site.create("late")
        assert (await first).object["metadata"]["name"] == "late"


async def test_a_slow_answer_comes_late(site: Rehearsal) -> None:
    site.inject("{match: {verb: create}, effect: {kind: delay, seconds: 0.05}}")
    begun = asyncio.get_running_loop().time()
    await site.create("a")
    assert asyncio.get_running_loop().time() - begun >= 0.05


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{effect: {kind: task-hang}}", r"f:1: faults\[0\].effect.kind: 'task-hang' does not apply to harvester"),
        ("{match: {operation: x}, effect: {kind: drop}}", r"match.operation: does not apply to harvester: remove it"),
    ],
)
def test_faults_that_mean_nothing_here_are_refused(text: str, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        parse_faults(f"faults: [{text}]", "f", VOCABULARY)


def test_faults_of_kubernetes_mean_nothing_to_prism() -> None:
    with pytest.raises(DocumentError, match=r"match.verb: does not apply to prism"):
        parse_faults("faults: [{match: {verb: create}, effect: {kind: drop}}]")
