"""The list of all VMs that clusters share while many of them are created."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from homeport.infra.error import Unreachable
from homeport.providers.nutanix.inventory import Inventory
from homeport.providers.nutanix.prism.record import Prism
from homeport.runtime.clock import SystemClock


class SlowCentral:
    """A Prism Central whose lists show the VMs of the moment at which they began, and end when they may."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.lists = 0
        self.fails = False
        self.may_end = asyncio.Event()

    async def find_vms(self) -> list[str]:
        self.lists += 1
        seen, failed = list(self.names), self.fails
        await self.may_end.wait()
        if failed:
            raise Unreachable("no answer")
        return seen


@pytest.fixture
def central() -> SlowCentral:
    return SlowCentral()


@pytest.fixture
def inventory(central: SlowCentral) -> Inventory:
    return Inventory(cast(Prism, central), SystemClock())


async def begun(inventory: Inventory, count: int = 1) -> list[asyncio.Task[Any]]:
    """Questions that are asked and not answered yet."""
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(_current(inventory)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def _current(inventory: Inventory) -> Any:
    return await inventory.current()


async def test_clusters_that_ask_during_a_list_share_the_next_one(central: SlowCentral, inventory: Inventory) -> None:
    first = await begun(inventory)
    others = await begun(inventory, 30)
    central.may_end.set()
    await asyncio.gather(*first, *others)
    assert central.lists == 2


async def test_a_list_that_began_before_the_question_is_no_answer(central: SlowCentral, inventory: Inventory) -> None:
    (first,) = await begun(inventory)
    central.names.append("created-meanwhile")
    (second,) = await begun(inventory)
    central.may_end.set()
    assert await first == []
    assert await second == ["created-meanwhile"]
    central.names.append("later")
    (third,) = await begun(inventory)
    assert await third == ["created-meanwhile", "later"]


async def test_a_list_that_failed_answers_no_other_question(central: SlowCentral, inventory: Inventory) -> None:
    central.fails = True
    (first,) = await begun(inventory)
    central.fails = False
    (second,) = await begun(inventory)
    central.may_end.set()
    with pytest.raises(Unreachable):
        await first
    assert await second == []


async def test_others_are_answered_when_the_one_whose_list_it_is_stops(
    central: SlowCentral, inventory: Inventory
) -> None:
    (first,) = await begun(inventory)
    (second,) = await begun(inventory)
    first.cancel()
    await asyncio.wait([first])
    central.may_end.set()
    assert await second == []
