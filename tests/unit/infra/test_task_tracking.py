"""Tasks of vendors: followed together, reported when they take too long; machines that vanish are looked for twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from homeport.infra.vendor.task import OVERDUE_SECONDS, Absence, Overdue, Poller, Task
from homeport.runtime.clock import LoopClock
from homeport.runtime.testing import virtual


@virtual
async def test_a_task_that_ends_wakes_who_waits_for_it() -> None:
    asked: list[Sequence[str]] = []
    state = Task("t", "running")

    async def read(ids: Sequence[str]) -> Sequence[Task]:
        asked.append(list(ids))
        return [state]

    poller, woken = Poller(read, LoopClock(), "Acme"), asyncio.Event()
    poller.follow("t", "uid", woken.set)
    await asyncio.sleep(10)
    assert asked
    assert not woken.is_set()
    state = Task("t", "succeeded")
    await asyncio.wait_for(woken.wait(), 10)
    found = await poller.state("t")
    assert found is not None
    assert found.status == "succeeded"
    await poller.close()


@virtual
async def test_a_task_that_takes_too_long_is_reported_with_the_name_of_the_vendor() -> None:
    overdue, task = Overdue(LoopClock(), "Acme"), Task("t", "running", 40)
    assert overdue.wait("uid", task, "Creating", "machine a is being created").reason == "Creating"
    await asyncio.sleep(OVERDUE_SECONDS)
    wait = overdue.wait("uid", task, "Creating", "machine a is being created")
    assert wait.reason == "TaskOverdue"
    assert wait.message.startswith("machine a is being created (task t, running, 40 %), for more than 15 minutes")
    assert "see in Acme" in wait.message
    other = Task("u", "running")
    assert overdue.wait("uid", other, "Creating", "machine a is being created").reason == "Creating"


@virtual
async def test_an_absence_that_nobody_caused_is_believed_at_the_second_look() -> None:
    absence = Absence(LoopClock())
    wait = absence.confirm("uid", "vm-1")
    assert wait is not None
    assert "vm-1" in wait.message
    await asyncio.sleep(wait.after or 0)
    assert absence.confirm("uid", "vm-1") is None


@virtual
async def test_the_absence_of_what_we_removed_or_never_made_is_believed_at_once() -> None:
    absence = Absence(LoopClock())
    absence.expect("uid")
    assert absence.confirm("uid", "vm-1") is None
    assert absence.confirm("other", "") is None
