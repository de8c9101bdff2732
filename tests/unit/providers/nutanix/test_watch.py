"""Looks at VMs for all who ask: few requests, everybody woken who has to be, nobody left waiting."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from homeport.infra.error import Denied, Unreachable
from homeport.providers.nutanix.prism.record import Vm
from homeport.providers.nutanix.watch import Watch
from homeport.runtime.clock import LoopClock
from homeport.runtime.testing import virtual


class Vendor:
    """The few verbs of Prism Central that a watch needs, on a table of VMs."""

    def __init__(self, *ids: str) -> None:
        self.table = {each: Vm(each, f"name-{each}", "pe", "on", addresses=("10.0.0.1",), etag="7") for each in ids}
        self.asked: list[list[str]] = []
        self.hidden: set[str] = set()  # from lists
        self.error: Exception | None = None
        self.silent = False

    async def vms(self, wanted: Mapping[str, str]) -> list[Vm]:
        self.asked.append(list(wanted))
        if self.silent:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return [self.table[each] for each in wanted if each in self.table and each not in self.hidden]

    async def vm(self, vm_id: str) -> Vm | None:
        self.asked.append([vm_id])
        return self.table.get(vm_id)

    def change(self, vm_id: str, **fields: Any) -> None:
        self.table[vm_id] = dataclasses.replace(self.table[vm_id], **fields)


def make(*ids: str) -> tuple[Watch, Vendor, list[str]]:
    vendor: Any = Vendor(*ids)
    return Watch(vendor, LoopClock()), vendor, []


async def found(watch: Watch, woken: list[str], *ids: str) -> list[Vm | None]:
    return list(
        await asyncio.gather(
            *(watch.find(f"of-{each}", each, f"name-{each}", partial(woken.append, each)) for each in ids)
        )
    )


@virtual
async def test_those_who_ask_together_share_a_request_and_are_answered_from_memory_afterwards() -> None:
    watch, vendor, woken = make("a", "b", "c")
    await found(watch, woken, "a", "b", "c")
    await found(watch, woken, "a", "b", "c")
    assert vendor.asked == [["a", "b", "c"]]
    await watch.close()


@virtual
async def test_one_list_a_minute_is_enough_and_only_who_changed_is_woken() -> None:
    watch, vendor, woken = make("a", "b", "c")
    await found(watch, woken, "a", "b", "c")
    await asyncio.sleep(600)
    assert len(vendor.asked) == 10
    assert woken == []
    vendor.change("b", power="off")
    await asyncio.sleep(60)
    assert woken == ["b"]
    (vm,) = await found(watch, woken, "b")
    assert vm is not None
    assert vm.power == "off"
    await watch.close()


@virtual
async def test_an_expected_change_is_noticed_soon() -> None:
    watch, vendor, woken = make("a")
    vendor.change("a", power="off")
    await found(watch, woken, "a")
    watch.hurry("of-a")
    await asyncio.sleep(1.0)
    vendor.change("a", power="on")
    await asyncio.sleep(1.1)
    assert woken == ["a"]
    watch.settle("of-a")
    before = len(vendor.asked)
    await asyncio.sleep(59)
    assert len(vendor.asked) - before <= 1
    await watch.close()


@virtual
async def test_what_never_comes_is_asked_for_less_and_less_often() -> None:
    watch, vendor, woken = make("a")
    await found(watch, woken, "a")
    watch.hurry("of-a")
    await asyncio.sleep(600)
    assert 40 <= len(vendor.asked) <= 55
    await watch.close()


@virtual
async def test_an_etag_is_never_remembered() -> None:
    watch, _, woken = make("a")
    (fresh,) = await found(watch, woken, "a")
    (kept,) = await found(watch, woken, "a")
    assert fresh is not None
    assert kept is not None
    assert (fresh.etag, kept.etag) == ("7", "")
    await watch.close()


@virtual
async def test_one_that_a_list_does_not_show_is_asked_for_by_itself() -> None:
    watch, vendor, woken = make("a", "b")
    await found(watch, woken, "a", "b")
    vendor.hidden.add("b")
    await asyncio.sleep(61)
    assert woken == []
    del vendor.table["b"]
    await asyncio.sleep(60)
    assert woken == ["b"]
    assert await found(watch, woken, "b") == [None]
    await watch.close()


@pytest.mark.parametrize("error", [Unreachable("down"), Denied("no")], ids=["down", "denied"])
def test_when_nobody_answers_everybody_looks_for_himself_and_the_watch_rests(error: Exception) -> None:
    @virtual
    async def run() -> None:
        watch, vendor, woken = make("a", "b")
        await found(watch, woken, "a", "b")
        vendor.error = error
        await asyncio.sleep(61)
        assert sorted(woken) == ["a", "b"]
        asked = len(vendor.asked)
        await asyncio.sleep(600)
        assert len(vendor.asked) == asked
        with pytest.raises(type(error)):
            await found(watch, woken, "a")
        vendor.error = None
        assert all(await found(watch, woken, "a", "b"))
        await watch.close()

    run()


@virtual
async def test_a_doubt_costs_one_vm_of_each_cluster_and_wakes_nobody_if_it_was_unfounded() -> None:
    watch, vendor, woken = make("a", "b", "c")
    vendor.change("c", cluster_id="other")
    await found(watch, woken, "a", "b", "c")
    for _ in range(10):
        watch.doubt()
        await asyncio.sleep(0.1)
    assert vendor.asked[1:] == [["b", "c"]]
    assert woken == []
    await asyncio.sleep(5)
    watch.doubt()
    await asyncio.sleep(0.1)
    assert vendor.asked[2:] == [["b", "c"]]
    await watch.close()


@virtual
async def test_a_doubt_that_is_confirmed_wakes_all_at_once() -> None:
    watch, vendor, woken = make("a", "b", "c")
    await found(watch, woken, "a", "b", "c")
    vendor.error = Unreachable("down")
    watch.doubt()
    await asyncio.sleep(0.1)
    assert sorted(woken) == ["a", "b", "c"]
    await watch.close()


@virtual
async def test_a_cluster_that_is_lost_wakes_its_own_machines_and_no_others() -> None:
    watch, vendor, woken = make("a", "b", "c", "d")
    vendor.change("d", cluster_id="other")
    await found(watch, woken, "a", "b", "c", "d")
    for each in ("a", "b", "c"):
        vendor.change(each, power="unknown")
    watch.doubt()
    await asyncio.sleep(0.1)
    assert sorted(woken) == ["a", "b", "c"]
    await watch.close()


@virtual
async def test_the_first_look_at_a_lost_cluster_wakes_all_its_machines_without_a_doubt() -> None:
    watch, vendor, woken = make("a", "b")
    await found(watch, woken, "a", "b")
    watch.hurry("of-a")
    for each in ("a", "b"):
        vendor.change(each, power="unknown")
    await asyncio.sleep(0.5)
    assert sorted(woken) == ["a", "b"]
    await watch.close()


@virtual
async def test_who_is_not_asked_for_any_more_is_not_looked_at_for_ever() -> None:
    watch, vendor, woken = make("a")
    await found(watch, woken, "a")
    await asyncio.sleep(1200)
    asked = len(vendor.asked)
    await asyncio.sleep(3600)
    assert len(vendor.asked) == asked
    assert len(watch) == 0


@virtual
async def test_closing_the_connection_ends_all_waits() -> None:
    watch, vendor, woken = make("a")
    vendor.silent = True
    for pause in (0.001, 1.0):
        waiting = asyncio.create_task(found(watch, woken, "a"))
        await asyncio.sleep(pause)
        await watch.close()
        with pytest.raises(Unreachable, match="closed"):
            await waiting
