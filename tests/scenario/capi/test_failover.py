"""Two replicas of the controllers, one Lease: when the leader is lost the other goes on in the middle of a rollout."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from capikit.yard import Yard, yard
from homeport.api.cluster.v1beta2 import MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Client
from homeport.runtime.manager import Elected, Manager
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from scenario.capi.census import Census, between
from scenario.capi.fault import Line

MODE = Elected("default", "controllers")


@asynccontextmanager
async def replica(y: Yard, who: str) -> AsyncIterator[tuple[Manager, asyncio.Task[None]]]:
    manager = y.manager(MODE, who)
    task = asyncio.create_task(manager.run(), name=who)
    try:
        yield manager, task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, BaseExceptionGroup):
            await task


@pytest.mark.parametrize("moment", [20.0, 90.0, 160.0])
@pytest.mark.parametrize("gone", ["stopped", "cut off"])
def test_the_other_replica_goes_on_in_the_middle_of_a_rollout(gone: str, moment: float) -> None:
    @virtual
    async def run() -> None:
        lines: list[Line] = []  # of the manager that never runs, of the first, of the second

        def wrap(client: Client) -> Line:
            lines.append(Line(client))
            return lines[-1]

        async with (
            yard(start=False, pace=REALISTIC, wrap=wrap, errors=gone == "cut off") as y,
            replica(y, "first") as (first, leading),
            replica(y, "second") as (second, _),
        ):
            await first.ready.wait()
            await y.create("one", 3, 2)
            await y.steady("one", 3, 2, "v1.30.0")
            assert not second.ready.is_set()
            with Census(y) as census:
                census.rules = {"one-cp": between(2, 4), "one-md-0": between(2, 3)}
                await y.patch(KubeadmControlPlane, "one-cp", {"spec": {"version": "v1.31.0"}})
                worker = {"spec": {"template": {"spec": {"version": "v1.31.0"}}}}
                await y.patch(MachineDeployment, "one-md-0", worker)
                await asyncio.sleep(moment)
                if gone == "stopped":
                    leading.cancel()
                else:
                    lines[1].cut = True  # it must notice by itself that it may no longer write
                async with asyncio.timeout(120):
                    await second.ready.wait()
                await y.steady("one", 3, 2, "v1.31.0")
                await asyncio.sleep(120)  # the Lease is written all the time: nothing ever comes to rest
            assert len(y.infra.created) == 10
            assert len(y.infra.machines) == 5
            (workload,) = y.fleet.clusters()
            assert len(workload.etcd.members) == 3

    run()
