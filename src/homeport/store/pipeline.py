"""How a write travels: accepted, submitted, then committed or failed.

Accepting is synchronous and gives the write its revision. All writes accepted in one turn of the event
loop are submitted together, the committer joins what was submitted while it was busy, and the answers come
back in the same order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from homeport.store.committer import Committer
from homeport.store.error import StoreError, StoreUnavailable
from homeport.store.record import Change
from homeport.store.stats import BATCH_BOUNDS, SECONDS_BOUNDS, Histogram


class _Batch:
    """Changes accepted in one turn of the event loop, and who waits for each."""

    __slots__ = ("changes", "committed_at", "futures")

    def __init__(self) -> None:
        self.committed_at = 0.0
        self.changes: list[Change] = []
        self.futures: list[asyncio.Future[None]] = []


class Pipeline:
    """`publish(changes, at)` makes committed changes visible; it runs before their writers are answered.

    Without a committer (a store in memory) a submitted batch counts as committed at once.
    """

    def __init__(
        self, revision: int, clock: Callable[[], float], publish: Callable[[list[Change], float], None]
    ) -> None:
        self.committer: Committer | None = None
        self.allocated = revision
        self.heads: dict[tuple[str, str], Change] = {}
        self.failed_commits = 0
        self.batch_sizes = Histogram(BATCH_BOUNDS)
        self.commit_seconds = Histogram(SECONDS_BOUNDS)
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._publish = publish
        self._queued: _Batch | None = None
        self._submitted: deque[_Batch] = deque()
        self._epoch = 0

    @property
    def pending(self) -> int:
        """Writes accepted and not decided yet."""
        queued = len(self._queued.changes) if self._queued else 0
        return queued + sum(len(batch.changes) for batch in self._submitted)

    def accept(self, change: Change) -> asyncio.Future[None]:
        self.allocated = change.revision
        self.heads[change.bucket, change.name] = change
        batch = self._queued
        if batch is None:
            # Submitted after this turn of the loop, so that writers woken together commit together.
            batch = self._queued = _Batch()
            self._loop.call_soon(self.submit)
        future = self._loop.create_future()
        batch.changes.append(change)
        batch.futures.append(future)
        return future

    def submit(self) -> None:
        batch = self._queued
        if batch is None:
            return
        self._queued = None
        batch.committed_at = self._clock()
        self._submitted.append(batch)
        if self.committer is None:
            self.committed(1, 0.0)
        else:
            self.committer.submit(self._epoch, batch.changes, batch.committed_at)

    def committed(self, batches: int, seconds: float) -> None:
        """The oldest submitted batches are durable."""
        done = [self._submitted.popleft() for _ in range(batches)]
        changes = done[0].changes if batches == 1 else [one for batch in done for one in batch.changes]
        heads = self.heads
        for change in changes:
            key = (change.bucket, change.name)
            if heads[key] is change:
                del heads[key]
        self.batch_sizes.observe(len(changes))
        self.commit_seconds.observe(seconds)
        self._publish(changes, done[-1].committed_at)
        for batch in done:
            for future in batch.futures:
                if not future.done():
                    future.set_result(None)

    def failed(self, error: StoreError) -> None:
        """Nothing accepted and undecided became durable: the heads fall back to what is committed.

        The revisions are not used again; they were given to `encode` and may have been seen in `head`.
        """
        self._epoch += 1
        self.failed_commits += 1
        undecided = [*self._submitted, *([self._queued] if self._queued else ())]
        self._submitted.clear()
        self._queued = None
        self.heads.clear()
        for batch in undecided:
            for future in batch.futures:
                if not future.done():
                    future.set_exception(_because(error))


def _because(error: StoreError) -> StoreUnavailable:
    # Each writer gets its own: a shared one would collect the tracebacks of all.
    twin = StoreUnavailable(str(error))
    twin.__cause__ = error.__cause__ or error
    return twin
