"""The skeleton of a reconciler: load, pause, finalizer, phases, one status patch, events. It exists once, here.

A reconciler declares its kind, condition, finalizer and pace as attributes, builds a scope in `load`, and names its
phases in `phases`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from homeport.api.meta import Object
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait, sooner
from homeport.runtime.pace import Pace
from homeport.runtime.reconciler import ObjectGone, Phase, Reporting, Scope, run_phases

O = TypeVar("O", bound=Object)
S = TypeVar("S", bound=Scope[Any])


class ObjectReconciler(Reporting[S], Generic[O, S]):
    """Reconciles the objects of one kind, with a controller of its own: add that to the manager."""

    controller_name: str
    kind: type[O]
    field_manager: str
    finalizer = ""  # '': the kind needs none
    former_finalizers: frozenset[str] = frozenset()  # what the finalizer was called before
    workers = 8
    status_wakes = True  # see Controller
    own_writes_wake = True  # see Controller
    rests = False  # see Controller

    def predicate(self, old: O | None, new: O | None) -> bool:
        """Which changes of an object wake its own key: all of them, unless a reconciler narrows that."""
        del old, new
        return True

    def __init__(self, manager: Manager, *, paced: bool = True) -> None:
        """`paced` False: every status is written at once, whatever the pace of the kind."""
        if not paced:
            self.pace = Pace()
        super().__init__(manager.client, manager.recorder, manager=self.field_manager, clock=manager.clock)
        self.informers = manager.informers
        self.objects = self.informers.get(self.kind).cache
        self.controller = Controller(
            self.controller_name,
            self.kind,
            self,
            workers=self.workers,
            clock=manager.clock,
            status_wakes=self.status_wakes,
            own_writes_wake=self.own_writes_wake,
            rests=self.rests,
            predicate=self.predicate,
            shard_of=self.shard_of,
        )

    def shard_of(self, key: Key, obj: O | None) -> str | None:
        """The shard of an object that does not show it as others do. None: as the manager says."""
        del key, obj
        return None

    def all_keys(self, obj: object) -> list[Key]:
        """For watches: a change that concerns every object of the kind."""
        del obj
        return [key_of(each) for each in self.objects]

    async def reconcile(self, key: Key) -> Wait | None:
        obj = self.objects.get(key)
        if obj is None:
            self.forget(key)
            return await self.gone(key)
        scope = self.load(obj)
        if scope is None:
            return None
        if self.pause(scope):
            await self._store(scope)
            return sooner(await self.reconcile_paused(scope), scope.later)
        wait = await self.reported(scope, run_phases(scope, self.phases(scope)))
        return self.next_look(scope, wait)

    @abstractmethod
    def load(self, obj: O) -> S | None:
        """The object in work, with what it refers to. None: there is nothing to do yet, and a watch wakes us."""

    @abstractmethod
    def phases(self, scope: S) -> Sequence[Phase[S]]:
        """What to do, in order. The first phase that returns a Wait ends the loop."""

    def pause(self, scope: S) -> bool:
        """Whether reconciliation is paused. Reports that on the object."""
        del scope
        return False

    async def gone(self, key: Key) -> Wait | None:
        """The object does not exist. Reconcilers that leave something behind for it clear that up here."""
        del key
        return None

    async def leave(self, key: Key) -> None:
        """The object goes on to exist, and another replica works on it from now on."""
        self.forget(key)

    async def reconcile_paused(self, scope: S) -> Wait | None:
        """The object is paused. What was begun and can't be left half done is finished here."""
        del scope
        return None

    def next_look(self, scope: S, wait: Wait | None) -> Wait | None:
        """What is waited for, and when to look again if no event comes first."""
        return sooner(sooner(wait, scope.timer), scope.later)

    # -- finalizers --------------------------------------------------------------------------------------------

    async def hold_finalizer(self, scope: S) -> Wait | None:
        """A phase: nothing is created for an object that could vanish without us."""
        ours, others = self._finalizers(scope)
        if ours != [self.finalizer]:
            try:
                await self._write_finalizers(scope, [*others, self.finalizer], self.marks(scope.object))
            except NotFound:
                raise ObjectGone from None
        return None

    async def drop_finalizer(self, scope: S) -> Wait | None:
        """The last phase of a deletion."""
        ours, others = self._finalizers(scope)
        if ours:
            try:
                await self._write_finalizers(scope, others, {})
            except NotFound:
                others = []
            scope.released = not others
        return None

    def holds_finalizer(self, scope: S) -> bool:
        return bool(self._finalizers(scope)[0])

    def marks(self, obj: O) -> Mapping[str, str]:
        """Annotations that an object gets together with its finalizer."""
        del obj
        return {}

    def _finalizers(self, scope: S) -> tuple[list[str], list[str]]:
        """Ours, by whatever name, and those of others."""
        names = self.former_finalizers | {self.finalizer}
        found = scope.object.metadata.finalizers
        return [each for each in found if each in names], [each for each in found if each not in names]

    async def _write_finalizers(self, scope: S, finalizers: list[str], annotations: Mapping[str, str]) -> None:
        """Other finalizers may come and go: the list is written for this very state of the object."""
        meta = scope.object.metadata
        body: dict[str, Any] = {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "finalizers": finalizers,
            **({"annotations": dict(annotations)} if annotations else {}),
        }
        patch = MergePatch({"metadata": body})
        scope.update_metadata(await self.client.patch(self.kind, scope.key, patch, self._write))
