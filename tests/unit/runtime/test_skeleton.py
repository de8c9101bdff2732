from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from homeport.client.errors import Unavailable
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.event import EVENT
from homeport.runtime.outcome import Wait
from homeport.runtime.pace import Pace
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler
from homeport.runtime.testing import Plane, plane, virtual
from unit.runtime.runtime_sample import WIDGET, WIDGETS, Widget, widget

A = Key("default", "a")
PAUSED = "example.com/paused"


class Widgets(ObjectReconciler[Widget, Scope[Widget]]):
    """Copies spec.size to status.size, and returns `wait`."""

    controller_name = "widgets"
    kind = Widget
    field_manager = "widgets"
    finalizer = "example.com/widget"
    former_finalizers = frozenset({"example.com/old"})

    def __init__(self, p: Plane) -> None:
        super().__init__(p.manager)
        self.wait: Wait | None = None
        self.left: list[Key] = []

    def load(self, obj: Widget) -> Scope[Widget]:
        return Scope(obj)

    def pause(self, scope: Scope[Widget]) -> bool:
        paused = PAUSED in scope.object.metadata.annotations
        scope.report("Paused", "True" if paused else "False", "Annotation", "", "2026-01-01T00:00:00Z")
        return paused

    def phases(self, scope: Scope[Widget]) -> Sequence[Phase[Scope[Widget]]]:
        return [self.drop_finalizer] if scope.deleting else [self.hold_finalizer, self.copy]

    async def gone(self, key: Key) -> Wait | None:
        self.left.append(key)
        return None

    async def reconcile_paused(self, scope: Scope[Widget]) -> Wait | None:
        return Wait("Settling", after=5.0)

    async def copy(self, scope: Scope[Widget]) -> Wait | None:
        scope.object.status.size = scope.object.spec.size
        return self.wait


def conditions(found: Widget) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in found.status.conditions}


@virtual
async def test_a_finalizer_of_a_former_name_is_replaced_and_those_of_others_stay() -> None:
    async with plane(crds=[WIDGETS]) as p:
        body = widget("a", size=2)
        body["metadata"]["finalizers"] = ["example.com/old", "example.com/theirs"]
        await p.have(body)
        assert (await p.reconcile(Widgets(p), A)).error is None
        found = await p.client.get(Widget, A)
        assert found.metadata.finalizers == ["example.com/theirs", "example.com/widget"]
        assert found.status.size == 2


@virtual
async def test_a_deletion_drops_the_finalizer_by_whatever_name_and_reports_on_what_is_left() -> None:
    async with plane(crds=[WIDGETS]) as p:
        for name, finalizers in (("a", ["example.com/old"]), ("b", ["example.com/widget", "example.com/theirs"])):
            body = widget(name)
            body["metadata"]["finalizers"] = finalizers
            await p.have(body)
            await p.client.delete(WIDGET, Key("default", name))
        reconciler = Widgets(p)
        assert (await p.reconcile(reconciler, A)).error is None
        assert (await p.reconcile(reconciler, A)).error is None
        assert reconciler.left == [A]
        assert (await p.reconcile(reconciler, Key("default", "b"))).error is None
        kept = await p.client.get(Widget, Key("default", "b"))
        assert kept.metadata.finalizers == ["example.com/theirs"]
        assert conditions(kept)["Ready"] == ("True", "Ready")


