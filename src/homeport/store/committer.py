"""Who writes the database: the event loop itself where the disk is quick, a thread where it is not.

Handing a transaction to a thread and back costs more than a quick disk's fsync, and the two threads then
fight for the interpreter lock. So a transaction is written where it was submitted as long as recent ones
took little time and the thread has nothing to do. A slow disk must not hold up those who only read: there
the thread writes, and everything queued while one transaction is written goes into the next: one
transaction, one fsync, one wake-up of the event loop. Jobs (compaction, backup steps, close) and
checkpoints are always the thread's.

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
# A disk counts as quick while the average of recent commits stays below this. A single slow one (a busy
# neighbour) does not change much; a disk that is slow by nature is noticed within a few commits.
_QUICK_SECONDS = 0.002
_SMOOTHING = 0.2
_PROBE_EVERY = 50  # commits by the thread after which the event loop tries again itself
# Behind a busy event loop the thread waits for the interpreter lock: with CPython's 5 ms a single commit was
# seen to wait for seconds. The likely reason: a loop that gives the lock away and takes it straight back wakes
# the waiter in vain, and its wait for a forced hand-over starts over. A shorter wait ends the stalls where
# loop turns are clearly longer than it (0.4 ms); with shorter turns it only bounds them to tens of
# milliseconds usually, hundreds at worst.
_SWITCH_SECONDS = 0.0001


@dataclass(slots=True)
class _Batch:
    epoch: int
    changes: list[Change]
    committed_at: float


@dataclass(slots=True)
class _Job:
    work: Callable[[Database], Any]
    future: asyncio.Future[Any]
    last: bool


class _Nudge:
    """Wakes the thread to look after the log."""


_Item: TypeAlias = _Batch | _Job | _Nudge


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
        self._undecided = 0  # batches and jobs at the thread; counted on the event loop
        self._average = 0.0  # seconds of recent commits
        self._since_inline = 0
        self._database: Database | None = None
        self._lock = threading.Lock()  # who holds it may use the connection
        self._nudged = False
        self._busy_until = 0.0
        # A daemon: a process that forgets to close must still end, and a kill is survived anyway.
        self._thread = threading.Thread(target=self._main, name="store-committer", daemon=True)

    def start(self) -> asyncio.Future[Database]:
        """Open the database on the thread; after a failure the thread has ended."""
        opened: asyncio.Future[Database] = self._loop.create_future()
        self._opened = opened
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
        self._thread.start()
        return opened

    @property
    def busy(self) -> bool:
        """Whether somebody waits for the thread. Asked on the event loop."""
        return self._undecided > 0 or (self._thread.is_alive() and not self._opened.done())

    def submit(self, epoch: int, changes: list[Change], committed_at: float) -> None:
        if self._write_here(epoch, changes, committed_at):
            return
        self._undecided += 1
        self._since_inline += 1
        self._queue.put(_Batch(epoch, changes, committed_at))

    def _write_here(self, epoch: int, changes: list[Change], committed_at: float) -> bool:
        """On the event loop. Nothing may be at the thread: transactions are written in order."""
        database = self._database
        quick = self._average < _QUICK_SECONDS or self._since_inline >= _PROBE_EVERY
        if database is None or self._undecided or not quick or not self._lock.acquire(blocking=False):
            return False
        self._since_inline = 0
        begun = time.perf_counter()
        try:
            database.write(changes, committed_at)
        except Exception as error:  # whatever it is, the writers must hear of it
            self._failed_epoch = epoch
            self._failed(_as_unavailable(error))
            return True
        finally:
            self._lock.release()
        ended = time.perf_counter()
        self._note(ended - begun)
        self._busy_until = ended + _IDLE_SECONDS
        if database.wal_bytes >= _IDLE_BYTES and not self._nudged:
            self._nudged = True
            self._queue.put(_Nudge())
        self._committed(1, ended - begun)
        return True

    def _note(self, seconds: float) -> None:
        self._average += _SMOOTHING * (seconds - self._average)

    def run(self, work: Callable[[Database], T], *, last: bool = False) -> asyncio.Future[T]:
        """Run a job after everything submitted so far; `last` ends the thread after it."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._ending:
            future.set_exception(StoreUnavailable("the store is closed"))
            return future
        self._ending = last
        self._undecided += 1
        self._queue.put(_Job(work, future, last))
        return future

    def join(self) -> None:
        self._thread.join()

    def _main(self) -> None:
        try:
            database = self._make()
        except BaseException as error:  # raised in the caller that opens the store
            self._call_in_loop(_reject, self._opened, error)
            return
        self._database = database
        self._call_in_loop(_resolve, self._opened, database)
        item: _Item | None = None
        while True:
            item = item or self._next(database)
            if isinstance(item, _Nudge):
                item = None
            elif isinstance(item, _Job):
                with self._lock:
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
            # The event loop may be writing by itself: then only a full log is worth disturbing it.
            if time.perf_counter() > self._busy_until or database.wal_bytes >= _FULL_BYTES:
                with self._lock:
                    self._checkpoint(database)
                self._nudged = False
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
            while not isinstance(item, _Job):
                if isinstance(item, _Batch):
                    if item.epoch > self._failed_epoch:
                        batches.append(item)
                    else:
                        self._call_in_loop(self._decided, 1)
                item = self._queue.get_nowait()
        except Empty:
            return batches, None
        return batches, item

    def _decided(self, items: int) -> None:
        """On the event loop: the thread is done with these."""
        self._undecided -= items

    def _commit(self, database: Database, batches: list[_Batch], changes: list[Change]) -> None:
        begun = time.perf_counter()
        try:
            with self._lock:
                database.write(changes, batches[-1].committed_at)
        except Exception as error:  # whatever it is, the writers must hear of it
            self._failed_epoch = batches[-1].epoch
            self._call_in_loop(self._lost, len(batches), _as_unavailable(error))
            return
        seconds = time.perf_counter() - begun
        self._note(seconds)
        self._call_in_loop(self._kept, len(batches), seconds)
        if database.wal_bytes >= _FULL_BYTES and not self._checkpoint_failed:
            with self._lock:
                self._checkpoint(database)

    def _kept(self, batches: int, seconds: float) -> None:
        self._undecided -= batches
        self._committed(batches, seconds)

    def _lost(self, batches: int, error: StoreError) -> None:
        self._undecided -= batches
        self._failed(error)

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
        except BaseException as error:  # raised in the caller that submitted the job
            self._call_in_loop(self._answer, _reject, job.future, error)
        else:
            self._call_in_loop(self._answer, _resolve, job.future, result)

    def _answer(self, how: Callable[[asyncio.Future[Any], Any], None], future: asyncio.Future[Any], what: Any) -> None:
        self._undecided -= 1
        how(future, what)

    def _call_in_loop(self, fn: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(fn, *args)
        except RuntimeError:
            # The event loop is closed, so no caller waits. What was committed stays committed.
            return


def _as_unavailable(error: Exception) -> StoreError:
    return error if isinstance(error, StoreUnavailable) else StoreUnavailable(f"{error}")


def _resolve(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _reject(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
