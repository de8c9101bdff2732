from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from homeport.client.errors import Conflict, Forbidden
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.controller import Controller
from homeport.runtime.event import EVENT
from homeport.runtime.lease import LeaseLost
from homeport.runtime.outcome import Terminal, Wait
from homeport.runtime.pace import Pace
from homeport.runtime.reconciler import Scope, finish_write, run_phases
from homeport.runtime.testing import Plane, plane, reconcile_once, virtual
from present import present
from unit.runtime.runtime_sample import WIDGET, WIDGETS, Sizes, Widget, widget

A = Key("default", "a")


def raising(error: Exception) -> Any:
    class Raising(Sizes):
        async def _copy(self, scope: Scope[Widget]) -> Wait | None:
            scope.object.status.size = 1
            raise error

    return Raising


@virtual
async def test_a_terminal_error_is_reported_and_raised() -> None:
    outcome, state = await reconcile_once(raising(Terminal("Odd", "size is odd")), A, widget("a"), crds=[WIDGETS])
    assert isinstance(outcome.error, Terminal)
    (found,) = state["Widget", A]["status"]["conditions"]
    assert (found["status"], found["reason"], found["message"]) == ("False", "Odd", "size is odd")
    assert state["Widget", A]["status"]["size"] == 1  # what the phases observed counts all the same


class _Patient(Scope[Widget]):
    urgent = False


class _Paced(Sizes):
    """Writes only what lasts for a second, and stops for good at once."""

    pace = Pace(1.0, settle=True)

    async def reconcile(self, key: Key) -> Wait | None:
        scope = _Patient(present(self.cache.get(key)))
        return await self.reported(scope, run_phases(scope, [self._stop]))

    async def _stop(self, scope: Scope[Widget]) -> Wait | None:
        raise Terminal("Odd", "size is odd")


@virtual
async def test_a_terminal_error_is_written_at_once_since_no_later_loop_could_do_that() -> None:
    outcome, state = await reconcile_once(_Paced, A, widget("a"), crds=[WIDGETS])
    assert isinstance(outcome.error, Terminal)
    (found,) = state["Widget", A]["status"]["conditions"]
    assert (found["reason"], found["message"]) == ("Odd", "size is odd")


class _Warning(Sizes):
    """Warns in each loop, and writes only what lasts for a second."""

    pace = Pace(1.0, settle=True)

    async def reconcile(self, key: Key) -> Wait | None:
        self.seen.append(key)
        scope = _Patient(present(self.cache.get(key)))
        return await self.reported(scope, run_phases(scope, [self._warn]))

    async def _warn(self, scope: Scope[Widget]) -> Wait | None:
        return Wait("Odd", "size is odd", warning=True, after=0.1)


@virtual
async def test_a_warning_is_one_event_though_its_status_is_held_back() -> None:
    async with plane(crds=[WIDGETS]) as p:
        warning = _Warning(p)
        p.manager.add(Controller("warning", Widget, warning, clock=p.clock))
        await p.start()
        await p.have(widget("a"))
        await asyncio.sleep(30.0)
        assert len(warning.seen) > 100
        (event,) = (await p.client.list(EVENT)).items
        assert (event["reason"], event["type"], event.get("series")) == ("Odd", "Warning", None)


@virtual
async def test_what_the_server_refuses_and_bugs_are_reported_too() -> None:
    for error, message in ((Forbidden("no right to do that"), "no right to do that"), (KeyError("x"), "'x'")):
        outcome, state = await reconcile_once(raising(error), A, widget("a"), crds=[WIDGETS])
        assert outcome.error is error
        (found,) = state["Widget", A]["status"]["conditions"]
        assert (found["reason"], found["message"]) == ("ReconcileError", message)


@virtual
async def test_a_lost_race_or_lease_says_nothing_about_the_object() -> None:
    for error in (Conflict("somebody was faster"), LeaseLost("gone")):
        outcome, _ = await reconcile_once(raising(error), A, widget("a"), crds=[WIDGETS])
        assert outcome.error is error
        assert outcome.written == ()


@virtual
async def test_a_status_computed_from_an_old_state_is_refused() -> None:
    class Late(Sizes):
        async def _copy(self, scope: Scope[Widget]) -> Wait | None:
            patch = MergePatch({"status": {"conditions": [{"type": "Other", "status": "True"}]}})
            await world.client.patch(WIDGET, A, patch, subresource="status")
            return await super()._copy(scope)

    async with plane(crds=[WIDGETS]) as world:
        await world.have(widget("a", size=2))
        outcome = await world.reconcile(Late(world), A)
        assert isinstance(outcome.error, Conflict)
        again = await world.reconcile(Sizes(world), A)
        assert again.error is None
        found = await world.client.get(Widget, A)
        assert [c["type"] for c in found.status.conditions] == ["Other", "Ready"]


@virtual
async def test_an_object_that_was_made_again_does_not_get_the_status_of_its_namesake() -> None:
    class Late(Sizes):
        async def _copy(self, scope: Scope[Widget]) -> Wait | None:
            await world.client.delete(WIDGET, A)
            await world.have(widget("a", size=5))
            return await super()._copy(scope)

    async with plane(crds=[WIDGETS]) as world:
        await world.have(widget("a", size=2))
        assert isinstance((await world.reconcile(Late(world), A)).error, Conflict)
        assert "status" not in await world.client.get(WIDGET, A)


