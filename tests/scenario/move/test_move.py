"""Clusters move from one plane to another: killed at any point, their machines do not notice."""

from __future__ import annotations

import asyncio
import copy
import itertools
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.app.platform import chosen
from homeport.capi.name import PAUSED
from homeport.client.errors import Unavailable
from homeport.move import MoveRefused
from homeport.move.directory import Directory
from homeport.move.mover import Mover, Options
from homeport.move.record import read as read_record
from homeport.move.replica import MARK
from homeport.runtime.testing import establish, plane, virtual
from scenario.move.pair import Killed, Mortal, Pair, have_cluster, pair
from scenario.nutanix import manifest


@virtual
async def test_a_cluster_moves_and_its_machines_do_not_notice() -> None:
    async with pair() as both:
        await have_cluster(both.source)
        before, vms = set(await both.nodes(both.source)), copy.deepcopy(both.world())
        count = await both.mover().run()
        assert count == len(before)
        assert await both.nodes(both.source) == {}
        assert set(await both.nodes(both.target)) == before
        await both.target.running("one", 1, 1)
        await both.target.plane.settle(60)
        assert both.world() == vms
        await both.target.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 2}})
        await both.target.running("one", 1, 2)
        assert vms.items() <= both.world().items()


async def moved_in_steps(both: Pair, steps: Iterable[int], rest: float) -> int:
    """Each process is killed after so many writes, until one gets through; `rest` passes between two of them."""
    for deaths, writes in enumerate(itertools.cycle(steps)):
        try:
            await both.mover(writes).run()
        except Killed:
            await both.check()
            await asyncio.sleep(rest)
        else:
            return deaths
    raise AssertionError


@pytest.mark.timeout(300)
@virtual
async def test_a_move_that_is_killed_after_each_of_its_writes_is_finished_by_the_next_process() -> None:
    async with pair() as both:
        await have_cluster(both.source)
        before, vms = set(await both.nodes(both.source)), copy.deepcopy(both.world())
        # The first write of a process that continues says that it does. A copy takes up to three.
        deaths = await moved_in_steps(both, (2, 3, 4, 5), rest=1.0)
        assert deaths > len(before)
        assert await both.nodes(both.source) == {}
        assert set(await both.nodes(both.target)) == before
        await both.target.running("one", 1, 1)
        await both.target.plane.settle(60)
        assert both.world() == vms


@pytest.mark.parametrize("first", ["source", "target"])
@virtual
async def test_planes_that_restart_in_any_order_during_a_move_leave_the_machines_alone(first: str) -> None:
    async with pair() as both:
        await have_cluster(both.source)
        before, vms = set(await both.nodes(both.source)), copy.deepcopy(both.world())
        sites = [both.source, both.target] if first == "source" else [both.target, both.source]
        deaths = 0
        while True:
            try:
                await both.mover(17).run()
                break
            except Killed:
                deaths += 1
            for site in sites:
                await site.restart()
                await asyncio.sleep(30)
                await both.check()
            await asyncio.sleep(1800)  # what is paused rests, however long that takes
            assert both.world() == vms
        assert deaths > 5
        assert await both.nodes(both.source) == {}
        assert set(await both.nodes(both.target)) == before
        await both.target.running("one", 1, 1)
        assert both.world() == vms


@virtual
async def test_a_target_that_is_unreachable_for_a_while_leaves_the_source_paused_and_complete() -> None:
    async with pair() as both:
        await have_cluster(both.source)
        before, vms = set(await both.nodes(both.source)), copy.deepcopy(both.world())
        with pytest.raises(Unavailable):
            await both.mover(outage=30).run()
        await both.check()
        assert set(await both.nodes(both.source)) == before
        cluster = await both.source.get(Cluster, "one")
        assert cluster.spec.paused
        await asyncio.sleep(3600)
        assert both.world() == vms
        await both.mover().run()
        assert set(await both.nodes(both.target)) == before
        await both.target.running("one", 1, 1)
        assert both.world() == vms


@virtual
async def test_a_move_that_is_aborted_leaves_everything_as_it_was() -> None:
    async with pair() as both:
        await have_cluster(both.source)
        before, vms = set(await both.nodes(both.source)), copy.deepcopy(both.world())
        with pytest.raises(Killed):
            await both.mover(40).run()
        assert await both.nodes(both.target)
        assert await both.mover().abort()
        assert await both.nodes(both.target) == {}
        assert set(await both.nodes(both.source)) == before
        assert not any(node.paused for node in (await both.nodes(both.source)).values())
        assert not await both.mover().abort()
        await both.source.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 2}})
        await both.source.running("one", 1, 2)
        assert vms.items() <= both.world().items()
        await both.mover().run()
        await both.target.running("one", 1, 2)


