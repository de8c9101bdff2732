"""Read your own writes: a client that remembers what a reconcile wrote, and a gate that waits until caches show it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar, Unpack

import msgspec
import structlog

from homeport.api.meta import Object, Resource, Unstructured
from homeport.client.protocol import DEFAULT_WRITE, Client, Delete, DeleteAll, Key, MergePatch, Patch, Query, Write
from homeport.machinery.selector import FieldSelector, LabelSelector, parse_fields, parse_labels
from homeport.runtime.cache import Cache, deleting, key_of, labels_of, uid_of, version_of
from homeport.runtime.informers import Informers
from homeport.runtime.lease import LeaseLost

log = structlog.get_logger(__name__)

T = TypeVar("T")

Revision = tuple[Resource, int]


@dataclass(frozen=True, slots=True)
class _Written:
    resource: Resource
    key: Key
    uid: str
    revision: int  # 0: it was deleted, at an unknown revision
    object: Object | Unstructured | None = None
    status: bool = False  # through the subresource: nothing else was touched
    locked: bool = False  # refused unless the object was as the writer knew it


@dataclass(slots=True)
class Writes:
    """What one reconcile wrote, in order."""

    recorded: list[_Written] = field(default_factory=list)
    closed: bool = False

    def close(self) -> None:
        """The reconcile is over. Tasks that it started inherit this record and may run for months: it must not keep
        the objects that were written, nor collect what those tasks write."""
        self.recorded = []
        self.closed = True

    def note(
        self, resource: Resource, obj: Object | Unstructured, *, status: bool = False, locked: bool = False
    ) -> None:
        if not self.closed:
            self.recorded.append(_Written(resource, key_of(obj), uid_of(obj), version_of(obj), obj, status, locked))

    def known(self) -> frozenset[Revision]:
        """The revisions that were written to a state that the writer knew.

        After a write to whatever state there was, it does not know the state of that object any more. A cache that is
        filled again shows nothing in between.
        """
        found: set[Revision] = set()
        unknown: set[tuple[Resource, Key]] = set()
        for each in self.recorded:
            if not each.locked:
                unknown.add((each.resource, each.key))
            elif (each.resource, each.key) not in unknown:
                found.add((each.resource, each.revision))
        return frozenset(found)

    def report(self) -> frozenset[Revision]:
        """The revision of the status that was written to a state that the writer knew, if that was the last write."""
        last = self.recorded[-1] if self.recorded else None
        return frozenset([(last.resource, last.revision)] if last and last.status and last.locked else ())

    def final_status(self, resource: Resource, key: Key) -> int:
        """The revision at which the status of that object was written, if that was the last write of all; else 0."""
        last = self.recorded[-1] if self.recorded else None
        return last.revision if last and last.status and (last.resource, last.key) == (resource, key) else 0

    def note_deleted(self, resource: Resource, key: Key, uid: str) -> None:
        if not self.closed:
            self.recorded.append(_Written(resource, key, uid, 0))


_current: ContextVar[Writes | None] = ContextVar("writes", default=None)


def track(writes: Writes) -> Token[Writes | None]:
    """From here on, in this task, writes through an OwnWrites client are noted in `writes`."""
    return _current.set(writes)


def untrack(token: Token[Writes | None]) -> None:
    _current.reset(token)


class OwnWrites:
    """A Client around a Client. Reads pass through; writes are noted for the reconcile that makes them."""

    def __init__(self, inner: Client, *, fence: Callable[[], float | None] = lambda: None) -> None:
        self._inner = inner
        # Raises LeaseLost when this process may no longer write; else for how many seconds it still may.
        self._fence = fence
        self.get = inner.get
        self.list = inner.list
        self.watch = inner.watch
        self.close = inner.close

    @property
    def warnings(self) -> Any:
        return getattr(self._inner, "warnings", None)

    @property
    def raw(self) -> Any:
        """What the server serves; None if the client can't ask."""
        return getattr(self._inner, "raw", None)

    async def _fenced(self, send: Callable[[], Awaitable[T]]) -> T:
        left = self._fence()
        if left is None:
            return await send()
        try:
            # A write that hangs must not reach the server when somebody else may be writing already.
            async with asyncio.timeout(left):
                return await send()
        except TimeoutError:
            self._fence()
            raise LeaseLost("the lease expired during a write") from None

    def _note(self, kind: Any, obj: Any, options: Write, *, status: bool = False, locked: bool = False) -> Any:
        writes = _current.get()
        if writes is not None and not options.dry_run and _is_object(obj):
            writes.note(_resource(kind), obj, status=status, locked=locked)
        return obj

    async def create(
        self,
        obj: Any,
        options: Write = DEFAULT_WRITE,
        *,
        kind: Resource | None = None,
        key: Key | None = None,
        subresource: str = "",
    ) -> Any:
        if kind is None:
            return self._note(type(obj), await self._fenced(lambda: self._inner.create(obj, options)), options)
        made = await self._fenced(lambda: self._inner.create(obj, options, kind=kind, key=key, subresource=subresource))
        return made if subresource else self._note(kind, made, options)

    async def replace(
        self, obj: Mapping[str, Any], options: Write = DEFAULT_WRITE, *, kind: Resource, subresource: str = ""
    ) -> Unstructured:
        made = await self._fenced(lambda: self._inner.replace(obj, options, kind=kind, subresource=subresource))
        return made if subresource == "scale" else self._note(kind, made, options)

    async def patch(
        self, kind: Any, key: Key, patch: Patch, options: Write = DEFAULT_WRITE, *, subresource: str = ""
    ) -> Any:
        made = await self._fenced(lambda: self._inner.patch(kind, key, patch, options, subresource=subresource))
        if subresource == "scale":
            return made
        return self._note(kind, made, options, status=subresource == "status", locked=_is_locked(patch))

    async def apply(
        self, obj: Any, options: Write, *, kind: Resource | None = None, force: bool = False, subresource: str = ""
    ) -> Any:
        if kind is None:
            made = await self._fenced(lambda: self._inner.apply(obj, options, force=force, subresource=subresource))
        else:
            made = await self._fenced(
                lambda: self._inner.apply(obj, options, kind=kind, force=force, subresource=subresource)
            )
        return made if subresource == "scale" else self._note(kind or type(obj), made, options)

    async def delete(self, kind: type[Object] | Resource, key: Key, **options: Unpack[Delete]) -> Unstructured:
        answer = await self._fenced(lambda: self._inner.delete(kind, key, **options))
        writes = _current.get()
        if writes is not None and not options.get("dry_run"):
            if _is_object(answer) and answer.get("kind") != "Status":
                writes.note(_resource(kind), answer)  # finalizers hold it, or it ends in its own time
            else:
                writes.note_deleted(
                    _resource(kind), key, options.get("uid") or (answer.get("details") or {}).get("uid", "")
                )
        return answer

    async def delete_all(
        self, kind: type[Object] | Resource, query: Query, **options: Unpack[DeleteAll]
    ) -> Unstructured:
        answer = await self._fenced(lambda: self._inner.delete_all(kind, query, **options))
        writes = _current.get()
        if writes is not None and not options.get("dry_run"):
            for item in answer.get("items") or ():
                obj = Unstructured(item)
                writes.note_deleted(_resource(kind), key_of(obj), obj.uid)
        return answer


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a cache must show before the key that wrote it is worked on again."""

    resource: Resource
    cache: Cache[Any]
    key: Key
    uid: str
    revision: int
    present: bool

    @property
    def met(self) -> bool:
        if self.revision and self.cache.revision >= self.revision:
            return True
        if self.present:
            return False
        known = self.cache.get(self.key)
        return known is None or bool(self.uid and uid_of(known) != self.uid) or (not self.revision and deleting(known))


class Gate:
    """Holds a key back until every cache shows what the key's last reconcile wrote."""

    def __init__(self, informers: Informers, *, patience: float = 10.0) -> None:
        self._informers = informers
        self._patience = patience

    def expect(self, writes: Writes) -> list[Expectation]:
        """What is still to be seen of these writes, in all caches that would show them."""
        found = [
            Expectation(
                written.resource,
                informer.cache,
                written.key,
                written.uid,
                written.revision,
                written.revision > 0 and _selected(informer.query, written),
            )
            for written in writes.recorded
            for informer in self._informers.of(written.resource)
            # A cache is not read before it is synced, and then it shows all earlier writes.
            if informer.synced.is_set() and informer.query.namespace in ("", written.key.namespace)
        ]
        return [] if caught_up(found) else found

    async def wait(self, expected: list[Expectation]) -> None:
        """Returns when all are met. However long it takes: to work on stale knowledge is worse than to wait."""
        while (behind := next((each for each in expected if not each.met), None)) is not None:
            try:
                async with asyncio.timeout(self._patience):
                    await behind.cache.news(revision=behind.revision, key=behind.key)
            except TimeoutError:
                log.warning(
                    "the cache does not show the last write yet",
                    kind=behind.resource.qualified,
                    written=str(behind.key),
                    cache_revision=behind.cache.revision,
                    written_revision=behind.revision,
                )


