"""Everything a config waits for wakes it at once: in virtual time no second passes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from homeport import bootstrap
from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.apiserver.embedded import EmbeddedServer
from homeport.bootstrap.token import SECRET
from homeport.capi.capi import Capi
from homeport.client.protocol import Key
from homeport.runtime.manager import Manager
from homeport.runtime.testing import plane, shared_pki, versions, virtual
from reconcile.bootstrap.bootstrap_kit import CLUSTER, Bench, crds


@asynccontextmanager
async def running() -> AsyncIterator[Bench]:
    async with plane(crds=crds()) as p:
        workload = await EmbeddedServer.open(None, shared_pki(), clock=p.clock.now)
        capi = Capi.make(p.manager)
        bootstrap.install(p.manager, capi)
        try:
            await p.start()
            yield Bench(p, workload, capi)
        finally:
            await p.stop()
            await workload.close(drain_seconds=1.0)


async def _created(b: Bench, key: Key) -> None:
    started = b.plane.clock.monotonic()
    await b.plane.until(KubeadmConfig, key, lambda c: bool(c.status.initialization.data_secret_created), 60)
    assert b.plane.clock.monotonic() - started < 1


async def _set(b: Bench, **initialization: bool) -> None:
    await b.patch("Cluster", CLUSTER, {"status": {"initialization": initialization}}, status=True)


@virtual
async def test_the_infrastructure_wakes_the_first_machine_and_the_control_plane_the_worker() -> None:
    async with running() as b:
        await b.cluster(provisioned=False)
        first, worker = await b.machine("cp", control_plane=True), await b.machine("w")
        await b.plane.settle()
        await _set(b, infrastructureProvisioned=True)
        await _created(b, first)
        await b.connect()
        await b.plane.settle()
        await _set(b, controlPlaneInitialized=True)
        await _created(b, worker)


@virtual
async def test_the_loser_of_the_lock_begins_when_the_winners_machine_is_gone() -> None:
    async with running() as b:
        await b.cluster()
        first = await b.machine("cp-a", control_plane=True)
        await _created(b, first)
        second = await b.machine("cp-b", control_plane=True)
        await b.plane.settle()
        await b.client.delete(b.plane.resource({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine"}), first)
        await _created(b, second)


@virtual
async def test_certificates_wake_the_machine_that_needs_them() -> None:
    async with running() as b:
        await b.cluster(managed=True)
        key = await b.machine("cp", control_plane=True)
        await b.plane.settle()
        await b.certificates()
        await _created(b, key)


@virtual
async def test_a_connection_wakes_the_machine_that_needs_a_token() -> None:
    async with running() as b:
        await b.cluster(initialized=True)
        await b.certificates()
        key = await b.machine("w")
        await b.plane.settle()
        await b.connect()
        await _created(b, key)


@virtual
async def test_a_connection_after_a_restart_brings_back_the_token_of_a_machine_that_has_not_joined() -> None:
    async with running() as b:
        await b.cluster(initialized=True)
        await b.certificates()
        await b.connect()
        await _created(b, await b.machine("w"))
        (token,) = await b.tokens()
        await b.plane.stop()
        await b.workload.client().delete(SECRET, Key("kube-system", token.name))
        b.plane.manager = Manager(b.plane.server.client(), clock=b.plane.clock)
        b.capi = Capi.make(b.plane.manager)
        bootstrap.install(b.plane.manager, b.capi)
        await b.plane.start()
        await b.plane.settle()  # the config waits: there is no connection yet
        await b.connect()
        await b.plane.settle()
        assert [each["data"]["token-secret"] for each in await b.tokens()] == [token["data"]["token-secret"]]


@virtual
async def test_the_end_of_a_pause_wakes_the_machine() -> None:
    async with running() as b:
        await b.cluster(paused=True)
        key = await b.machine("cp", control_plane=True)
        await b.plane.settle()
        await b.patch("Cluster", CLUSTER, {"spec": {"paused": None}})
        await _created(b, key)


@virtual
async def test_nothing_is_written_when_nothing_changes() -> None:
    async with running() as b:
        await b.cluster()
        await _created(b, await b.machine("cp", control_plane=True))
        await b.connect()
        await _set(b, controlPlaneInitialized=True)
        worker = await b.machine("w")
        await _created(b, worker)
        await b.patch("Machine", worker, {"status": {"nodeRef": {"name": "w"}}}, status=True)
        await b.plane.settle()
        before = versions(b.plane)
        await b.plane.settle(quiet=7200)
        assert versions(b.plane) == before