@virtual
async def test_a_move_that_deletes_already_can_not_be_aborted() -> None:
    async with pair() as both:
        await have_cluster(both.source)
        writes = 0
        while not (await read_record(both.source.client)) or (await phase(both)) == "Copying":
            writes += 40
            with pytest.raises(Killed):
                await both.mover(writes).run()
        with pytest.raises(MoveRefused, match="can no longer be aborted"):
            await both.mover().abort()
        await both.mover().run()
        await both.target.running("one", 1, 1)


async def phase(both: Pair) -> str:
    held = await read_record(both.source.client)
    return held.record.phase if held is not None else ""


@virtual
async def test_a_move_to_another_target_than_the_one_that_was_begun_is_refused() -> None:
    async with pair() as both, plane() as third:
        await establish(third.client, *chosen().definitions())
        await have_cluster(both.source)
        with pytest.raises(Killed):
            await both.mover(40).run()
        other = Mover(both.source.client, third.client, Options("", "third"), lambda text: None)
        with pytest.raises(MoveRefused, match=r"a move to there started at .* finish it with --to there"):
            await other.run()
        with pytest.raises(MoveRefused, match="run it again without --namespace"):
            await both.mover(namespace="default").run()
        await both.mover().run()


@virtual
async def test_a_cluster_moves_there_and_back_again() -> None:
    async with pair() as both:
        await have_cluster(both.source)
        before, vms = set(await both.nodes(both.source)), copy.deepcopy(both.world())
        await both.mover().run()
        await both.target.running("one", 1, 1)
        await both.mover(back=True).run()
        assert await both.nodes(both.target) == {}
        assert set(await both.nodes(both.source)) == before
        await both.source.running("one", 1, 1)
        await both.source.plane.settle(60)
        assert both.world() == vms


@virtual
async def test_a_move_through_a_directory_that_is_killed_again_and_again_loses_nothing() -> None:
    async with pair() as both:
        await have_cluster(both.source)
        before, vms = set(await both.nodes(both.source)), copy.deepcopy(both.world())
        with tempfile.TemporaryDirectory() as path:
            folder = Directory(Path(path))
            await folder.prepare(both.source.client)
            for here, there in ((both.source.client, folder), (folder, both.target.client)):
                while True:
                    left = [11]
                    sides = (Mortal(here, left), Mortal(there, left))
                    try:
                        await Mover(*sides, Options("", "there"), lambda text: None, both.source.clock).run()
                        break
                    except Killed:
                        await asyncio.sleep(60)
                        assert both.world() == vms
        assert await both.nodes(both.source) == {}
        assert set(await both.nodes(both.target)) == before
        await both.target.running("one", 1, 1)
        assert both.world() == vms


@virtual
async def test_what_the_user_has_paused_stays_paused() -> None:
    async with pair() as both:
        await have_cluster(both.source)
        await both.source.patch(Cluster, "one", {"spec": {"paused": True}})
        await both.source.patch(MachineDeployment, "one-md-0", {"metadata": {"annotations": {PAUSED: "yes"}}})
        await both.mover().run()
        cluster = await both.target.get(Cluster, "one")
        assert cluster.spec.paused
        assert MARK not in cluster.metadata.annotations
        assert PAUSED not in cluster.metadata.annotations
        deployment = await both.target.get(MachineDeployment, "one-md-0")
        assert deployment.metadata.annotations[PAUSED] == "yes"


@virtual
async def test_a_cluster_that_is_being_created_is_not_moved_and_not_touched() -> None:
    async with pair() as both:
        await both.source.have(*manifest.cluster_objects("one", 1, 0))
        with pytest.raises(MoveRefused, match=r"Cluster default/one: its (infrastructure|control plane) is not"):
            await both.mover().run()
        assert await read_record(both.source.client) is None
        assert not (await both.source.get(Cluster, "one")).spec.paused
        await both.source.running("one", 1)


@virtual
async def test_the_status_is_there_before_any_controller_has_looked() -> None:
    async with pair() as both:
        await have_cluster(both.source)
        await both.target.plane.stop()
        machines = {each.metadata.name: each for each in await both.source.list(Machine)}
        await both.mover().run()
        for each in await both.target.list(Machine):
            status = machines[each.metadata.name].status
            assert each.status.node_ref == status.node_ref
            assert each.status.phase == "Running"
            assert each.metadata.uid != machines[each.metadata.name].metadata.uid
        await both.target.begin()
        await both.target.running("one", 1, 1)
