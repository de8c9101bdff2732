"""A replica that starts while the API server does, or before its definitions are installed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from homeport.api.meta import Resource
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.http.exchange import Exchange
from homeport.apiserver.http.server import Answer, Dispatch
from homeport.app.definition import install_definitions
from homeport.app.kubernetes import manager
from homeport.app.kubernetes.install import NAMESPACE
from homeport.app.kubernetes.layout import SYSTEM_NAMESPACE
from homeport.app.kubernetes.manager import Cluster, Replica, StartError
from homeport.app.kubernetes.standin import PodLog
from homeport.app.platform import Platform
from homeport.capi.component import Component, Setup
from homeport.client.config import Config
from homeport.client.credential import Certificate, Static
from homeport.client.errors import ApiError, Forbidden, TooManyRequests, Unavailable
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.client.wire.retry import NEVER
from homeport.runtime.controller import Controller
from homeport.runtime.definition import definition
from homeport.runtime.lease import LEASE
from homeport.runtime.queue import Backoff
from homeport.runtime.testing import shared_pki

BOAT = Resource("harbour.example.com", "v1", "Boat", "boats")
WRITE = Write(field_manager="boats")
BINDING = Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", False)


class Launch:
    """Launches every boat."""

    def __init__(self, setup: Setup) -> None:
        self._client = setup.manager.client

    async def reconcile(self, key: Key) -> None:
        await self._client.patch(BOAT, key, MergePatch({"metadata": {"labels": {"launched": "yes"}}}), WRITE)


def _install(setup: Setup) -> None:
    setup.manager.add(Controller("boats", BOAT, Launch(setup)))


PLATFORM = Platform((Component(name="boats", install=_install, definitions=lambda: [definition(BOAT)]),))


@dataclass
class Port:
    """A server, and how it answers those who ask what it serves."""

    server: EmbeddedServer
    url: str
    refusals: list[ApiError] = field(default_factory=list)
    binding: dict[str, Any] = field(default_factory=dict)  # that it has not read yet
    said: list[str] = field(default_factory=list)
    running: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, line: str) -> None:
        self.said.append(line)
        if line == "controllers: running":
            self.running.set()

    async def gate(self, exchange: Exchange, dispatch: Dispatch) -> Answer:
        if self.refusals and exchange.info.path.startswith(f"/apis/{BOAT.group}"):
            raise self.refusals.pop(0)
        if exchange.info.path == "/readyz" and self.binding:
            await self.server.client().create(self.binding, kind=BINDING)
            self.binding = {}
            raise Unavailable("[-]informer-sync failed: reason withheld")
        return await dispatch(exchange)

    def config(self, user: str, *groups: str) -> Config:
        issued = self.server.pki.issue_client(user, groups)
        return Config(self.url, Static(cert=Certificate(issued.certificate, issued.key)), self.server.pki.ca_pem)

    @asynccontextmanager
    async def replica(self, user: str = "admin", *groups: str) -> AsyncIterator[asyncio.Task[None]]:
        config = self.config(user, *groups or ("system:masters",))
        async with HttpClient(config, retry=NEVER) as client:
            show = PodLog(self.note)
            running = asyncio.create_task(Replica(client, Cluster(None), "default", show, PLATFORM).run())
            try:
                yield running
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    async def launched(self) -> None:
        """A boat is created, and then launched by a controller."""
        client = self.server.client()
        made = await client.create({"metadata": {"name": "b", "namespace": "default"}}, kind=BOAT)
        query = Query(namespace="default", resource_version=made.resource_version)
        async with asyncio.timeout(30), client.watch(BOAT, query) as events:
            async for event in events:
                if "launched" in (event.object["metadata"].get("labels") or {}):
                    return


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Port]:
    monkeypatch.setattr(manager, "Backoff", lambda **_: Backoff(first=0.01, limit=0.01))
    monkeypatch.setattr(manager, "DEFINITIONS_SECONDS", 0.01)
    monkeypatch.setattr(manager, "HOME_SECONDS", 0.01)
    pki = shared_pki()
    server = await EmbeddedServer.open(None, pki)
    url = await server.serve()
    made = Port(server, url)
    assert server.http is not None
    server.http.gate = made.gate
    yield made
    await server.close(drain_seconds=1.0)


@pytest.mark.parametrize(
    "refusal",
    [
        Unavailable("the request has been made before all known HTTP paths have been installed, please retry"),
        Forbidden('RBAC: clusterrole.rbac.authorization.k8s.io "system:discovery" not found'),
        TooManyRequests("too many requests, please try again later"),
    ],
    ids=["unavailable", "forbidden", "too-many-requests"],
)
async def test_a_server_that_is_starting_is_not_taken_for_one_without_the_definitions(
    port: Port, refusal: ApiError
) -> None:
    await install_definitions(port.server.client(), PLATFORM.definitions())
    port.refusals += [refusal] * 3
    async with port.replica():
        await port.launched()
    assert not [line for line in port.said if "not managed" in line]
    assert len([line for line in port.said if str(refusal) in line]) == 3


async def test_a_server_that_has_not_read_its_roles_yet_is_asked_again(port: Port) -> None:
    await install_definitions(port.server.client(), PLATFORM.definitions())
    role = {"apiGroup": BINDING.group, "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": BINDING.group, "kind": "User", "name": "homeport"}
    port.binding = {"metadata": {"name": "homeport"}, "roleRef": role, "subjects": [subject]}
    async with port.replica("homeport", "users"):
        await port.launched()
    assert [line for line in port.said if "is not ready yet (/readyz answers 503)" in line]


async def test_controllers_start_when_their_definitions_are_installed_later(port: Port) -> None:
    async with port.replica():
        async with asyncio.timeout(30):
            await port.running.wait()
        missing = "1 CustomResourceDefinitions are missing (boats.harbour.example.com, ...)"
        assert [line for line in port.said if missing in line]
        await install_definitions(port.server.client(), PLATFORM.definitions())
        await port.launched()


async def test_a_replica_that_works_before_an_installation_begins_holds_its_lease_from_then_on(port: Port) -> None:
    """Otherwise the installed Pods would work beside it."""
    client = port.server.client()
    await install_definitions(client, PLATFORM.definitions())
    async with port.replica():
        await port.launched()
        await client.create({"metadata": {"name": SYSTEM_NAMESPACE}}, kind=NAMESPACE)
        query = Query(namespace=SYSTEM_NAMESPACE)
        async with asyncio.timeout(30), client.watch(LEASE, query, initial_events=True) as events:
            async for event in events:
                if event.type == "ADDED":
                    assert event.object.name == "homeport"
                    assert event.object["spec"]["holderIdentity"] == "default/homeport"
                    break


async def test_a_user_who_may_not_ask_what_is_served_is_told_so(port: Port) -> None:
    port.refusals += [Forbidden("path /apis is not for you")] * 20
    async with port.replica() as running:
        with pytest.raises(StartError, match="path /apis is not for you"):
            async with asyncio.timeout(30):
                await running