@virtual
async def test_nothing_is_done_for_an_object_that_went_before_it_got_its_finalizer() -> None:
    class Late(Widgets):
        copied = False

        async def hold_finalizer(self, scope: Scope[Widget]) -> Wait | None:
            await self.client.delete(WIDGET, A)
            return await super().hold_finalizer(scope)

        async def copy(self, scope: Scope[Widget]) -> Wait | None:
            self.copied = True
            return None

    async with plane(crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        reconciler = Late(p)
        outcome = await p.reconcile(reconciler, A)
        assert (outcome.error, outcome.wait) == (None, None)
        assert not reconciler.copied


@virtual
async def test_a_paused_object_is_reported_and_nothing_else_is_done() -> None:
    async with plane(crds=[WIDGETS]) as p:
        body = widget("a", size=2)
        body["metadata"]["annotations"] = {PAUSED: ""}
        await p.have(body)
        outcome = await p.reconcile(Widgets(p), A)
        assert outcome.wait == Wait("Settling", after=5.0)
        found = await p.client.get(Widget, A)
        assert conditions(found) == {"Paused": ("True", "Annotation")}
        assert (found.status.size, found.metadata.finalizers) == (0, [])


@virtual
async def test_a_kind_without_a_condition_gets_none() -> None:
    class Plain(Widgets):
        condition = ""

        def pause(self, scope: Scope[Widget]) -> bool:
            return False

    async with plane(crds=[WIDGETS]) as p:
        await p.have(widget("a", size=2))
        reconciler = Plain(p)
        for reconciler.wait in (Wait("Away"), None):
            assert (await p.reconcile(reconciler, A)).error is None
            found = await p.client.get(Widget, A)
            assert (found.status.size, found.status.conditions) == (2, [])


@virtual
async def test_a_status_that_nobody_acts_on_is_written_when_its_time_has_come() -> None:
    class NeverUrgent(Scope[Widget]):
        @property
        def urgent(self) -> bool:
            return False

    class Paced(Widgets):
        pace = Pace(30.0)

        def load(self, obj: Widget) -> Scope[Widget]:
            return NeverUrgent(obj)

    def add(p: Plane) -> None:
        p.manager.add(Paced(p).controller)

    async with plane(add, crds=[WIDGETS]) as p:
        await p.have(widget("a", size=2))
        await asyncio.sleep(20)
        assert (await p.client.get(Widget, A)).status.size == 0
        await asyncio.sleep(20)
        assert (await p.client.get(Widget, A)).status.size == 2


@virtual
async def test_an_expected_error_is_a_wait_and_any_other_is_raised() -> None:
    class Failing(Widgets):
        error: Exception = Unavailable("away")

        async def copy(self, scope: Scope[Widget]) -> Wait | None:
            raise self.error

        def expected(self, scope: Scope[Widget], error: Exception) -> Wait | None:
            return Wait("Away", str(error), after=1.0) if isinstance(error, Unavailable) else None

    async with plane(crds=[WIDGETS]) as p:
        await p.have(widget("a"))
        reconciler = Failing(p)
        outcome = await p.reconcile(reconciler, A)
        assert (outcome.error, outcome.wait) == (None, Wait("Away", "away", after=1.0))
        assert conditions(await p.client.get(Widget, A))["Ready"] == ("False", "Away")
        reconciler.error = KeyError("x")
        assert (await p.reconcile(reconciler, A)).error is reconciler.error
        assert conditions(await p.client.get(Widget, A))["Ready"] == ("False", "ReconcileError")


@virtual
async def test_an_expected_wait_becomes_one_warning_when_it_lasts() -> None:
    class Quiet(Widgets):
        waits_are_events = False

    made: list[Widgets] = []

    def add(p: Plane) -> None:
        made.append(Quiet(p))
        p.manager.add(made[0].controller)

    async def events(p: Plane) -> list[tuple[Any, ...]]:
        found = (await p.client.list(EVENT)).items
        return [(each["type"], each["reason"], each["message"]) for each in found]

    async with plane(add, crds=[WIDGETS]) as p:
        made[0].wait = Wait("Away", "it does not answer", after=10.0)
        await p.have(widget("a"))
        await asyncio.sleep(60)
        assert await events(p) == []
        made[0].wait = Wait("Away", "it does not answer", after=10.0, warning=True)
        await asyncio.sleep(60)
        assert await events(p) == [("Warning", "Away", "it does not answer")]


@virtual
async def test_a_controller_is_woken_by_the_changes_that_its_predicate_names() -> None:
    class Picky(Widgets):
        def predicate(self, old: Widget | None, new: Widget | None) -> bool:
            return old is None or new is None or old.spec.size != new.spec.size

    seen: list[int] = []

    class Counting(Picky):
        async def copy(self, scope: Scope[Widget]) -> Wait | None:
            seen.append(scope.object.spec.size)
            return await super().copy(scope)

    def add(p: Plane) -> None:
        p.manager.add(Counting(p).controller)

    async with plane(add, crds=[WIDGETS]) as p:
        await p.have(widget("a", size=1))
        await p.settle()
        seen.clear()
        await p.client.patch(WIDGET, A, MergePatch({"metadata": {"labels": {"x": "1"}}}))
        await p.settle()
        assert seen == []
        await p.client.patch(WIDGET, A, MergePatch({"spec": {"size": 2}}))
        await p.settle()
        assert seen[-1:] == [2]