@virtual
async def test_an_object_that_went_needs_no_status() -> None:
    class Late(Sizes):
        async def _copy(self, scope: Scope[Widget]) -> Wait | None:
            await world.client.delete(WIDGET, A)
            return await super()._copy(scope)

    async with plane(crds=[WIDGETS]) as world:
        await world.have(widget("a", size=2))
        outcome = await world.reconcile(Late(world), A)
        assert (outcome.error, outcome.wait) == (None, None)


@virtual
async def test_a_phase_that_writes_the_object_itself_goes_on_from_there() -> None:
    class Finalizing(Sizes):
        async def _check(self, scope: Scope[Widget]) -> Wait | None:
            patch = MergePatch({"metadata": {"finalizers": ["example.com/x"]}})
            scope.update_metadata(await self.client.patch(Widget, scope.key, patch))
            return None

    outcome, state = await reconcile_once(Finalizing, A, widget("a", size=2), crds=[WIDGETS])
    assert outcome.error is None
    assert state["Widget", A]["status"]["size"] == 2


@pytest.mark.parametrize("annotates", [False, True], ids=["", "while the phases write"])
def test_a_status_that_was_written_meanwhile_is_put_back(annotates: bool) -> None:
    class Slow(Sizes):
        async def _copy(self, scope: Scope[Widget]) -> Wait | None:
            scope.object.status.size = 7
            before = scope.object.metadata.resource_version
            patch = MergePatch(scope.status_patch())
            written = await self.client.patch(Widget, scope.key, patch, subresource="status")
            if annotates:
                patch = MergePatch({"metadata": {"annotations": {"example.com/x": "y"}}})
                scope.update_metadata(await self.client.patch(Widget, scope.key, patch))
            scope.rebase(written, before)
            scope.object.status.size = 0  # as it was read
            return None

    @virtual
    async def run() -> None:
        outcome, state = await reconcile_once(Slow, A, widget("a"), crds=[WIDGETS])
        assert outcome.error is None
        assert not state["Widget", A]["status"].get("size")

    run()


@virtual
async def test_a_wait_is_one_status_patch_and_one_event_however_often_it_is_found() -> None:
    def add(p: Plane) -> None:
        p.manager.add(Controller("sizes", Widget, Sizes(p), clock=p.clock))

    async with plane(add, crds=[WIDGETS]) as p:
        await p.have(widget("a", hold=True))
        await p.settle(quiet=70)
        before = p.server.store.revision
        await asyncio.sleep(3600)  # sixty more rounds
        assert p.server.store.revision == before
        (event,) = (await p.client.list(EVENT)).items
        assert (event["reason"], event["message"]) == ("Held", "spec.hold is set")


@virtual
async def test_a_shutdown_waits_for_a_status_that_is_being_written() -> None:
    class Slow:
        """The server takes a second for every patch, and goes on with it when nobody waits for the answer."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner
            self.state = "idle"

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        async def patch(self, *args: Any, **options: Any) -> Any:
            self.state = "writing"
            await asyncio.sleep(1)
            made = await self._inner.patch(*args, **options)
            self.state = "written"
            return made

    async with plane(crds=[WIDGETS]) as p:
        await p.have(widget("a", size=4))
        slow = Slow(p.manager.client)
        reconciler = Sizes(p)
        reconciler.client = slow
        p.manager.add(Controller("sizes", Widget, reconciler, clock=p.clock))
        await p.start()
        await asyncio.sleep(0.5)
        assert slow.state == "writing"
        await p.stop()
        assert slow.state == "written"
        assert (await p.client.get(Widget, A)).status.size == 4


@virtual
async def test_a_reconcile_that_is_cancelled_in_a_phase_writes_no_status() -> None:
    class Endless(Sizes):
        async def _copy(self, scope: Scope[Widget]) -> Wait | None:
            scope.object.status.size = 1
            await asyncio.sleep(1000)
            return None

    def add(p: Plane) -> None:
        p.manager.add(Controller("sizes", Widget, Endless(p), clock=p.clock))

    async with plane(add, crds=[WIDGETS]) as p:
        await p.have(widget("a", size=4))
        await asyncio.sleep(10)
        await p.stop()
        assert "status" not in await p.client.get(WIDGET, A)


@virtual
async def test_changing_a_scope_changes_nothing_in_the_cache() -> None:
    async with plane(crds=[WIDGETS]) as p:
        await p.have(widget("a", size=4))
        found = await p.client.get(Widget, A)
        scope = Scope(found)
        scope.object.metadata.labels["x"] = "1"
        scope.object.status.conditions.append({"type": "X"})
        assert found.metadata.labels == {}
        assert found.status.conditions == []


async def test_a_write_that_failed_is_freed_without_the_garbage_collector() -> None:
    """With it, everything that the reconcile has read."""

    async def write() -> None:
        raise Conflict("the object has been modified")

    gc.disable()
    try:
        try:
            await finish_write(write())
        except Conflict as error:
            freed = weakref.ref(error)
        await asyncio.sleep(0)
        assert freed() is None
    finally:
        gc.enable()
