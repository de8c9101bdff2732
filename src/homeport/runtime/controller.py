"""A controller: watches turn into keys, keys into reconciles.

One key is never worked on twice at the same time, nor from a cache older than its own last write.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import structlog

from homeport.api.meta import Object, Resource, Unstructured
from homeport.client.errors import AlreadyExists, ApiError, Conflict, TooManyRequests
from homeport.client.protocol import Key, Query
from homeport.runtime.cache import Cache, key_of, version_of
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.echo import Echoes
from homeport.runtime.informer import Handler, Informer, resource_of
from homeport.runtime.informers import Informers
from homeport.runtime.lease import LeaseLost
from homeport.runtime.outcome import Terminal, Wait
from homeport.runtime.own_status import OwnStatus
from homeport.runtime.own_write import Expectation, Gate, Revision, Writes, caught_up, track, untrack
from homeport.runtime.queue import Backoff, Priority, ShutDown, WorkQueue
from homeport.runtime.reconciler import Reconciler
from homeport.runtime.share import ShardOf, Share
from homeport.runtime.telemetry.metric import ControllerMetrics
from homeport.runtime.telemetry.trace import traced_reconciler
from homeport.runtime.unfinished import Unfinished
from homeport.runtime.wake import own_key, owner_keys, priority_of
from homeport.runtime.work import working_on

O = TypeVar("O", bound=Object)
T = TypeVar("T", bound=Object | Unstructured)

log = structlog.get_logger(__name__)

Predicate = Callable[[T | None, T | None], bool]  # (old, new): worth a look?
Mapper = Callable[[T], Iterable[Key]]


@dataclass(frozen=True, slots=True)
class _Watch(Generic[T]):
    """A kind whose changes enqueue keys. `keys` None: the controller's own kind, each object enqueues its own key."""

    kind: type[T] | Resource
    keys: Mapper[T] | None
    predicate: Predicate[T] | None
    query: Query | None


