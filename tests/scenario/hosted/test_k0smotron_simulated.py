"""k0smotron's controllers and simulated k0s: a worker joins with the token of a JoinTokenRequest, and everything is back
after a restart of the plane."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from homeport.api.k0smotron.v1beta2 import Cluster, JoinTokenRequest
from homeport.capi import conversion
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions as capi_definitions
from homeport.capi.remote.pki import secret_data
from homeport.client.protocol import Key
from homeport.hosted.k0smotron import admission
from homeport.hosted.k0smotron.definition import definitions
from homeport.hosted.k0smotron.install import install
from homeport.machinery import condition
from homeport.runtime.clock import run_virtual
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from homeport.sim.machine.workload.kind import NODE
from scenario.builtin.plane import SECRET
from scenario.hosted.k0smotron_stage import kmc, request
from scenario.hosted.stage import Stage, stage
from unit.sim.machine.k0s_kit import K0S_IMAGE, worker_data
from unit.sim.machine.sim_kit import Secrets, Sim

EDGE = Key("default", "edge")


@contextlib.asynccontextmanager
async def controllers(s: Stage) -> AsyncIterator[None]:
    manager = Manager(s.plane.server.client(), clock=s.plane.clock)
    install(manager, Capi.make(manager, proxy=s.proxy.url()))
    running = asyncio.create_task(manager.run())
    await manager.ready.wait()
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def prepare(s: Stage) -> None:
    hooks = Hooks()
    conversion.register(hooks)
    admission.register(hooks)
    install_hooks(hooks, s.plane.server)
    crds = [each for each in capi_definitions() if each["spec"]["names"]["kind"] == "Cluster"]
    await establish(s.plane.client, *crds, *definitions())


async def available(s: Stage, replicas: int = 1) -> bool:
    found = await s.plane.client.get(Cluster, EDGE)
    return condition.is_true(found.status.conditions, "Available") and found.status.ready_replicas == replicas


async def made(s: Stage) -> bool:
    found = await s.plane.client.get(JoinTokenRequest, Key("default", "join"))
    return condition.is_true(found.status.conditions, "JoinTokenSecretCreated")


async def have(s: Stage, *objects: dict[str, Any]) -> None:
    kinds = {"Cluster": Cluster.__resource__, "JoinTokenRequest": JoinTokenRequest.__resource__, "Secret": SECRET}
    for each in objects:
        each["metadata"]["namespace"] = "default"
        await s.plane.client.create(each, kind=kinds[each["kind"]])


def test_a_worker_joins_with_the_token_of_a_request_and_is_there_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            await prepare(s)
            await have(s, kmc(), request())
            async with controllers(s):
                await s.plane.until(lambda: available(s), "the control plane is available")
                await s.plane.until(lambda: made(s), "the token exists")
                token = secret_data(await s.plane.get(SECRET, "join"), "token").decode()
                machines = Sim(s.network, s.fleet, s.plane.clock, Secrets.make(s.plane.clock))
                console = await machines.boot("md-0", worker_data(token), image=K0S_IMAGE)
                assert await machines.node("md-0") is not None, console
            await s.leave()
            await s.enter()
            async with controllers(s):
                await s.plane.settle(60)
                await s.plane.until(lambda: available(s), "the control plane is available again")
                (cluster,) = s.fleet.hosted.values()
                assert (await cluster.client().get(NODE, Key("", "md-0"))).name == "md-0"

    run_virtual(main())


DATABASE = "postgres://me:secret@db.example.com/k0s"


@pytest.mark.parametrize(
    ("storage", "replicas"),
    [
        ({"type": "etcd"}, 3),
        ({"type": "nats"}, 1),
        ({"type": "kine", "kine": {"dataSourceSecretName": "db"}}, 2),
    ],
    ids=["etcd", "nats", "kine"],
)
def test_a_simulated_control_plane_runs_on_every_storage(
    tmp_path: Path, storage: dict[str, Any], replicas: int
) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            await prepare(s)
            database = {"K0SMOTRON_KINE_DATASOURCE_URL": DATABASE}
            await have(s, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": database})
            await have(s, kmc(storage=storage, replicas=replicas))
            async with controllers(s):
                await s.plane.until(lambda: available(s, replicas), "all replicas are available")
                assert len(s.fleet.hosted) == 1

    run_virtual(main())
