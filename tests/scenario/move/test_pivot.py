"""A plane moves everything to another one, and steps back."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from homeport.api.cluster.v1beta2 import MachineDeployment
from homeport.app.plane.standby import Standby
from homeport.app.plane.supervisor import Supervisor
from homeport.move.pivot import pivot
from homeport.move.standby import step_back, step_forward
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, plane, virtual
from scenario.move.pair import Killed, Mortal, have_cluster, pair

GUIDE = "this plane has stepped back: its clusters were moved to there"


@pytest.mark.timeout(300)
@virtual
async def test_a_pivot_that_is_killed_after_any_write_is_finished_by_calling_it_again() -> None:
    async with pair() as both:
        await have_cluster(both.source)
        before, vms = set(await both.nodes(both.source)), copy.deepcopy(both.world())
        said: list[str] = []
        deaths = 0
        while True:
            left = [13]
            sides = (Mortal(both.source.client, left), Mortal(both.target.client, left))
            try:
                await pivot(*sides, said.append, target_name="there", clock=both.source.clock)
                break
            except Killed:
                deaths += 1
        assert deaths > 3
        assert await both.nodes(both.source) == {}
        assert set(await both.nodes(both.target)) == before
        await both.target.running("one", 1, 1)
        assert both.world() == vms
        assert said[-1] == "stepping back: the controllers of the source stop"
        await pivot(both.source.client, both.target.client, said.append, target_name="there")
        standby = Standby(both.source.client)
        watching = asyncio.create_task(standby.run())
        await standby.closed()
        assert standby.why.startswith(GUIDE)
        # Moving back makes it the plane that works again.
        await both.mover(back=True).run()
        await standby.opened()
        assert standby.why == ""
        watching.cancel()
        await both.source.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 2}})
        await both.source.running("one", 1, 2)


@asynccontextmanager
async def supervised(p: Plane) -> AsyncIterator[tuple[Supervisor, Standby]]:
    standby, supervisor = Standby(p.server.client()), Supervisor(clock=p.clock)
    supervisor.add("standby", standby.run)
    supervisor.add_manager("controllers", lambda: Manager(p.server.client(), clock=p.clock), standby)
    running = asyncio.create_task(supervisor.run())
    try:
        yield supervisor, standby
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@virtual
async def test_controllers_are_off_while_a_plane_has_stepped_back_and_work_before_and_after() -> None:
    async with plane() as p, supervised(p) as (supervisor, standby):
        controllers = supervisor.parts[1]
        await asyncio.sleep(1)
        assert (controllers.state, standby.why, len(supervisor.managers)) == ("running", "", 1)
        await step_back(p.client, "there", "2026-11-16T20:00:00Z")
        await asyncio.sleep(1)
        assert (controllers.state, len(supervisor.managers)) == ("following", 0)
        assert f"{GUIDE} at 2026-11-16T20:00:00Z" in standby.why
        await step_forward(p.client)
        await asyncio.sleep(1)
        assert (controllers.state, standby.why, len(supervisor.managers)) == ("running", "", 1)
        assert controllers.crashes == 0


@virtual
async def test_a_plane_that_has_stepped_back_starts_without_controllers() -> None:
    async with plane() as p:
        await step_back(p.client, "there", "2026-11-16T20:00:00Z")
        async with supervised(p) as (supervisor, _):
            await asyncio.sleep(10)
            assert (supervisor.parts[1].state, supervisor.managers) == ("following", [])