class Controller:
    def __init__(
        self,
        name: str,
        kind: type[O] | Resource,
        reconciler: Reconciler,
        *,
        workers: int = 8,
        predicate: Predicate[O] | Predicate[Unstructured] | None = None,
        query: Query | None = None,
        resync: float = 36_000.0,
        backoff: Backoff | None = None,
        shard_of: ShardOf | None = None,
        clock: Clock | None = None,
        status_wakes: bool = True,
        own_writes_wake: bool = True,
        rests: bool = False,
    ) -> None:
        """`status_wakes` False: a status that the reconciler itself wrote, as the last thing of a loop, is no reason to
        look again. For reconcilers that compute it in every reconcile, and decide nothing by it.

        `own_writes_wake` False: no write of the loop to a state that it knew is a reason to look again, whatever the
        kind of the object. For reconcilers that go on with what they wrote, to the end of the same loop.

        `rests`: while keys wait for workers, one that was just worked on is left alone for a moment."""
        self.name = name
        self.kind: type[Object] | Resource = kind
        self.shard_of = shard_of  # which keys of this controller stay together; None: as the manager says
        self.share: Share | None = None  # None: all keys are ours
        self.metrics = ControllerMetrics(name)
        self.queue: WorkQueue[Key] = WorkQueue(backoff=backoff, taken=self.metrics.waited, retried=self.metrics.retried)
        self.held: dict[Key, asyncio.Task[None]] = {}  # keys whose last write is not in the caches yet
        self._reconciler = traced_reconciler(name, reconciler)
        self._leave: Callable[[Key], Awaitable[None]] | None = getattr(reconciler, "leave", None)
        self._workers = workers
        self._resync = resync
        self._clock = clock or SystemClock()
        self.unfinished = Unfinished(self._clock)
        self.waits, self.failed = self.unfinished.waits, self.unfinished.failed
        self._expected: dict[Key, list[Expectation]] = {}
        self._own_status = OwnStatus() if own_writes_wake and not status_wakes else None
        self._echoes = None if own_writes_wake else Echoes()
        self._rests = rests
        self._watches: list[_Watch[Any]] = [_Watch(kind, None, predicate, query)]
        self._informers: list[Informer[Any]] = []
        self._shared: Informers | None = None
        self._gate: Gate | None = None
        self._group: asyncio.TaskGroup | None = None
        self._busy: dict[Key, tuple[str, asyncio.Event]] = {}  # keys in work, their shard, and their end
        self.metrics.measure(self)

    # -- what wakes it -----------------------------------------------------------------------------------------

    def own(
        self, kind: type[T] | Resource, *, predicate: Predicate[T] | None = None, query: Query | None = None
    ) -> Controller:
        """Changes of a child wake its controlling owner of our kind."""
        resource = resource_of(self.kind)
        self._watches.append(_Watch(kind, lambda obj: owner_keys(obj, resource), predicate, query))
        return self

    @overload
    def map(
        self, kind: type[O], keys: Mapper[O], *, predicate: Predicate[O] | None = None, query: Query | None = None
    ) -> Controller: ...
    @overload
    def map(
        self,
        kind: Resource,
        keys: Mapper[Unstructured],
        *,
        predicate: Predicate[Unstructured] | None = None,
        query: Query | None = None,
    ) -> Controller: ...

    def map(
        self,
        kind: type[Object] | Resource,
        keys: Mapper[Any],
        *,
        predicate: Predicate[Any] | None = None,
        query: Query | None = None,
    ) -> Controller:
        """Changes of `kind` wake the keys that `keys` gives for the object."""
        self._watches.append(_Watch(kind, keys, predicate, query))
        return self

    def watch(
        self,
        kind: Resource,
        keys: Mapper[Unstructured],
        *,
        predicate: Predicate[Unstructured] | None = None,
        query: Query | None = None,
    ) -> Informer[Unstructured]:
        """As `map`, also while running: for kinds that objects name. Work goes on while the new cache fills."""
        if self._shared is None:
            raise RuntimeError(f"controller {self.name} belongs to no manager yet: use map()")
        informer = self._shared.get(kind, query)
        informer.on_change(self._handler(_Watch(kind, keys, predicate, query)))
        return informer

    def mine(self, key: Key) -> bool:
        """Whether this process works on the key."""
        return self.share is None or self.share.mine(key)

    def wake(self, key: Key, *, priority: Priority = Priority.NORMAL) -> None:
        """Something outside the API happened that this key should know of."""
        if self.share is not None and (seconds := self.share.settling(key)):
            self.queue.add(key, after=seconds, priority=priority)
        elif self.mine(key):
            self.queue.add(key, priority=priority)

    def wake_all(self) -> None:
        """Something happened that any key may be waiting for."""
        for key in self._informers[0].cache.known_keys() if self._informers else ():
            self.wake(key)

    def cache(self) -> Cache[Any]:
        """The objects of our kind. For a controller of a manager."""
        cache: Cache[Any] = self._informers[0].cache
        return cache

    def knows(self, key: Key) -> bool:
        """Whether there is an object of our kind with this key, as far as the cache shows."""
        return bool(self._informers) and self._informers[0].cache.get(key) is not None

    def when_gone(self, forget: Callable[[Key], None]) -> None:
        """`forget` is called with the key of each object of our kind that is deleted. For a running controller."""
        self._informers[0].on_change(
            lambda old, new, initial: forget(key_of(old)) if new is None and old is not None else None
        )

    def connect(self, informers: Informers, share: Share | None = None) -> None:
        """Attaches to the shared informers. Called once, by the manager. `share`: which keys are ours (None: all)."""
        self._shared = informers
        self.share = share
        self._gate = Gate(informers)
        for watch in self._watches:
            informer = informers.get(watch.kind, watch.query)
            self._informers.append(informer)
            informer.on_change(self._handler(watch))

    def _handler(self, watch: _Watch[T]) -> Handler[T]:
        given: Any = watch.kind  # a type or a Resource, as for informers
        find, kind = watch.keys or own_key, resource_of(given)

        def changed(old: T | None, new: T | None, initial: bool) -> None:
            if watch.keys is None and self.share is not None and not self._note_shard(self.share, old, new):
                return  # somebody else's; `take_over` looks at all keys that become ours
            if watch.predicate is not None and not watch.predicate(old, new):
                return
            if watch.keys is None and self._own_status is not None and self._own_status.covers(old, new, self._busy):
                return
            priority = priority_of(old, new, initial)
            keys = dict.fromkeys(find(new)) if new is not None else {}
            if old is not None:
                keys |= dict.fromkeys(find(old))  # the owner of an object may have changed
            for key in keys:
                if new is None or not self._is_echo(key, (kind, version_of(new)), priority):
                    self.wake(key, priority=priority)

        return changed

    def _is_echo(self, key: Key, change: Revision, priority: Priority) -> bool:
        return self._echoes is not None and self._echoes.covers(key, change, priority, self._busy)

    def _note_shard(self, share: Share, old: Object | Unstructured | None, new: Object | Unstructured | None) -> bool:
        """False: the change concerns another replica alone."""
        if not share.note(old, new):
            return False
        if new is not None and share.settling(key := key_of(new)):
            self.wake(key)  # whatever else changed: the replica that it belongs to now has never looked at it
        return True

    # -- working -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Works until cancelled. What is in work then is cancelled, too, at a point where it waits."""
        for informer in self._informers:
            await informer.synced.wait()
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for number in range(self._workers):
                    group.create_task(self._work(), name=f"{self.name} worker {number}")
                group.create_task(self._resync_all(), name=f"{self.name} resync")
        finally:
            self._group = None
            self.held.clear()
            self.queue.close()

    async def _work(self) -> None:
        with contextlib.suppress(ShutDown):
            while True:
                key = await self.queue.get()
                shard, finished = self._shard(key), asyncio.Event()
                self._busy[key] = shard, finished
                try:
                    if self.share is not None and (seconds := self.share.settling(key)):
                        self.queue.add(key, after=seconds)
                    elif self.mine(key) and self._caught_up(key):
                        await self._attempt(key, shard)
                        if self._rests:
                            self.queue.rest(key)
                finally:
                    del self._busy[key]
                    finished.set()
                    self.queue.done(key)
                    del key, finished  # a worker that waits for a day holds nothing of its last object

    def _shard(self, key: Key) -> str:
        return "" if self.share is None else self.share.shard(key)

    async def _attempt(self, key: Key, shard: str) -> None:
        ours = None if self.share is None else lambda: self._shard(key) == shard
        with structlog.contextvars.bound_contextvars(controller=self.name, object=str(key)), working_on(key, ours):
            started = self._clock.monotonic()
            outcome = await self._reconcile(key)
            self.metrics.reconciled(outcome, self._clock.monotonic() - started)

    def _caught_up(self, key: Key) -> bool:
        """False: the key is enqueued again once the caches show its last write. No worker waits for that."""
        if key in self.held:
            return False
        expected = self._expected.get(key)
        if expected is None or caught_up(expected):
            self._expected.pop(key, None)
            return True
        assert self._group is not None
        self.held[key] = self._group.create_task(self._hold(key, expected), name=f"{self.name} holding {key}")
        return False

    async def _hold(self, key: Key, expected: list[Expectation]) -> None:
        assert self._gate is not None
        with structlog.contextvars.bound_contextvars(controller=self.name, object=str(key)):
            try:
                await self._gate.wait(expected)
            finally:
                self.held.pop(key, None)
        self.queue.add(key)

    async def _reconcile(self, key: Key) -> str:
        """One loop. The only place where any exception is caught: a broken object must not stop the others."""
        writes, finished = Writes(), False
        token = track(writes)
        try:
            wait = await self._reconciler.reconcile(key)
        except Terminal as stop:
            log.error("stopped until the object changes", reason=stop.reason, message=stop.message)
            self.queue.forget(key)
            self.unfinished.note(key, Wait(stop.reason, stop.message, warning=True))
            return "terminal"
        except LeaseLost as lost:
            log.warning("not written", error=str(lost), **self._again_in(key))
            return "fenced"
        except (Conflict, AlreadyExists, TooManyRequests) as busy:
            return self._again(key, busy)
        except ApiError as error:
            self.failed[key] = str(error)
            log.warning("failed", error=str(error), **self._again_in(key, error.retry_after))
            return "error"
        except Exception as error:
            self.failed[key] = f"{type(error).__name__}: {error}"
            log.exception("failed", **self._again_in(key))
            return "error"
        except asyncio.CancelledError:
            worker = asyncio.current_task()
            if worker is None or worker.cancelling():
                raise
            # Somebody cancelled what the reconcile waited for, not the worker, which would end without a trace:
            # aiohttp does so with requests that wait for a connection when their session is closed.
            self.failed[key] = "what it waited for was cancelled"
            log.warning("failed", error=self.failed[key], **self._again_in(key))
            return "error"
        else:
            finished = True
            return self._finish(key, wait)
        finally:
            untrack(token)
            if self._own_status is not None:
                if self._own_status.decide(key, writes.final_status(resource_of(self.kind), key)):
                    self.queue.add(key)
            if self._echoes is not None:
                missed = self._echoes.decide(key, writes, finished=finished)
                if missed is not None:
                    self.wake(key, priority=missed)
            if writes.recorded and self._gate is not None:
                expected = self._gate.expect(writes)
                if expected:
                    self._expected[key] = expected
            writes.close()

    def _again(self, key: Key, busy: ApiError) -> str:
        if busy.retry_after:
            self.queue.add(key, after=float(busy.retry_after))
            log.info("requested a retry later", error=str(busy), retry_in=busy.retry_after)
        else:
            log.debug("lost a race, looking again", error=str(busy), **self._again_in(key))
        return "conflict"

    def _again_in(self, key: Key, at_least: float = 0.0) -> dict[str, float]:
        return {"retry_in": round(self.queue.retry(key, at_least=at_least), 3)}

    def _finish(self, key: Key, wait: Wait | None) -> str:
        self.queue.forget(key)
        self.unfinished.note(key, wait)
        if wait is None:
            return "done"
        if wait.after is not None:
            self.queue.add(key, after=wait.after)
        return "wait"

    async def _resync_all(self) -> None:
        """A safety net: everything is looked at again now and then, after whatever is urgent."""
        while True:
            # Spread, so that controllers with the same period do not all start over in the same second.
            await asyncio.sleep(self._resync * random.uniform(0.9, 1.0))  # noqa: S311
            for key in self._informers[0].cache.known_keys():
                if self.mine(key):
                    self.queue.add(key, priority=Priority.RESYNC)

    def take_over(self, gained: Callable[[str], bool]) -> None:
        """Shards have become ours: look at all of their keys."""
        for key in self.cache().known_keys() if self._informers else ():
            if gained(self._shard(key)):
                self.wake(key)

    async def let_go(self) -> None:
        """Keys may have become somebody else's: forget them, and wait for those in work to be finished."""
        if self.share is None:
            return
        lost = self._lost
        self.queue.drop(lost)
        self.unfinished.forget(lost)
        for key in [k for k in self.held if lost(k)]:
            self.held[key].cancel()
        while busy := [end for shard, end in self._busy.values() if not self.share.holds(shard)]:
            await busy[0].wait()
        if self._leave is not None and self._informers:
            for key in [k for k in self.cache().known_keys() if lost(k)]:
                await self._leave(key)

    def _lost(self, key: Key) -> bool:
        return self.share is not None and not self.share.holds(self.share.shard(key))
