"""Run strategies, and the requests to start, stop and restart VMs."""

from __future__ import annotations

import asyncio

import pytest

from homeport.client.errors import Conflict
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Crash, Fault, Match
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.kind import POD, VM, VMI
from homeport.sim.harvester.pace import Pace
from unit.sim.harvester.harvester_kit import class_of, harvester, press, vm_manifest

NODE_0 = Key("default", "node-0")


async def started(made: Harvester, strategy: str) -> None:
    await made.client().create(vm_manifest("node-0", await class_of(made), strategy=strategy), kind=VM)
    await made.settled()


async def shown(made: Harvester) -> str:
    return str((await made.client().get(VM, NODE_0))["status"]["printableStatus"])


async def instance_uid(made: Harvester) -> str:
    return (await made.client().get(VMI, NODE_0)).uid


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("Always", "Running"),
        ("RerunOnFailure", "Running"),
        ("Once", "Running"),
        ("Manual", "Stopped"),
        ("Halted", "Stopped"),
    ],
)
@virtual
async def test_a_new_vm_runs_or_not_as_its_strategy_says(strategy: str, expected: str) -> None:
    async with harvester() as made:
        await started(made, strategy)
        assert await shown(made) == expected


@virtual
async def test_a_vm_that_is_started_by_hand_goes_back_to_the_strategy_it_had() -> None:
    async with harvester() as made:
        await started(made, "RerunOnFailure")
        await press(made, "node-0", "stop")
        await made.settled()
        assert await shown(made) == "Stopped"
        await press(made, "node-0", "start")
        await made.settled()
        assert await shown(made) == "Running"
        assert (await made.client().get(VM, NODE_0))["spec"]["runStrategy"] == "RerunOnFailure"


@virtual
async def test_stop_halts_a_vm_that_always_runs_and_start_runs_it_again() -> None:
    async with harvester() as made:
        await started(made, "Always")
        await press(made, "node-0", "stop")
        await made.settled()
        assert (await made.client().get(VM, NODE_0))["spec"]["runStrategy"] == "Halted"
        assert await shown(made) == "Stopped"
        await press(made, "node-0", "start")
        await made.settled()
        assert (await made.client().get(VM, NODE_0))["spec"]["runStrategy"] == "Always"
        assert await shown(made) == "Running"


@virtual
async def test_restart_gives_a_vm_another_instance_with_the_same_address() -> None:
    async with harvester() as made:
        await started(made, "Always")
        before = await made.client().get(VMI, NODE_0)
        await press(made, "node-0", "restart")
        await made.settled()
        after = await made.client().get(VMI, NODE_0)
        assert after.uid != before.uid
        assert after["status"]["interfaces"][0]["ipAddress"] == before["status"]["interfaces"][0]["ipAddress"]
        assert "stateChangeRequests" not in (await made.client().get(VM, NODE_0))["status"]


@pytest.mark.parametrize(
    ("strategy", "action", "expected"),
    [
        ("Always", "start", "VM is already running"),
        ("Halted", "restart", "RunStategy Halted does not support manual restart requests"),
        ("Manual", "stop", "VM is not running"),
    ],
)
@virtual
async def test_a_request_that_makes_no_sense_is_refused(strategy: str, action: str, expected: str) -> None:
    async with harvester() as made:
        await started(made, strategy)
        with pytest.raises(Conflict, match=expected):
            await press(made, "node-0", action)


@virtual
async def test_a_deleted_instance_of_a_vm_that_always_runs_comes_back() -> None:
    async with harvester() as made:
        await started(made, "Always")
        before = await instance_uid(made)
        await made.client().delete(VMI, NODE_0)
        await made.settled()
        assert await instance_uid(made) != before
        assert await shown(made) == "Running"


@virtual
async def test_a_crashed_guest_runs_again_under_rerun_on_failure() -> None:
    crash = Fault(Crash(seconds=60.0), Match(kind="vm", entity="node-0", nth=1))
    async with harvester(faults=[crash]) as made:
        await started(made, "RerunOnFailure")
        before = await instance_uid(made)
        await asyncio.sleep(61)
        await made.settled()
        assert await instance_uid(made) != before
        assert await shown(made) == "Running"


@virtual
async def test_a_guest_takes_its_time_to_shut_down_but_not_more_than_its_grace() -> None:
    async with harvester(pace=Pace(shutdown=60.0)) as made:
        await started(made, "Always")
        client = made.client()
        grace = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 20}}}}
        await client.patch(VM, NODE_0, MergePatch({**grace}))
        await press(made, "node-0", "restart")
        await made.settled()
        assert await shown(made) == "Stopping"
        await asyncio.sleep(61)
        await made.settled()
        assert await shown(made) == "Running"
        await client.delete(VM, NODE_0)
        await made.settled()
        assert await shown(made) == "Terminating"
        await asyncio.sleep(21)
        await made.settled()
        assert not (await client.list(VM)).items
        assert not [pod for pod in (await client.list(POD)).items if pod["metadata"]["namespace"] == "default"]
