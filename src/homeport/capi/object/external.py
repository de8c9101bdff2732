"""Objects of foreign kinds that ours refer to: read untyped, watched from the first time somebody asks.

Whoever asked is woken when the object changes, when it appears, and when its kind gets installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.capi.name import BLOCK_MOVE
from homeport.capi.object.ownership import group_kind, owners
from homeport.capi.resolution import Contracts, NotInstalled, Reference, ResolvedResource, plural
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.informer import Informer
from homeport.runtime.manager import Manager
from homeport.runtime.queue import Priority
from homeport.runtime.work import key_in_work

log = structlog.get_logger(__name__)

_BOOKKEEPING = frozenset(("resourceVersion", "generation", "managedFields", "finalizers", "annotations"))

GroupKind = tuple[str, str]
Waker = tuple[Controller, Key]


@dataclass(slots=True)
class _Kind:
    """What is known of one foreign kind."""

    served: ResolvedResource
    informer: Informer[Unstructured]
    watchers: set[tuple[Controller, Resource]] = field(default_factory=set)


class Externals:
    """One for the process: a kind is watched once, whoever asks."""

    def __init__(self, manager: Manager, contracts: Contracts) -> None:
        self._manager = manager
        self._contracts = contracts
        self._kinds: dict[GroupKind, _Kind] = {}
        self._awaited: dict[tuple[GroupKind, Key], set[Waker]] = {}  # objects that were asked for and not there
        self._contested: dict[tuple[GroupKind, Key], set[Waker]] = {}  # objects that belong to another owner
        self._uninstalled: dict[GroupKind, set[Waker | Controller]] = {}
        self._askers: dict[Controller, dict[Key, set[tuple[GroupKind, Key]]]] = {}  # who is in `_awaited`, and where
        contracts.informer.on_change(self._definition_changed)

    async def get(
        self, ref: Reference, namespace: str, *, watcher: Controller, owner_kind: Resource, owner: Key | None = None
    ) -> Unstructured | None:
        """The object, None when there is none. From then on its changes wake its owners of `owner_kind` in `watcher`.

        `owner` is who asks (by default the key in work): it is woken when an object without owners appears, too.
        Raises NotInstalled; the asker is woken when the kind is installed. The object is shared: do not change it.
        """
        found = await self.find(ref, namespace, watcher=watcher, owner_kind=owner_kind, owner=owner)
        return None if found is None else found[0]

    async def find(
        self, ref: Reference, namespace: str, *, watcher: Controller, owner_kind: Resource, owner: Key | None = None
    ) -> tuple[Unstructured, ResolvedResource] | None:
        """As `get`, with where it is served and the contract it follows."""
        asker = owner or key_in_work()
        kind = self._watched(ref, watcher, owner_kind, asker)
        key = Key(namespace, ref.name)
        obj = await self._read(kind, key)
        if obj is None and asker is not None:
            self._await((ref.api_group, ref.kind), key, watcher, asker)
        return None if obj is None else (obj, kind.served)

    def _await(self, which: GroupKind, key: Key, watcher: Controller, asker: Key) -> None:
        if not watcher.knows(asker):
            return  # deleted meanwhile: nobody is left to be woken
        self._follow(watcher).setdefault(asker, set()).add((which, key))
        self._awaited.setdefault((which, key), set()).add((watcher, asker))

    def _follow(self, watcher: Controller) -> dict[Key, set[tuple[GroupKind, Key]]]:
        """What is kept for askers of this controller goes when they go."""
        if watcher not in self._askers:
            self._askers[watcher] = {}
            watcher.when_gone(lambda asker: self._forget(watcher, asker))
        return self._askers[watcher]

    def _forget(self, watcher: Controller, asker: Key) -> None:
        for place in self._askers[watcher].pop(asker, ()):
            waiting = self._awaited.get(place, set())
            waiting.discard((watcher, asker))
            if not waiting:
                self._awaited.pop(place, None)
        for others in self._uninstalled.values():
            others.discard((watcher, asker))

    def served(self, ref: Reference) -> ResolvedResource:
        """Where a kind is written to. Raises NotInstalled."""
        return self._contracts.resolve(ref)

    def cached(self, ref: Reference, namespace: str) -> Unstructured | None:
        """What is known of the object without asking anybody; None also when nobody watches its kind yet."""
        kind = self._kinds.get((ref.api_group, ref.kind))
        if kind is None or not kind.informer.synced.is_set():
            return None
        found: Unstructured | None = kind.informer.cache.get(Key(namespace, ref.name))
        return found

    def await_release(self, ref: Reference, key: Key, watcher: Controller, owner: Key) -> None:
        """Wakes `owner` once, when the object that belongs to another gets other owners or is gone."""
        self._contested.setdefault(((ref.api_group, ref.kind), key), set()).add((watcher, owner))

    # -- watching ----------------------------------------------------------------------------------------------

    def _watched(self, ref: Reference, watcher: Controller, owner_kind: Resource, asker: Key | None) -> _Kind:
        which = (ref.api_group, ref.kind)
        try:
            served = self._contracts.resolve(ref)
        except NotInstalled:
            if asker is not None:
                self._follow(watcher)
            self._uninstalled.setdefault(which, set()).add(watcher if asker is None else (watcher, asker))
            raise
        kind = self._kinds.get(which)
        if kind is None or kind.served.resource != served.resource:
            kind = self._begin(which, served)
        elif kind.served != served:
            kind.served = served
        if (watcher, owner_kind) not in kind.watchers:
            kind.watchers.add((watcher, owner_kind))
            watcher.watch(served.resource, _mapper(owner_kind), predicate=_says_more)
        return kind

    def _begin(self, which: GroupKind, served: ResolvedResource) -> _Kind:
        old = self._kinds.get(which)
        if old is not None:
            log.info("switching to another version", kind=which[1], version=served.resource.version)
            self._manager.informers.drop(old.served.resource)
        informer = self._manager.informers.get(served.resource)
        informer.on_change(lambda before, after, initial: self._appeared(which, before, after))
        informer.on_change(lambda before, after, initial: self._released(which, before, after))
        made = self._kinds[which] = _Kind(served, informer)
        for controller, owner_kind in old.watchers if old is not None else ():
            made.watchers.add((controller, owner_kind))
            controller.watch(served.resource, _mapper(owner_kind), predicate=_says_more)
        return made

    async def _read(self, kind: _Kind, key: Key) -> Unstructured | None:
        if kind.informer.synced.is_set():
            found: Unstructured | None = kind.informer.cache.get(key)
            return found
        try:
            live: Unstructured = await self._manager.client.get(kind.served.resource, key)
        except NotFound:
            return None
        return live

    # -- waking ------------------------------------------------------------------------------------------------

    def _appeared(self, which: GroupKind, before: Unstructured | None, after: Unstructured | None) -> None:
        if before is not None or after is None or not self._awaited:
            return
        place = (which, key_of(after))
        for controller, key in self._awaited.pop(place, ()):
            self._askers[controller].get(key, set()).discard(place)
            controller.wake(key, priority=Priority.USER)  # as for every object that comes

    def _released(self, which: GroupKind, before: Unstructured | None, after: Unstructured | None) -> None:
        if before is None or not self._contested or (after is not None and owners(before) == owners(after)):
            return
        for controller, key in self._contested.pop((which, key_of(before)), ()):
            controller.wake(key)

    def _definition_changed(self, before: Any, after: Any, initial: bool) -> None:
        """A provider was installed or upgraded: whoever asked in vain, or for the other version, looks again."""
        if after is None:
            return
        for which in [w for w in self._uninstalled if _definition(w) == after.metadata.name]:
            if self._contracts.find(*which) is None:
                continue
            for waiting in self._uninstalled.pop(which):
                if isinstance(waiting, Controller):
                    waiting.wake_all()
                else:
                    waiting[0].wake(waiting[1])
        for which, kind in self._kinds.items():
            if _definition(which) == after.metadata.name and self._contracts.find(*which) not in (None, kind.served):
                for controller, _ in kind.watchers:
                    controller.wake_all()


def _definition(which: GroupKind) -> str:
    return f"{plural(which[1])}.{which[0]}"


def _mapper(owner_kind: Resource) -> Any:
    return lambda obj: owner_keys(obj, owner_kind)


def _says_more(old: Unstructured | None, new: Unstructured | None) -> bool:
    """Whether a change is more than the bookkeeping of a provider: finalizers of an object that stays, and the mark of
    work that a move has to wait for."""
    if old is None or new is None or new.metadata.get("deletionTimestamp"):
        return True
    return _content(old) != _content(new) or _marks(old.metadata) != _marks(new.metadata)


def _content(obj: Unstructured) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name != "metadata"}


def _marks(meta: dict[str, Any]) -> dict[str, Any]:
    annotations = {name: value for name, value in (meta.get("annotations") or {}).items() if name != BLOCK_MOVE}
    return {name: value for name, value in meta.items() if name not in _BOOKKEEPING} | {"annotations": annotations}


def owner_keys(obj: Unstructured, owner_kind: Resource) -> Iterable[Key]:
    """The owners of one kind, controlling or not: a Cluster need not control its infrastructure."""
    namespace = obj.namespace if owner_kind.namespaced else ""
    for owner in owners(obj):
        if group_kind(owner) == (owner_kind.group, owner_kind.kind):
            yield Key(namespace, owner["name"])
