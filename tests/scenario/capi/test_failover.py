"""Two replicas of the controllers, one Lease: when the leader is lost the other goes on in the middle of a rollout."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from campaign import sample
from capikit.harness import Harness, harness
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
async def replica(h: Harness, who: str) -> AsyncIterator[tuple[Manager, asyncio.Task[None]]]:
    manager = h.manager(MODE, who)
    task = asyncio.create_task(manager.run(), name=who)
    try:
        yield manager, task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, BaseExceptionGroup):
            await task


@pytest.mark.parametrize("moment", sample([20.0, 90.0, 160.0], 1))
@pytest.mark.parametrize("gone", ["stopped", "cut off"])
def test_the_other_replica_goes_on_in_the_middle_of_a_rollout(gone: str, moment: float) -> None:
    @virtual
    async def run() -> None:
        lines: list[Line] = []  # of the manager that never runs, of the first, of the second

        def wrap(client: Client) -> Line:
            lines.append(Line(client))
            return lines[-1]

        async with (
            harness(start=False, pace=REALISTIC, wrap=wrap, errors=gone == "cut off") as h,
            replica(h, "first") as (first, leading),
            replica(h, "second") as (second, _),
        ):
            await first.ready.wait()
            await h.create("one", 3, 2)
            await h.steady("one", 3, 2, "v1.30.0")
            assert not second.ready.is_set()
            with Census(h) as census:
                census.rules = {"one-cp": between(2, 4), "one-md-0": between(2, 3)}
                await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"version": "v1.31.0"}})
                worker = {"spec": {"template": {"spec": {"version": "v1.31.0"}}}}
                await h.patch(MachineDeployment, "one-md-0", worker)
                await asyncio.sleep(moment)
                if gone == "stopped":
                    leading.cancel()
                else:
                    lines[1].cut = True  # it must notice by itself that it may no longer write
                async with asyncio.timeout(120):
                    await second.ready.wait()
                await h.steady("one", 3, 2, "v1.31.0")
                await asyncio.sleep(120)  # the Lease is written all the time: nothing ever comes to rest
            assert len(h.infra.created) == 10
            assert len(h.infra.machines) == 5
            (workload,) = h.fleet.clusters()
            assert len(workload.etcd.members) == 3

    run()
