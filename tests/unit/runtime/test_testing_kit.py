from __future__ import annotations

import asyncio

import pytest

from homeport.client.protocol import Key
from homeport.runtime.clock import Deadlock, run_virtual
from homeport.runtime.controller import Controller
from homeport.runtime.testing import Plane, plane, reconcile_once, versions, virtual
from unit.runtime.runtime_sample import WIDGET, WIDGETS, Sizes, Widget, sized, widget

A = Key("default", "a")


def sizes(p: Plane) -> None:
    p.manager.add(Controller("sizes", Widget, Sizes(p), clock=p.clock))


@virtual
async def test_a_plane_in_virtual_time_brings_an_object_to_its_goal() -> None:
    async with plane(sizes, crds=[WIDGETS]) as p:
        await p.have(widget("a", size=3))
        found = await p.until(Widget, A, sized(3))
        assert found.status.conditions[0]["reason"] == "Ready"


async def test_a_plane_in_real_time_does_the_same_over_http() -> None:
    async with plane(sizes, crds=[WIDGETS], serve=True) as p:
        await p.http().create(widget("a", size=3), kind=WIDGET)
        await p.until(Widget, A, sized(3))


@virtual
async def test_a_wait_in_vain_tells_conditions_events_and_log_lines() -> None:
    async with plane(sizes, crds=[WIDGETS]) as p:
        await p.have(widget("a", size=3, hold=True))
        with pytest.raises(AssertionError) as failed:
            await p.until(Widget, A, sized(3), timeout=5)
    text = str(failed.value)
    assert "Widget default/a: right_size did not come true within 5 s" in text
    assert "Ready=False Held: spec.hold is set" in text
    assert "sizes waits: Held: spec.hold is set" in text
    assert "Normal Held: spec.hold is set" in text
    assert "info: waiting controller='sizes' object='default/a'" in text


@virtual
async def test_a_wait_for_an_object_that_is_not_there_says_so() -> None:
    async with plane(sizes, crds=[WIDGETS]) as p:
        with pytest.raises(AssertionError, match="the object does not exist"):
            await p.until(Widget, A, sized(3), timeout=5)


@virtual
async def test_the_error_of_a_manager_is_raised_in_waiting_calls() -> None:
    async def job() -> None:
        raise ZeroDivisionError("a job of the manager")

    with pytest.raises(ExceptionGroup) as died:
        async with plane(sizes, lambda p: p.manager.job(job), crds=[WIDGETS]) as p:
            await p.until(Widget, A, sized(3), timeout=5)
    assert died.value.split(ZeroDivisionError)[0] is not None


@virtual
async def test_state_in_one_reconcile_state_out() -> None:
    outcome, state = await reconcile_once(Sizes, A, widget("a", size=2), crds=[WIDGETS])
    assert outcome.wait is None
    assert outcome.error is None
    assert outcome.written == ((WIDGET, A),)
    assert state["Widget", A]["status"]["size"] == 2


@virtual
async def test_a_reconcile_sees_what_was_made_after_the_one_before() -> None:
    async with plane(crds=[WIDGETS]) as p:
        reconciler = Sizes(p)
        for number in (1, 2):
            await p.have(widget(f"w{number}", size=number))
            assert (await p.reconcile(reconciler, Key("default", f"w{number}"))).written


@virtual
async def test_settled_objects_keep_their_versions() -> None:
    async with plane(sizes, crds=[WIDGETS]) as p:
        await p.have(*(widget(f"w{n}", size=n) for n in range(10)))
        await p.settle()
        before = versions(p)
        await asyncio.sleep(3600)
        assert versions(p) == before


@virtual
async def test_gone_waits_for_the_end_of_an_object() -> None:
    async with plane(sizes, crds=[WIDGETS]) as p:
        await p.have(widget("a"))

        async def delete_later() -> None:
            await asyncio.sleep(3)
            await p.client.delete(WIDGET, A)

        async with asyncio.TaskGroup() as group:
            group.create_task(delete_later())
            await p.gone(Widget, A)
        await p.have(widget("a"))
        with pytest.raises(AssertionError, match="it is still there"):
            await p.gone(Widget, A, timeout=1)


async def test_settling_by_time_is_refused_in_real_time() -> None:
    async with plane() as p:
        with pytest.raises(RuntimeError, match="virtual time"):
            await p.settle()


def test_a_deadlock_in_virtual_time_is_an_error_not_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeport.runtime.clock.VirtualLoop.patience", 0.05)

    async def forever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="everybody waits"):
        run_virtual(forever())
