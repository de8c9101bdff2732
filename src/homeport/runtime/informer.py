"""One watch per kind, shared by everybody in the process: list, then follow, and start over when the past is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

import structlog

from homeport.api.meta import Object, Resource, Unstructured
from homeport.client.errors import ApiError, BadRequest, Expired, Forbidden, Invalid, NotFound
from homeport.client.protocol import Client, Event, Key, Query
from homeport.runtime.cache import Cache, key_of, uid_of, version_of
from homeport.runtime.queue import Backoff

T = TypeVar("T", bound=Object | Unstructured)

log = structlog.get_logger(__name__)

# (old, new): old None means it appeared, new None that it went. `initial` marks what was there before we looked.
Handler = Callable[[Any, Any, bool], None]

_PAGE = 500


class Informer(Generic[T]):
    """Feeds a Cache and tells handlers of every change. `run` returns only by cancellation."""

    def __init__(self, client: Client, kind: type[T] | Resource, query: Query | None = None) -> None:
        self._client = client
        self.kind: Any = kind
        self.query = query or Query()
        self.cache: Cache[T] = Cache()
        self.synced = asyncio.Event()
        self.restarts = 0  # times the past was gone and everything had to be listed anew
        self.error = ""  # why it does not follow at the moment
        self._handlers: list[Handler] = []
        self._backoff = Backoff(first=0.1, limit=30.0)
        self._streaming = True

    @property
    def resource(self) -> Resource:
        kind = self.kind
        return kind if isinstance(kind, Resource) else kind.__resource__

    def on_change(self, handler: Handler) -> None:
        """Handlers are called in order, synchronously. One added late is told of what is there."""
        self._handlers.append(handler)
        for obj in self.cache:
            handler(None, obj, True)

    async def run(self) -> None:
        revision, failures = "", 0
        while True:
            try:
                if not revision:
                    revision = await self._begin()
                failures = 0
                revision = await self._follow(revision)
            except Expired:
                self.restarts += 1
                revision = ""
            except ApiError as error:
                failures += 1
                self.error = str(error)
                delay = max(self._backoff.delay(failures), float(error.retry_after))
                log.warning("can't follow", kind=self.resource.qualified, error=str(error), retry_in=round(delay, 1))
                if isinstance(error, NotFound | Forbidden):
                    revision = ""  # the kind went away or the right to see it: start over when it is back
                await asyncio.sleep(delay)
            else:
                self.error = ""

    async def _begin(self) -> str:
        """Everything there is now, as one stream where the server can, else page by page."""
        if self._streaming:
            try:
                return await self._stream_list()
            except (BadRequest, Invalid):
                self._streaming = False  # an older server
        return await self._page_list()

    async def _stream_list(self) -> str:
        seen: dict[Key, T] = {}
        async with self._client.watch(
            self.kind, replace(self.query, resource_version=""), initial_events=True
        ) as events:
            async for event in events:
                if event.initial_events_end:
                    self._replace(seen, event.resource_version)
                    return await self._consume(events, event.resource_version)
                if event.type == "DELETED":
                    seen.pop(key_of(event.object), None)
                elif event.type != "BOOKMARK":
                    seen[key_of(event.object)] = event.object
        raise Expired("the server ended the initial list before it was complete")

    async def _page_list(self) -> str:
        seen: dict[Key, T] = {}
        query = replace(self.query, resource_version="", limit=_PAGE)
        while True:
            page = await self._client.list(self.kind, query)
            for obj in page.items:
                seen[key_of(obj)] = obj
            if not page.continue_:
                self._replace(seen, page.resource_version)
                return str(page.resource_version)
            query = replace(query, continue_=page.continue_)

    def _replace(self, seen: dict[Key, T], revision: str) -> None:
        """The list is the truth: what it lacks was deleted while we did not look."""
        initial = not self.synced.is_set()
        for key in [key_of(obj) for obj in self.cache if key_of(obj) not in seen]:
            self._tell(self.cache.drop(key), None, False)
        for key, obj in seen.items():
            old = self.cache.get(key)
            if old is not None and uid_of(old) != uid_of(obj):
                self._tell(self.cache.drop(key), None, False)
                old = None
            if old is None or version_of(old) != version_of(obj):
                self.cache.put(obj)
                self._tell(old, obj, initial)
        self.cache.reach(int(revision or 0))
        self.synced.set()

    async def _follow(self, revision: str) -> str:
        query = replace(self.query, resource_version=revision)
        async with self._client.watch(self.kind, query) as events:
            return await self._consume(events, revision)

    async def _consume(self, events: Any, revision: str) -> str:
        self.error = ""
        async for event in events:
            self._take(event)
            revision = event.resource_version or revision
        return revision

    def _take(self, event: Event[T]) -> None:
        if event.type == "BOOKMARK":
            self.cache.reach(int(event.resource_version or 0))
            return
        obj = event.object
        key = key_of(obj)
        if event.type == "DELETED":
            old = self.cache.drop(key, int(event.resource_version or 0))
            if old is not None:
                self._tell(obj, None, False)
            return
        old = self.cache.get(key)
        if old is not None and uid_of(old) != uid_of(obj):  # deleted and made again while we did not look
            self._tell(self.cache.drop(key), None, False)
            old = None
        if self.cache.put(obj) is not obj:
            self._tell(old, obj, False)

    def _tell(self, old: T | None, new: T | None, initial: bool) -> None:
        for handler in self._handlers:
            handler(old, new, initial)


class Informers:
    """The informers of a process, one per (kind, query)."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._informers: dict[tuple[Resource, Query, bool], Informer[Any]] = {}

    def get(self, kind: Any, query: Query | None = None) -> Informer[Any]:
        query = query or Query()
        resource = kind if isinstance(kind, Resource) else kind.__resource__
        key = (resource, query, isinstance(kind, Resource))
        if key not in self._informers:
            self._informers[key] = Informer(self._client, kind, query)
        return self._informers[key]

    def of(self, resource: Resource) -> list[Informer[Any]]:
        """All that follow this kind."""
        return [i for (r, _, _), i in self._informers.items() if r == resource]

    def __iter__(self) -> Any:
        return iter(list(self._informers.values()))
