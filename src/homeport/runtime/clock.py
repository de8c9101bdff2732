"""Time, real or virtual. No other module calls `time`.

Virtual time is a property of the event loop: `VirtualLoop` jumps to the next timer whenever nothing is ready to run, so
an hour of waiting takes no time, `asyncio.sleep` included, and runs in the same order every time.
"""

from __future__ import annotations

import asyncio
import functools
import math
import random
import selectors
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# 2026-01-01T00:00:00Z: virtual worlds start on a date that certificates and tokens find plausible.
VIRTUAL_START = 1_767_225_600.0


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""


# Where there is one, the clock that goes on while the machine is suspended: leases run out in that time, too.
_MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.clock_gettime(_MONOTONIC)


class LoopClock:
    """The time of the running event loop, counted from `start`: with a VirtualLoop it is virtual."""

    def __init__(self, start: float = VIRTUAL_START) -> None:
        self._start = start
        self.offset = 0.0  # a wall clock may jump; monotonic time never does

    def now(self) -> float:
        return self._start + self.offset + asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def jump(self, seconds: float) -> None:
        """Moves the wall clock, as an operator or NTP would."""
        self.offset += seconds


def rfc3339(moment: float) -> str:
    return _second(math.floor(moment))


@functools.lru_cache(maxsize=1024)
def _second(second: int) -> str:
    """What happens within a second bears the same time, over and over."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(moment: float) -> str:
    """As Lease times are written."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


class Deadlock(RuntimeError):
    """In virtual time nothing can happen any more."""


def _waiting(loop: asyncio.AbstractEventLoop) -> str:
    names = sorted(task.get_name() for task in asyncio.all_tasks(loop))
    return ", ".join(names[:20]) or "no task is left"


class _Jumping(selectors.BaseSelector):
    """Never waits for time to pass: an idle wait advances the loop's clock instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._real = selectors.DefaultSelector()
        self._loop = loop

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or timeout == 0:
            return ready
        if self._loop.threads or self._loop.busy():
            # What a thread computes takes no virtual time: otherwise hours would pass meanwhile.
            ready = self._real.select(self._loop.patience)
            if ready:
                return ready
        if timeout is None:
            # Nothing is scheduled: only a thread or a socket can still wake the loop.
            ready = self._real.select(self._loop.patience)
            if not ready:
                raise Deadlock(f"everybody waits, and nothing is scheduled: {_waiting(self._loop)}")
            return ready
        self._loop.advance(timeout)
        return []

    def get_map(self) -> Any:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when everybody waits."""

    patience = 5.0  # real seconds to wait for a thread or socket when no timer is left

    def __init__(self) -> None:
        self._virtual = 0.0
        self.threads = 0  # that work for the loop now
        self.busy: Callable[[], bool] = lambda: False  # whether other threads do, which the loop did not start
        self.after_turn: Callable[[], None] | None = None  # called after each round of callbacks
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self._virtual

    def advance(self, seconds: float) -> None:
        self._virtual += seconds

    def _run_once(self) -> None:
        super()._run_once()  # type: ignore[misc]
        if self.after_turn is not None:
            self.after_turn()

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        made = super().run_in_executor(executor, func, *args)
        self.threads += 1
        made.add_done_callback(self._thread_ended)
        return made

    def _thread_ended(self, _: asyncio.Future[Any]) -> None:
        self.threads -= 1

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Without the limit of Python 3.12 and later: it is in virtual seconds, which pass while a thread works."""
        await super().shutdown_default_executor()


def run_virtual(main: Coroutine[Any, Any, T], *, seed: int = 0) -> T:
    """Runs `main` in virtual time, with the random module seeded: the same seed gives the same run."""
    random.seed(seed)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
