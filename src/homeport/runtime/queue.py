"""The work queue of a controller.

A key waits at most once, is worked on by at most one worker, and when it is added while being worked on it is worked on
again afterwards. Keys of higher priority go first; within one priority the oldest goes first, so none starves. A failed
key comes back after a growing, jittered pause; an explicit `after` never delays a key that is due earlier.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable, Hashable
from contextvars import Context
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Priority(IntEnum):
    """Lower is more urgent: what a user just did goes before what a resync brings up."""

    USER = 0
    NORMAL = 1
    RESYNC = 2


_LAZIEST_FIRST = tuple(reversed(Priority))
_SPARE = 8
_WAIT_WEIGHT = 0.05  # of the last wait in the mean
_REST_PER_WAIT = 10.0
_SHORTEST_REST = 0.05
_LONGEST_REST = 1.0
_LEAST_WAIT = _SHORTEST_REST / _REST_PER_WAIT

_Later = tuple[float, int, K, Priority]  # when, the order among equal times, what


@dataclass(frozen=True, slots=True)
class Backoff:
    first: float = 0.005
    factor: float = 2.0
    limit: float = 300.0
    jitter: float = 0.1

    def delay(self, failures: int) -> float:
        plain = min(self.limit, self.first * self.factor ** min(failures - 1, 63))
        return plain * (1 + self.jitter * random.random())  # noqa: S311  (spreading load, not guarding secrets)


@dataclass(slots=True)
class QueueStats:
    adds: int = 0
    retries: int = 0
    waited_seconds: float = 0.0
    taken: int = 0


class ShutDown(Exception):
    """The queue was closed while a worker waited."""


class WorkQueue(Generic[K]):
    def __init__(
        self,
        *,
        backoff: Backoff | None = None,
        fairness: int = 10,
        taken: Callable[[float], None] | None = None,
        retried: Callable[[], None] | None = None,
    ) -> None:
        self._observe_taken = taken  # told how long each key was ready before a worker took it
        self._observe_retried = retried
        self._backoff = backoff or Backoff()
        self._fairness = fairness  # at least every n-th key taken is the oldest of the least urgent ones
        self._lanes: dict[Priority, deque[K]] = {p: deque() for p in Priority}
        self._waiting: dict[K, tuple[Priority, float]] = {}  # ready keys > (lane, since when)
        self._working: dict[K, Priority | None] = {}  # being worked on > added meanwhile, and how urgently
        self._later: dict[K, _Later[K]] = {}
        self._heap: list[_Later[K]] = []  # of `_later`, and of some that are so no more
        self._timer: tuple[float, asyncio.TimerHandle] | None = None  # for the first in the heap
        self._order = itertools.count()
        self._failures: dict[K, int] = {}
        self._mean_wait = 0.0  # of keys for workers, of late
        self._crowded = -math.inf  # when a key was taken that had to wait for a worker
        self._worked: dict[K, float] = {}  # keys that rest > when they were worked on, the earliest first
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._turn = itertools.count(1)
        self.stats = QueueStats()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def delayed(self) -> int:
        return len(self._later)

    @property
    def idle(self) -> bool:
        """Nothing ready, nothing in work; keys may still be waiting for their time."""
        return not self._waiting and not self._working

    def add(self, key: K, *, priority: Priority = Priority.NORMAL, after: float = 0.0) -> None:
        if self._closed:
            return
        if after <= 0 and priority != Priority.USER and key not in self._waiting:
            after = self._rest_left(key)
        if after > 0:
            self._add_later(key, after, priority)
        else:
            self._add_now(key, priority)

    def _add_now(self, key: K, priority: Priority) -> None:
        self.stats.adds += 1
        self._later.pop(key, None)
        if key in self._working:
            again = self._working[key]
            self._working[key] = priority if again is None else min(again, priority)
            return
        held = self._waiting.get(key)
        if held is not None:
            if priority < held[0]:  # moves up; its old place is skipped when its turn comes
                self._waiting[key] = (priority, held[1])
                self._lanes[priority].append(key)
            return
        self._waiting[key] = (priority, asyncio.get_running_loop().time())
        self._lanes[priority].append(key)
        self._wake()

    def _add_later(self, key: K, after: float, priority: Priority) -> None:
        due = asyncio.get_running_loop().time() + after
        known = self._later.get(key)
        if known is not None and known[0] <= due:
            return
        made = self._later[key] = (due, next(self._order), key, priority)
        if len(self._heap) > 2 * len(self._later) + _SPARE:  # most are there in vain
            self._heap = list(self._later.values())
            heapq.heapify(self._heap)
        else:
            heapq.heappush(self._heap, made)
        self._set_timer()

    def _set_timer(self) -> None:
        """One for all keys: a timer for each would take more memory than everything else about a key at rest."""
        due = self._heap[0][0]
        if self._timer is not None:
            if self._timer[0] <= due:
                return
            self._timer[1].cancel()
        # Not in the context of whoever adds a key: the next one is set in that of the one before.
        self._timer = due, asyncio.get_running_loop().call_at(due, self._take_due, due, context=Context())

    def _take_due(self, until: float) -> None:
        self._timer = None
        while self._heap and self._heap[0][0] <= until:
            found = heapq.heappop(self._heap)
            if self._later.get(found[2]) is found:  # it was not added at once, or for an earlier time, meanwhile
                self._add_now(found[2], found[3])
        if self._heap:
            self._set_timer()

    async def get(self) -> K:
        """The next key; the caller must end with `done`."""
        while True:
            if self._closed:
                raise ShutDown
            key = self._take()
            if key is not None:
                return key
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter.done() and not getter.cancelled():
                    self._wake()  # the wake-up was ours but we leave: pass it on
                else:
                    with contextlib.suppress(ValueError):  # a wake-up may have found it cancelled and dropped it
                        self._getters.remove(getter)
                raise

    def _take(self) -> K | None:
        if not self._waiting:
            return None
        urgent_last = next(self._turn) % self._fairness == 0
        for priority in _LAZIEST_FIRST if urgent_last else Priority:
            lane = self._lanes[priority]
            while lane:
                key = lane.popleft()
                held = self._waiting.get(key)
                if held is None or held[0] != priority:
                    continue  # moved to another lane, or taken from there already
                del self._waiting[key]
                self._working[key] = None
                now = asyncio.get_running_loop().time()
                waited = now - held[1]
                self.stats.taken += 1
                self.stats.waited_seconds += waited
                if waited >= _LEAST_WAIT:
                    if self._is_calm(now):
                        self._mean_wait = 0.0
                    self._crowded = now
                self._mean_wait += _WAIT_WEIGHT * (waited - self._mean_wait)
                if self._observe_taken is not None:
                    self._observe_taken(waited)
                return key
        return None

    def done(self, key: K) -> None:
        """The worker has finished with the key, well or badly."""
        again = self._working.pop(key)
        if again is not None:
            self.add(key, priority=again)

    # -- rest --------------------------------------------------------------------------------------------------
    # While keys wait for workers, whatever happens to one of them happens in many small steps, and a look at each of
    # them finds little. The longer keys wait, the longer a key that was just worked on rests, and what wakes it
    # meanwhile becomes one look. Where none wait, none rests.

    def rest(self, key: K) -> None:
        """The key was worked on just now. What users do wakes it all the same."""
        now = asyncio.get_running_loop().time()
        if self._rest_seconds():
            self._worked.pop(key, None)
            self._worked[key] = now
        while self._worked and (first := next(iter(self._worked.items())))[1] < now - _LONGEST_REST:
            del self._worked[first[0]]

    def _is_calm(self, now: float) -> bool:
        """For so long no key had to wait that the mean tells of a crowd of the past."""
        return now - self._crowded > _LONGEST_REST

    def _rest_seconds(self) -> float:
        if self._is_calm(asyncio.get_running_loop().time()):
            return 0.0
        rest = min(self._mean_wait * _REST_PER_WAIT, _LONGEST_REST)
        return rest if rest >= _SHORTEST_REST else 0.0

    def _rest_left(self, key: K) -> float:
        worked = self._worked.get(key)
        if worked is None:
            return 0.0
        return worked + self._rest_seconds() - asyncio.get_running_loop().time()

    def retry(self, key: K, *, priority: Priority = Priority.NORMAL, at_least: float = 0.0) -> float:
        """It failed: once more after a pause that grows with each failure in a row. Returns the pause."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.stats.retries += 1
        if self._observe_retried is not None:
            self._observe_retried()
        delay = max(at_least, self._backoff.delay(failures))
        self.add(key, priority=priority, after=delay)
        return delay

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """It went well: the next failure starts with the shortest pause again."""
        self._failures.pop(key, None)

    def drop(self, matches: Callable[[K], bool]) -> None:
        """Forgets keys that are no longer ours (another shard took them over)."""
        for key in [k for k in self._waiting if matches(k)]:
            del self._waiting[key]
        for key in [k for k in self._later if matches(k)]:
            del self._later[key]
        for key in [k for k in self._failures if matches(k)]:
            del self._failures[key]
        for key, again in self._working.items():
            if again is not None and matches(key):
                self._working[key] = None  # who works on it ends, but does not start over

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer[1].cancel()
        self._later.clear()
        self._heap.clear()
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return
