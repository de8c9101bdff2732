"""One watch per kind, shared by the whole process: lists, then watches, and lists again if the watch expires."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from homeport.api.meta import Object, Resource, Unstructured
from homeport.client.errors import ApiError, BadRequest, Expired, Forbidden, Invalid, NotFound, Unavailable
from homeport.client.protocol import Client, Event, Key, Query, Unreadable
from homeport.runtime.cache import Cache, is_same, key_of, uid_of
from homeport.runtime.flag import Flag
from homeport.runtime.queue import Backoff
from homeport.runtime.sharing import share_strings
from homeport.runtime.telemetry.metric import informer_metrics

O = TypeVar("O", bound=Object)
T = TypeVar("T", bound=Object | Unstructured)

log = structlog.get_logger(__name__)

# (old, new): old None means it was created, new None that it was deleted. `initial` marks objects of the first list.
Handler = Callable[[T | None, T | None, bool], None]

_PAGE = 500


def resource_of(kind: type[Object] | Resource) -> Resource:
    return kind if isinstance(kind, Resource) else kind.__resource__


@functools.cache
def metadata_only(resource: Resource) -> type[Object]:
    """A type of `resource` that has metadata and nothing else: for caches of kinds of which only metadata is read."""
    made = msgspec.defstruct(f"{resource.kind}Metadata", [], bases=(Object,), kw_only=True)
    assert issubclass(made, Object)
    made.__resource__ = resource
    return made


class Informer(Generic[T]):
    """Fills a Cache and calls handlers for every change. `run` returns only by cancellation."""

    def __init__(
        self,
        client: Client,
        kind: type[T] | Resource,
        query: Query | None = None,
        *,
        slim: Callable[[T], T] | None = None,
        measured: bool = True,
    ) -> None:
        """`slim` takes from an object what nobody asks the cache for, before it is kept. Informers of other clusters
        are not `measured`: the figures are by kind, and tell about this one."""
        self._client = client
        self._slim = _slim if slim is None else lambda obj: slim(_slim(obj))
        self.kind = kind
        self._kind: Any = kind  # a client takes a type or a Resource, and not what may be either
        self.query = query or Query()
        self.cache: Cache[T] = Cache()
        self.synced = Flag()
        self.settled = Flag()  # synced, or known to be unable to for now
        self.listed = Flag()  # by `run`, since the last reset or `relist`
        self.restarts = 0  # how often the watch expired and everything was listed again
        self.error = ""  # why it does not follow at the moment
        self.optional = False  # a server without this kind has no objects of it, and that is all there is to say
        self.unreadable: dict[Key, str] = {}  # objects that don't fit our type, and what is wrong with each
        self.on_unreadable: Callable[[Unreadable, str], None] | None = None  # called once for each and each problem
        self._handlers: list[Handler[T]] = []
        self._deletion_handlers: list[Callable[[T], None]] = []
        self._sync_handlers: list[Callable[[], None]] = []
        self.on_trouble: Callable[[], None] | None = None  # called when it can't follow at the moment
        self._hurry = Flag()
        self._backoff = Backoff(first=0.1, limit=30.0)
        self._streaming = True
        self._revision = ""  # where to resume; "" is a fresh start
        self._progress = 0  # grows with everything the server tells us
        self._resets = 0
        self._metrics = informer_metrics(self.resource.qualified) if measured else None

    @property
    def resource(self) -> Resource:
        return resource_of(self._kind)

    def on_change(self, handler: Handler[T]) -> None:
        """Handlers are called in order, synchronously. One added later is called for each existing object."""
        self._handlers.append(handler)
        for obj in self.cache:
            self._call(handler, None, obj, True)

    def on_delete(self, handler: Callable[[T], None]) -> None:
        """Called with the last state of each object whose deletion the server reports as such.

        An object that a list lacks is not reported here: it may be missing because the server's data is older than
        what we knew, as after a restore.
        """
        self._deletion_handlers.append(handler)

    def on_sync(self, handler: Callable[[], None]) -> None:
        """Called whenever a first list is complete, after its objects: what it lacks causes no change of its own."""
        self._sync_handlers.append(handler)

    def use(self, client: Client) -> None:
        """The next `run` asks this one, and begins with a list: handlers get what differs from what they know."""
        self._client = client
        self._streaming = True
        self.error = ""
        self.reset()

    def reset(self) -> None:
        """The next `run` begins with a list; until that is complete it counts as not synced."""
        self._resets += 1
        self.relist()
        self.synced.clear()
        self.settled.clear()

    def relist(self) -> None:
        """The next `run` begins with a list. What is known stays known until then."""
        self._revision = ""
        self.listed.clear()

    async def run(self) -> None:
        failures = 0
        while True:
            before = self._progress
            problem = await self._attempt()
            failures = 1 if self._progress != before else failures + 1
            if problem is None and self._progress != before:
                continue  # the server ended the watch in order
            # A server that ends watches at once, or forgets faster than we list, must not be asked in a tight loop.
            delay = self._backoff.delay(failures)
            if self._is_absent(problem):
                self._replace({}, "")
            elif problem is not None:
                delay = max(delay, float(getattr(problem, "retry_after", 0)))
                self._report(problem, delay)
            await self._pause(delay)

    async def look(self) -> None:
        """Lists once, for whoever does not let it run: handlers get what differs. Raises ApiError."""
        resets = self._resets
        seen, revision = await self._read_pages()
        if resets != self._resets:
            raise Unavailable(f"{self.resource.qualified}: the connection was ended while they were listed")
        self._replace(seen, revision)

    def nudge(self) -> None:
        """The server answers again: ends the back-off of this informer."""
        self._hurry.set()

    async def _pause(self, seconds: float) -> None:
        self._hurry.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()

    async def _attempt(self) -> Exception | None:
        try:
            if self._revision and await self._is_ahead():
                log.warning("the server was put back in time: listing again", kind=self.resource.qualified)
                self._revision = ""
            if self._revision:
                await self._follow()
            else:
                await self._begin()
        except Expired:
            self._revision = ""
            self.restarts += 1
            if self._metrics is not None:
                self._metrics.restarted()
        except ApiError as error:
            if _start_over(error):
                self._revision = ""
            return error
        except Exception as error:
            # For example an object that our type can't decode. Only controllers that need this kind wait.
            log.exception("can't follow", kind=self.resource.qualified)
            self._revision = ""
            return error
        return None

    async def _is_ahead(self) -> bool:
        """Whether we have seen a later state than the server has: it was restored from a backup. A watch from a future
        revision waits for it in silence, so this is asked before a watch is resumed."""
        page = await self._client.list(self._kind, replace(self.query, resource_version="", limit=1, lenient=True))
        now = page.resource_version
        return now.isdigit() and self._revision.isdigit() and int(now) < int(self._revision)

    def _is_absent(self, problem: Exception | None) -> bool:
        """Not of a kind that had objects: that it is gone is worth a look."""
        return self.optional and isinstance(problem, NotFound) and not len(self.cache)

    def _report(self, problem: Exception, delay: float) -> None:
        text = str(problem)
        # Said once: a kind that is not there yet is asked for again and again.
        tell = log.warning if text != self.error else log.debug
        tell("can't follow", kind=self.resource.qualified, error=text, retry_in=round(delay, 1))
        self.error = text
        self.settled.set()
        if self.on_trouble is not None:
            self.on_trouble()

    # -- what there is -----------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        """Everything there is now, as one stream where the server can, else page by page."""
        if self._streaming:
            try:
                await self._stream_list()
                return
            except (BadRequest, Invalid):
                if self._revision:
                    raise  # it could: this is about something else
                self._streaming = False  # an older server
        self._replace(*await self._read_pages())
        self.listed.set()

    async def _stream_list(self) -> None:
        seen: dict[Key, T] = {}
        async with self._client.watch(
            self._kind, replace(self.query, resource_version="", lenient=True), initial_events=True
        ) as events:
            async for event in events:
                if event.initial_events_end:
                    self._replace(seen, event.resource_version)
                    self.listed.set()
                    seen = {}  # the stream may go on for ever, and what there was at first with it
                    await self._consume(events)
                    return
                if event.type == "DELETED":
                    seen.pop(key_of(event.object), None)
                elif event.type != "BOOKMARK":
                    seen[key_of(event.object)] = event.object

    async def _read_pages(self) -> tuple[dict[Key, T], str]:
        seen: dict[Key, T] = {}
        query = replace(self.query, resource_version="", limit=_PAGE, lenient=True)
        while True:
            page = await self._client.list(self._kind, query)
            for obj in page.items:
                seen[key_of(obj)] = obj
            if not page.continue_:
                break
            query = replace(query, continue_=page.continue_)
        return seen, page.resource_version

    def _replace(self, seen: dict[Key, T], revision: str) -> None:
        """The list is the truth: what it lacks was deleted while we did not look."""
        initial = not self.synced.is_set()
        changes = self.cache.replace(self._readable(seen), int(revision or 0))
        self._advance(revision)
        # Handlers are called after the whole list has arrived, so that none of them sees half of it.
        for old, new in changes:
            self._notify(old, new, initial and old is None)
        self.synced.set()
        self.settled.set()
        for told in self._sync_handlers if initial else ():
            told()

    # -- what does not fit -------------------------------------------------------------------------------------

    def _readable(self, seen: dict[Key, T]) -> dict[Key, T]:
        """What fits, and the last fitting state of what does not: a missing object would look like a deleted one."""
        found: dict[Key, T] = {}
        before, self.unreadable = self.unreadable, {}
        for key, obj in seen.items():
            old = self.cache.get(key)
            if not isinstance(obj, Unreadable):
                # A list at rest brings what is known already: nothing of that need be worked on again.
                found[key] = old if old is not None and is_same(old, obj) else self._slim(obj)
                continue
            self._note_unreadable(obj, known=before.get(key, ""))
            if old is not None and uid_of(old) == obj.uid:
                found[key] = old
        return found

    def _note_unreadable(self, obj: Unreadable, known: str = "") -> None:
        key = key_of(obj)
        text = f"{obj.error}; mend it, or delete it (apiVersion {obj.get('apiVersion', '?')})"
        if text != known:
            what = "an object does not fit its type and is not acted on"
            log.error(what, kind=self.resource.qualified, object=str(key), error=text)
            if self.on_unreadable is not None:
                self.on_unreadable(obj, text)
        self.unreadable[key] = text
        self._count_unreadable()

    def _count_unreadable(self) -> None:
        if self._metrics is not None:
            self._metrics.cannot_read(len(self.unreadable))

    # -- what changes ------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        query = replace(self.query, resource_version=self._revision, lenient=True)
        async with self._client.watch(self._kind, query) as events:
            await self._consume(events)

    async def _consume(self, events: AsyncIterator[Event[T]]) -> None:
        self.error = ""
        async for event in events:
            self._take(event)
            self._advance(event.resource_version)

    def _advance(self, revision: str) -> None:
        self._revision = revision or self._revision
        self._progress += 1
        if self._metrics is not None:
            self._metrics.holds(len(self.cache))

    def _take(self, event: Event[T]) -> None:
        if event.type == "BOOKMARK":
            self.cache.reach(int(event.resource_version or 0))
            return
        key = key_of(event.object)
        known = self.unreadable.pop(key, "")
        if event.type == "DELETED":
            self._count_unreadable()
            old = self.cache.drop(key, int(event.resource_version or 0))
            if old is not None:
                fits = not isinstance(event.object, Unreadable)
                last = self._slim(event.object) if fits else old
                for handler in self._deletion_handlers:
                    self._call(_on_deletion(handler), last, None, False)
                self._notify(last, None, False)
            return
        if isinstance(event.object, Unreadable):
            self._note_unreadable(event.object, known)
            self.cache.reach(int(event.resource_version or 0))
            return
        if known:
            self._count_unreadable()
            log.info("an object fits its type again", kind=self.resource.qualified, object=str(key))
        obj = self._slim(event.object)
        old = self.cache.get(key)
        if not self.cache.put(obj):
            return
        if old is not None and uid_of(old) != uid_of(obj):  # deleted and made again while we did not look
            self._notify(old, None, False)
            old = None
        self._notify(old, obj, False)

    def _notify(self, old: T | None, new: T | None, initial: bool) -> None:
        for handler in self._handlers:
            self._call(handler, old, new, initial)

    def _call(self, handler: Handler[T], old: T | None, new: T | None, initial: bool) -> None:
        try:
            handler(old, new, initial)
        except Exception:
            # One object that a mapper can't digest must not keep the others from everybody.
            shown = new if new is not None else old
            assert shown is not None
            log.exception("a handler failed", kind=self.resource.qualified, object=str(key_of(shown)))


def _on_deletion(handler: Callable[[T], None]) -> Handler[T]:
    def deleted(old: T | None, new: T | None, initial: bool) -> None:
        if old is not None:
            handler(old)

    return deleted


def _slim(obj: T) -> T:
    """Drops managedFields: they are half of an object's size, and no controller reads them."""
    share_strings(obj)
    if isinstance(obj, Unstructured):
        obj.metadata.pop("managedFields", None)
    elif obj.metadata.managed_fields:
        obj.metadata.managed_fields = []
    return obj


def _start_over(error: ApiError) -> bool:
    """Whether the cache is invalid: the kind or the permission to read it is gone, or the server's history is."""
    if isinstance(error, NotFound | Forbidden):
        return True
    return any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
