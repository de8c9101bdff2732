"""Follows the definitions in the store: serves their kinds, writes their status, clears up when they go.

A kind is served from the moment that its definition is committed, before the writer of the definition has its answer:
whoever creates a definition may create an object right after it. The status is written next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

from homeport.apiserver.crds.condition import accept_names, is_settled, is_true, set_condition, settle_status
from homeport.apiserver.crds.served import build_served
from homeport.apiserver.crds.strategy import FINALIZER
from homeport.apiserver.option import DeleteOptions, ListOptions
from homeport.apiserver.registry import Registry
from homeport.apiserver.request import SYSTEM, Context
from homeport.apiserver.resource import Json, ServedKind, Version
from homeport.apiserver.verb.admission import Attributes
from homeport.client.errors import ApiError, Conflict, NotFound
from homeport.machinery.crd import warnings
from homeport.store import Change, Record

GROUP: Final = "apiextensions.k8s.io"
PLURAL: Final = "customresourcedefinitions"
DEFINITIONS: Final = f"{PLURAL}.{GROUP}"
_RETRY_SECONDS: Final = 1.0

ConversionHook = Callable[[Json, str], Json]
ConversionCaller = Callable[[ServedKind, list[Json], str], Awaitable[list[Json]]]


class _Definition:
    """One definition as last seen."""

    __slots__ = ("crd", "names", "reason", "served", "text")

    def __init__(self, crd: Json) -> None:
        self.crd = crd
        self.names: Json = (crd.get("status") or {}).get("acceptedNames") or {}
        self.reason = ""
        self.text = ""
        self.served: ServedKind | None = None

    @property
    def group(self) -> str:
        return str(self.crd["spec"]["group"])

    @property
    def terminating(self) -> bool:
        return bool(self.crd["metadata"].get("deletionTimestamp"))


class CustomResources:
    """Start one per server. `hooks` convert kinds of our own in process; `caller` asks conversion webhooks."""

    def __init__(
        self,
        registry: Registry,
        *,
        hooks: dict[tuple[str, str], ConversionHook] | None = None,
        caller: ConversionCaller | None = None,
    ) -> None:
        self.hooks = hooks if hooks is not None else {}
        self.caller = caller
        self._registry = registry
        self._store = registry.store
        self._catalog = registry.catalog
        self._known: dict[str, _Definition] = {}
        self._due: dict[str, None] = {}
        self._awake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._worker: asyncio.Task[None] | None = None
        self._ends: list[Callable[[], None]] = []
        self._watched: dict[str, Callable[[], None]] = {}

    # -- life

    def start(self) -> None:
        """Serves what the store defines, then follows it. Call in the running event loop, once."""
        for record in self._store.range(DEFINITIONS):
            self._known[record.name] = _Definition(orjson.loads(record.value))
        for name in list(self._known):
            self._serve(name)
        self._ends.append(self._store.subscribe(DEFINITIONS, self._changed))
        self._registry.admission.on(GROUP, PLURAL, _warn)
        self._worker = asyncio.get_running_loop().create_task(self._work(), name="custom resource definitions")

    async def settled(self) -> None:
        """Waits until the status of every definition says what is the case."""
        await self._idle.wait()

    async def close(self) -> None:
        for end in (*self._ends, *self._watched.values()):
            end()
        self._ends.clear()
        self._watched.clear()
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None

    # -- following the store (plain functions, within the commit)

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            if change.record is None:
                self._gone(change.name)
            else:
                self._known[change.name] = self._next(change.record)
                self._serve(change.name)

    def _next(self, record: Record) -> _Definition:
        definition = _Definition(orjson.loads(record.value))
        before = self._known.get(record.name)
        if before is not None and before.crd["metadata"].get("uid") == definition.crd["metadata"].get("uid"):
            # Names count as given from the decision on, not only once the status says so.
            definition.names = before.names
            definition.served = before.served
        return definition

    def _serve(self, name: str) -> None:
        """Decides on names and puts the kind into the catalog, or takes it out."""
        definition = self._known[name]
        crd = definition.crd
        decided = {**crd, "status": {**(crd.get("status") or {}), "acceptedNames": definition.names}}
        names, definition.reason, definition.text = accept_names(decided, *self._taken(name, definition.group))
        definition.names = names
        established = definition.reason == "NoConflicts" or is_true(crd, "Established")
        if established and self._may_be_served(names, definition.group):
            self._put(definition, names)
        if definition.terminating or not is_settled(crd, names, definition.reason, definition.text):
            self._queue(name)

    def _put(self, definition: _Definition, names: Json) -> None:
        crd, before = definition.crd, definition.served
        served = build_served(crd, self.hooks.get((definition.group, names["kind"])), names=names)
        if before is not None:
            if before.etag == served.etag and before.kind == served.kind and before.short_names == served.short_names:
                return  # only the status changed: keep what was compiled
            if (before.plural, before.kind) != (served.plural, served.kind):
                self._catalog.remove(before.group, before.plural)
        if served.convert is None and (crd["spec"].get("conversion") or {}).get("strategy") == "Webhook":
            served.convert_async = self._by_webhook(served)
        definition.served = served
        self._catalog.add(served)

    def _by_webhook(self, served: ServedKind) -> Callable[[list[Json], str], Awaitable[list[Json]]]:
        async def convert(objects: list[Json], version: str) -> list[Json]:
            if self.caller is None:
                raise ApiError(f"conversion webhook for {served.kind}.{served.group} can't be called: none is set up")
            return await self.caller(served, objects, version)

        return convert

    def _may_be_served(self, names: Json, group: str) -> bool:
        """A definition never takes the place of a built-in kind."""
        held = self._catalog.by_plural(group, names["plural"])
        return bool(names["plural"] and names["kind"]) and (held is None or held.custom)

    def _taken(self, name: str, group: str) -> tuple[set[str], set[str]]:
        """Names of resources and kinds that others of the group have."""
        resources: set[str] = set()
        kinds: set[str] = set()
        for other, definition in self._known.items():
            if other == name or definition.group != group:
                continue
            names = definition.names
            resources.update(
                filter(None, (names.get("plural"), names.get("singular"), *(names.get("shortNames") or ())))
            )
            kinds.update(filter(None, (names.get("kind"), names.get("listKind"))))
        for served in self._catalog.group(group):
            if not served.custom:
                resources.update((served.plural, served.singular, *served.short_names))
                kinds.update((served.kind, served.list_kind))
        return resources, kinds

    def _gone(self, name: str) -> None:
        definition = self._known.pop(name, None)
        if end := self._watched.pop(name, None):
            end()
        if definition is None:
            return
        if definition.served is not None:
            self._catalog.remove(definition.served.group, definition.served.plural)
        # Its names are free now: somebody may have waited for them.
        for other, each in self._known.items():
            if each.group == definition.group and each.reason != "NoConflicts":
                self._serve(other)

    # -- writing back (one at a time)

    def _queue(self, name: str) -> None:
        self._due[name] = None
        self._idle.clear()
        self._awake.set()

    async def _work(self) -> None:
        while True:
            if not self._due:
                self._idle.set()
                self._awake.clear()
                await self._awake.wait()
                continue
            name = next(iter(self._due))
            del self._due[name]
            try:
                await self._sync(name)
            except NotFound:
                continue
            except ApiError:
                # The store is busy or a finalizer's owner is slow; what is due is looked at again.
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._queue, name)

    async def _sync(self, name: str) -> None:
        definition = self._known.get(name)
        if definition is None:
            return
        if definition.terminating:
            await self._clear_up(name, definition)
            return
        names, reason, text, now = definition.names, definition.reason, definition.text, self._registry.now()
        await self._write(name, lambda crd: settle_status(crd, names, reason, text, now), "status")

    async def _clear_up(self, name: str, definition: _Definition) -> None:
        if FINALIZER not in (definition.crd["metadata"].get("finalizers") or ()):
            return
        served = definition.served
        if served is not None and self._store.count(served.bucket):
            self._watch_instances(name, served)
            await self._report(name, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
            await self._delete_instances(served)
            if self._store.count(served.bucket):
                return  # held by finalizers: each that goes brings us back here
        if served is None:
            await self._report(name, "False", "NeverEstablished", "resource was never established")
        else:
            await self._report(name, "False", "InstanceDeletionCompleted", "removed all instances")
        await self._write(name, _drop_finalizer)

    def _watch_instances(self, name: str, served: ServedKind) -> None:
        if name not in self._watched:

            def fewer(changes: list[Change]) -> None:
                if any(change.record is None for change in changes) and not self._store.count(served.bucket):
                    self._queue(name)

            self._watched[name] = self._store.subscribe(served.bucket, fewer)

    async def _delete_instances(self, served: ServedKind) -> None:
        version = served.versions[served.storage]
        ctx = Context(SYSTEM, user_agent="kube-apiserver")
        await self._registry.delete_collection(ctx, served, version, "", ListOptions(), DeleteOptions())

    async def _report(self, name: str, status: str, reason: str, message: str) -> None:
        now = self._registry.now()
        await self._write(name, lambda crd: set_condition(crd, "Terminating", status, reason, message, now), "status")

    async def _write(self, name: str, change: Callable[[Json], Any], subresource: str = "") -> None:
        """Changes the newest state of a definition; a change that changes nothing is not written."""
        served, version = self._kind()
        ctx = Context(SYSTEM, field_manager="kube-apiserver")
        while True:
            record = self._store.head(DEFINITIONS, name)
            if record is None:
                return
            crd: Json = orjson.loads(record.value)
            change(crd)
            if crd == orjson.loads(record.value):
                return
            try:
                await self._registry.update(ctx, served, version, "", name, crd, subresource=subresource)
            except Conflict:
                continue
            return

    def _kind(self) -> tuple[ServedKind, Version]:
        return self._registry.find(GROUP, "v1", PLURAL)


def _warn(attributes: Attributes) -> None:
    for text in warnings(attributes.object or {}, attributes.old):
        attributes.ctx.warn(text)


def _drop_finalizer(crd: Json) -> None:
    crd["metadata"]["finalizers"] = [each for each in crd["metadata"].get("finalizers") or () if each != FINALIZER]
