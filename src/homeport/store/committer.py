"""The thread that owns the database.

Everything queued while one transaction is written goes into the next: one transaction, one fsync, one
wake-up of the event loop. Jobs (compaction, backup steps, close) run in turn between transactions.

When a transaction fails, whatever was accepted after it may build on it and must fail too. Batches carry
an epoch for that: the thread skips what is left of the failed epoch, the event loop starts the next one
when it hears of the failure.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from homeport.store.database import Database
from homeport.store.error import StoreError, StoreUnavailable
from homeport.store.record import Change

T = TypeVar("T")

# Checkpoint at 4 MiB of log as soon as nobody writes, at 32 MiB even if somebody does.
_IDLE_BYTES = 4 * 1024 * 1024
_FULL_BYTES = 32 * 1024 * 1024
_IDLE_SECONDS = 0.05
_RETRY_SECONDS = 5.0
# Behind a busy event loop the thread waits for the interpreter lock: with CPython's 5 ms a single commit was
# seen to wait for seconds. The likely reason: a loop that gives the lock away and takes it straight back wakes
# the waiter in vain, and its wait for a forced hand-over begins anew. A shorter wait ends the stalls where
# loop turns are clearly longer than it (0.4 ms); with shorter turns it only bounds them to tens of
# milliseconds usually, hundreds at worst.
_SWITCH_SECONDS = 0.0001


@dataclass(slots=True)
class _Batch:
    epoch: int
    changes: list[Change]
    at: float


@dataclass(slots=True)
class _Job:
    work: Callable[[Database], Any]
    future: asyncio.Future[Any]
    last: bool


_Item: TypeAlias = _Batch | _Job


class Committer:
    """`committed(batches, seconds)` and `failed(error)` are called on the event loop, in order."""

    def __init__(
        self,
        make: Callable[[], Database],
        loop: asyncio.AbstractEventLoop,
        committed: Callable[[int, float], None],
        failed: Callable[[StoreError], None],
    ) -> None:
        self._make = make
        self._loop = loop
        self._committed = committed
        self._failed = failed
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._failed_epoch = -1
        self._checkpoint_failed = False
        self._ending = False
        # A daemon: a process that forgets to close must still end, and a kill is survived anyway.
        self._thread = threading.Thread(target=self._main, name="store-committer", daemon=True)

    def start(self) -> asyncio.Future[Database]:
        """Open the database on the thread; after a failure the thread has ended."""
        opened: asyncio.Future[Database] = self._loop.create_future()
        self._opened = opened
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
        self._thread.start()
        return opened

    def submit(self, epoch: int, changes: list[Change], at: float) -> None:
        self._queue.put(_Batch(epoch, changes, at))

    def run(self, work: Callable[[Database], T], *, last: bool = False) -> asyncio.Future[T]:
        """Run a job after everything submitted so far; `last` ends the thread after it."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._ending:
            future.set_exception(StoreUnavailable("the store is closed"))
            return future
        self._ending = last
        self._queue.put(_Job(work, future, last))
        return future

    def join(self) -> None:
        self._thread.join()

    def _main(self) -> None:
        try:
            database = self._make()
        except BaseException as error:  # handed to whoever opens the store
            self._tell(_reject, self._opened, error)
            return
        self._tell(_resolve, self._opened, database)
        item: _Item | None = None
        while True:
            item = item or self._next(database)
            if isinstance(item, _Job):
                self._work(database, item)
                if item.last:
                    return
                item = None
            elif item is not None:
                item = self._write(database, item)

    def _next(self, database: Database) -> _Item | None:
        if database.wal_bytes < _IDLE_BYTES:
            return self._queue.get()
        try:
            return self._queue.get(timeout=_RETRY_SECONDS if self._checkpoint_failed else _IDLE_SECONDS)
        except Empty:
            self._checkpoint(database)
            return None

    def _write(self, database: Database, first: _Batch) -> _Item | None:
        """Commit all queued batches together; returns the job that ended the collecting, if one did."""
        batches, job = self._collect(first)
        if batches:
            changes = batches[0].changes
            if len(batches) > 1:
                changes = [change for batch in batches for change in batch.changes]
            self._commit(database, batches, changes)
        return job

    def _collect(self, first: _Batch) -> tuple[list[_Batch], _Job | None]:
        batches: list[_Batch] = []
        item: _Item = first
        try:
            while isinstance(item, _Batch):
                if item.epoch > self._failed_epoch:
                    batches.append(item)
                item = self._queue.get_nowait()
        except Empty:
            return batches, None
        return batches, item

    def _commit(self, database: Database, batches: list[_Batch], changes: list[Change]) -> None:
        begun = time.perf_counter()
        try:
            database.write(changes, batches[-1].at)
        except Exception as error:  # whatever it is, the writers must hear of it
            self._failed_epoch = batches[-1].epoch
            self._tell(self._failed, _as_unavailable(error))
            return
        self._tell(self._committed, len(batches), time.perf_counter() - begun)
        if database.wal_bytes >= _FULL_BYTES and not self._checkpoint_failed:
            self._checkpoint(database)

    def _checkpoint(self, database: Database) -> None:
        # A failure loses nothing: the log stays, grows, and is tried again when writes pause.
        try:
            database.checkpoint()
            self._checkpoint_failed = False
        except StoreError:
            self._checkpoint_failed = True

    def _work(self, database: Database, job: _Job) -> None:
        try:
            result = job.work(database)
        except BaseException as error:  # handed to whoever asked for the job
            self._tell(_reject, job.future, error)
        else:
            self._tell(_resolve, job.future, result)

    def _tell(self, fn: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(fn, *args)
        except RuntimeError:
            # The event loop is closed, nobody waits any more. What was committed stays committed.
            return


def _as_unavailable(error: Exception) -> StoreError:
    return error if isinstance(error, StoreUnavailable) else StoreUnavailable(f"{error}")


def _resolve(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _reject(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
