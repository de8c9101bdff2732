"""Tasks of Prism Central that end badly, are cancelled, or never end."""

from __future__ import annotations

from itertools import pairwise

import pytest

from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Fault, Match, TaskFailure, TaskHang
from homeport.sim.prism.entity import Task
from scenario.nutanix.bench import Nutanix, nutanix


def strike(n: Nutanix, effect: TaskFailure | TaskHang, operation: str, times: int | None = 1) -> None:
    n.prism.faults.add(Fault(effect, Match(operation=operation), times=times))


def running(n: Nutanix) -> Task:
    (only,) = [task for task in n.prism.world.tasks if not task.over and not task.parent]
    return only


def cancel(n: Nutanix) -> None:
    """Somebody does, in Prism Central."""
    n.prism.power.tasks.cancel(running(n))


@virtual
async def test_a_task_that_fails_is_an_event_and_a_condition_in_prism_s_own_words() -> None:
    async with nutanix() as n:
        strike(n, TaskFailure(code="VMM-30100", message="The disk image is corrupt."), "kVmCreate")
        await n.machine()
        text = await n.g.machine_says("a", "could not be created", "The disk image is corrupt.")
        assert text.startswith("Rejected")
        assert any("The disk image is corrupt." in each for each in await n.g.events("Rejected"))
        (machine,) = await n.g.ready("a")
        assert (machine.status.failure_reason, machine.status.failure_message) == (None, None)
        assert n.vendor.created == ["a"]


@virtual
async def test_a_vm_that_can_not_be_created_is_tried_again_after_a_pause_each_time() -> None:
    async with nutanix() as n:
        strike(n, TaskFailure(code="VMM-30100", message="The disk image is corrupt."), "kVmCreate", times=None)
        await n.machine()
        await n.g.machine_says("a", "The disk image is corrupt.")
        await n.g.pass_time(100)
        tried = [each for each in n.prism.journal if each.method == "POST" and each.path.endswith("/config/vms")]
        assert len(tried) >= 2
        assert all(later.time - earlier.time >= 10 for earlier, later in pairwise(tried))


@pytest.mark.parametrize("operation", ["kVmCreate", "kVmPowerOn"])
def test_a_task_that_never_ends_is_reported_holds_nobody_else_and_may_be_cancelled(operation: str) -> None:
    @virtual
    async def run() -> None:
        async with nutanix() as n:
            strike(n, TaskHang(), operation)
            await n.machine("stuck")
            await n.machine("well")
            await n.g.ready("well", timeout=60)
            text = await n.g.machine_says("stuck", "TaskOverdue", "cancel it", timeout=1200)
            assert running(n).ext_id in text
            assert await n.g.events("TaskOverdue")
            before = n.vendor.requests()
            await n.g.pass_time(600)
            asked = [e for e in n.prism.journal if e.number > before and "/tasks/" in e.path]
            assert len(asked) <= 15, "what takes long is looked at now and then"
            begun = n.g.plane.clock.monotonic()
            await n.machine("late")
            await n.g.ready("late", timeout=60)
            assert n.g.plane.clock.monotonic() - begun < 20, "nobody waits for the slow one"
            cancel(n)
            await n.g.machine_says("stuck", "cancelled", timeout=120)
            await n.g.ready("stuck", timeout=120)
            assert sorted(n.vendor.created) == ["late", "stuck", "well"]

    run()


@pytest.mark.parametrize("operation", ["kVmPowerOn", "kVmDelete"])
def test_a_machine_whose_task_never_ends_can_be_deleted_all_the_same(operation: str) -> None:
    @virtual
    async def run() -> None:
        async with nutanix() as n:
            strike(n, TaskHang(), operation)
            await n.machine()
            if operation == "kVmDelete":
                await n.g.ready("a")
            else:
                await n.g.machine_says("a", "PoweringOn")
            await n.g.delete("a")
            await n.g.deleted("a", timeout=1200)
            assert n.vendor.machines() == []

    run()


@virtual
async def test_a_machine_that_is_deleted_before_it_is_made_waits_until_it_can_not_come_any_more() -> None:
    async with nutanix() as n:
        strike(n, TaskHang(), "kVmCreate")
        await n.machine()
        await n.g.machine_says("a", "CreatingVM")
        await n.g.delete("a")
        await n.g.machine_says("a", "TaskOverdue", "waiting for create to finish", timeout=1200)
        cancel(n)
        await n.g.deleted("a", timeout=120)
        assert n.vendor.machines() == []
