"""Watches and subscriptions: which committed changes go to whom.

A commit touches only the watches it matters to: they are indexed by bucket and prefix, and all watches
of one prefix share one list of changes. An idle watch is an entry in a set and one future.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Self

from homeport.store.error import Lagged
from homeport.store.record import Change

Subscriber = Callable[[list[Change]], None]


class Watch:
    """An async iterator of batches of changes, in revision order, never empty.

    The lists are shared between watches: read them, don't modify them. One task iterates at a time.
    `close` ends the iteration and may be called at any time, also from within it.
    """

    __slots__ = ("_after", "_batches", "_hub", "_lag", "_lagged", "_open", "_waiter", "bucket", "prefix")

    def __init__(self, hub: Hub, bucket: str, prefix: str, after: int, past: list[Change]) -> None:
        self.bucket = bucket
        self.prefix = prefix
        self._hub = hub
        self._after = after
        self._batches: list[list[Change]] = [past] if past else []
        self._lag = 0
        self._lagged: Lagged | None = None
        self._open = True
        self._waiter: asyncio.Future[None] | None = None

    @property
    def revision(self) -> int:
        """Everything up to here was handed out by the iterator, or does not concern this watch."""
        if not self._open:
            return self._after
        if self._batches:
            return self._batches[0][0].revision - 1
        return max(self._after, self._hub.revision)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Change]:
        while not self._batches:
            if self._lagged is not None:
                raise self._lagged
            if not self._open:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._take()

    def _take(self) -> list[Change]:
        batches, self._batches = self._batches, []
        self._lag = 0
        if len(batches) == 1:
            return batches[0]
        return [change for batch in batches for change in batch]

    def close(self) -> None:
        """End the watch; what was not read yet is dropped."""
        if self._open:
            self._after = self.revision
            self._open = False
            self._batches = []
            self._hub.remove(self)
            self._wake()

    def push(self, changes: list[Change]) -> None:
        """Take a share of a commit (called by the hub)."""
        if changes[0].revision <= self._after:
            changes = [change for change in changes if change.revision > self._after]
            if not changes:
                return
        self._lag += len(changes)
        if self._lag > self._hub.lag_limit:
            self._lagged = Lagged(self.bucket, self.revision, self._hub.lag_limit)
            self.close()
            return
        self._batches.append(changes)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Prefixes:
    """The watches of one bucket. A name finds its prefixes by cutting it at each length in use."""

    __slots__ = ("lengths", "watches")

    def __init__(self) -> None:
        self.watches: dict[str, set[Watch]] = {}
        self.lengths: Counter[int] = Counter()

    def add(self, watch: Watch) -> None:
        group = self.watches.get(watch.prefix)
        if group is None:
            group = self.watches[watch.prefix] = set()
            self.lengths[len(watch.prefix)] += 1
        group.add(watch)

    def remove(self, watch: Watch) -> None:
        group = self.watches.get(watch.prefix)
        if group is None or watch not in group:
            return
        group.discard(watch)
        if not group:
            del self.watches[watch.prefix]
            self.lengths[len(watch.prefix)] -= 1
            if not self.lengths[len(watch.prefix)]:
                del self.lengths[len(watch.prefix)]

    def shares(self, changes: list[Change]) -> dict[str, list[Change]]:
        """The changes by watched prefix."""
        shares: dict[str, list[Change]] = {}
        for length in self.lengths:
            if not length:
                shares[""] = changes
                continue
            for change in changes:
                prefix = change.name[:length]
                if len(prefix) == length and prefix in self.watches:
                    shares.setdefault(prefix, []).append(change)
        return shares


class Hub:
    """Distributes committed changes. `revision` is the newest one distributed."""

    def __init__(self, revision: int, lag_limit: int) -> None:
        self.revision = revision
        self.lag_limit = lag_limit
        self.watching = 0
        self._buckets: dict[str, _Prefixes] = {}
        self._subscribers: dict[str | None, tuple[Subscriber, ...]] = {}

    def add(self, watch: Watch) -> None:
        prefixes = self._buckets.get(watch.bucket)
        if prefixes is None:
            prefixes = self._buckets[watch.bucket] = _Prefixes()
        prefixes.add(watch)
        self.watching += 1

    def remove(self, watch: Watch) -> None:
        prefixes = self._buckets[watch.bucket]
        prefixes.remove(watch)
        self.watching -= 1
        if not prefixes.watches:
            del self._buckets[watch.bucket]

    def subscribe(self, bucket: str | None, fn: Subscriber) -> Callable[[], None]:
        self._subscribers[bucket] = (*self._subscribers.get(bucket, ()), fn)
        active = True

        def unsubscribe() -> None:
            nonlocal active
            if active:
                active = False
                left = list(self._subscribers[bucket])
                left.remove(fn)
                self._subscribers[bucket] = tuple(left)

        return unsubscribe

    def publish(self, changes: list[Change]) -> list[Exception]:
        """Tell everybody; what subscribers raised is returned, for one must not stop the others."""
        self.revision = changes[-1].revision
        by_bucket: dict[str, list[Change]] = {}
        for change in changes:
            by_bucket.setdefault(change.bucket, []).append(change)
        for bucket, share in by_bucket.items():
            prefixes = self._buckets.get(bucket)
            if prefixes is not None:
                _push(prefixes, share)
        return self._call(None, changes) + [
            error for bucket, share in by_bucket.items() for error in self._call(bucket, share)
        ]

    def close(self) -> None:
        """End every watch."""
        for prefixes in list(self._buckets.values()):
            for group in list(prefixes.watches.values()):
                for watch in list(group):
                    watch.close()

    def _call(self, bucket: str | None, changes: list[Change]) -> list[Exception]:
        errors: list[Exception] = []
        for fn in self._subscribers.get(bucket, ()):
            try:
                fn(changes)
            except Exception as error:  # somebody else's code at our edge
                errors.append(error)
        return errors


def _push(prefixes: _Prefixes, changes: list[Change]) -> None:
    for prefix, share in prefixes.shares(changes).items():
        for watch in list(prefixes.watches[prefix]):
            watch.push(share)