def caught_up(expected: list[Expectation]) -> bool:
    """All at once: an object that was made and deleted again is absent before it is seen, and must be so after."""
    return all(each.met for each in expected)


@lru_cache(maxsize=256)
def _selectors(query: Query) -> tuple[LabelSelector, FieldSelector]:
    return parse_labels(query.labels), parse_fields(query.fields)


def _selected(query: Query, written: _Written) -> bool:
    """Whether a watch with these selectors shows the object as it was written."""
    if not query.labels and not query.fields:
        return True
    assert written.object is not None
    labels, fields = _selectors(query)
    if not labels.matches(labels_of(written.object)):
        return False
    if fields.empty:
        return True
    raw = msgspec.to_builtins(written.object)
    return fields.matches({name: _text(raw, name) for name in fields.names()})


def _text(raw: Any, path: str) -> str:
    """A field as field selectors see it: '' when absent, booleans and numbers as JSON writes them."""
    for part in path.split("."):
        raw = raw.get(part) if isinstance(raw, dict) else None
    if raw is None:
        return ""
    return str(raw).lower() if isinstance(raw, bool) else str(raw)


def _is_object(obj: Any) -> bool:
    return isinstance(obj, Object) or (
        isinstance(obj, dict) and bool((obj.get("metadata") or {}).get("resourceVersion"))
    )


def _is_locked(patch: Patch) -> bool:
    """Whether the server refuses it for any but one state of the object."""
    return isinstance(patch, MergePatch) and bool((patch.body.get("metadata") or {}).get("resourceVersion"))


def _resource(kind: Any) -> Resource:
    found: Resource = kind if isinstance(kind, Resource) else kind.__resource__
    return found
