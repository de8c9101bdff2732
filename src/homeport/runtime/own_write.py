"""Read your own writes: a client that remembers what a reconcile wrote, and a gate that waits until caches show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import structlog

from homeport.api.meta import Object, Resource, Unstructured
from homeport.client.protocol import DEFAULT_WRITE, Client, Key, Patch, Propagation, Query, Write
from homeport.runtime.cache import deleting, key_of, uid_of, version_of
from homeport.runtime.informer import Informer, Informers

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Written:
    resource: Resource
    key: Key
    uid: str
    revision: int
    deleted: bool = False


@dataclass(slots=True)
class Writes:
    """What one reconcile wrote. The newest write of an object replaces older ones."""

    made: dict[tuple[Resource, Key], _Written] = field(default_factory=dict)
    count: int = 0

    def note(self, resource: Resource, obj: Object | Unstructured) -> None:
        self.count += 1
        key = key_of(obj)
        self.made[resource, key] = _Written(resource, key, uid_of(obj), version_of(obj))

    def note_deleted(self, resource: Resource, key: Key, uid: str) -> None:
        self.count += 1
        self.made[resource, key] = _Written(resource, key, uid, 0, deleted=True)


_current: ContextVar[Writes | None] = ContextVar("writes", default=None)


def track(writes: Writes) -> Any:
    """From here on, in this task, writes through an OwnWrites client are noted in `writes`."""
    return _current.set(writes)


def untrack(token: Any) -> None:
    _current.reset(token)


class OwnWrites:
    """A Client around a Client. Reads pass through; writes are noted for the reconcile that makes them."""

    def __init__(self, inner: Client, *, fence: Callable[[], None] = lambda: None) -> None:
        self._inner = inner
        self._fence = fence  # raises when this process may no longer write
        self.get = inner.get
        self.list = inner.list
        self.watch = inner.watch
        self.close = inner.close

    @property
    def warnings(self) -> Any:
        return getattr(self._inner, "warnings", None)

    def _note(self, kind: Any, obj: Any, options: Write) -> Any:
        writes = _current.get()
        if writes is not None and not options.dry_run and _is_object(obj):
            writes.note(_resource(kind), obj)
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
        self._fence()
        if kind is None:
            return self._note(type(obj), await self._inner.create(obj, options), options)
        made = await self._inner.create(obj, options, kind=kind, key=key, subresource=subresource)
        return made if subresource else self._note(kind, made, options)

    async def replace(
        self, obj: Mapping[str, Any], options: Write = DEFAULT_WRITE, *, kind: Resource, subresource: str = ""
    ) -> Unstructured:
        self._fence()
        made = await self._inner.replace(obj, options, kind=kind, subresource=subresource)
        return made if subresource == "scale" else self._note(kind, made, options)

    async def patch(
        self, kind: Any, key: Key, patch: Patch, options: Write = DEFAULT_WRITE, *, subresource: str = ""
    ) -> Any:
        self._fence()
        made = await self._inner.patch(kind, key, patch, options, subresource=subresource)
        return made if subresource == "scale" else self._note(kind, made, options)

    async def apply(
        self, obj: Any, options: Write, *, kind: Resource | None = None, force: bool = False, subresource: str = ""
    ) -> Any:
        self._fence()
        if kind is None:
            made = await self._inner.apply(obj, options, force=force, subresource=subresource)
            return self._note(type(obj), made, options)
        made = await self._inner.apply(obj, options, kind=kind, force=force, subresource=subresource)
        return self._note(kind, made, options)

    async def delete(
        self,
        kind: Any,
        key: Key,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Unstructured:
        self._fence()
        answer = await self._inner.delete(
            kind,
            key,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_seconds=grace_seconds,
            dry_run=dry_run,
        )
        writes = _current.get()
        if writes is not None and not dry_run:
            gone = uid or (answer.get("details") or {}).get("uid", "") or answer.uid
            writes.note_deleted(_resource(kind), key, gone)
        return answer

    async def delete_all(
        self, kind: Any, query: Query, *, propagation: Propagation | None = None, dry_run: bool = False
    ) -> Unstructured:
        self._fence()
        answer = await self._inner.delete_all(kind, query, propagation=propagation, dry_run=dry_run)
        writes = _current.get()
        if writes is not None and not dry_run:
            for item in answer.get("items") or ():
                obj = Unstructured(item)
                writes.note_deleted(_resource(kind), key_of(obj), obj.uid)
        return answer


class Gate:
    """Holds a key back until every cache shows what the key's last reconcile wrote."""

    def __init__(self, informers: Informers, *, patience: float = 10.0) -> None:
        self._informers = informers
        self._patience = patience

    async def caught_up(self, writes: Writes) -> bool:
        """False: a cache did not show a write in time (the watch is behind). The caller tries again later."""
        for written in writes.made.values():
            for informer in self._informers.of(written.resource):
                if not _sees(informer, written) and not await self._wait(informer, written):
                    return False
        return True

    async def _wait(self, informer: Informer[Any], written: _Written) -> bool:
        if not _in_scope(informer.query, written.key):
            return True
        if await informer.cache.until(lambda: _sees(informer, written), self._patience):
            return True
        log.warning(
            "the cache is behind a write of ours",
            kind=written.resource.qualified,
            object=str(written.key),
            cache_revision=informer.cache.revision,
            written_revision=written.revision,
        )
        return False


def _sees(informer: Informer[Any], written: _Written) -> bool:
    if not written.deleted:
        return informer.cache.revision >= written.revision
    known = informer.cache.get(written.key)
    return known is None or uid_of(known) != written.uid or deleting(known)


def _in_scope(query: Query, key: Key) -> bool:
    # With selectors only bookmarks tell how far the view is; waiting for one would take a minute.
    return not query.labels and not query.fields and query.namespace in ("", key.namespace)


def _is_object(obj: Any) -> bool:
    return isinstance(obj, Object) or (
        isinstance(obj, dict) and bool((obj.get("metadata") or {}).get("resourceVersion"))
    )


def _resource(kind: Any) -> Resource:
    found: Resource = kind if isinstance(kind, Resource) else kind.__resource__
    return found
