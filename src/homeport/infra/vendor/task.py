"""Tasks of a vendor: followed by one poller for all machines of a session, and reported when they take too long."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import structlog

from homeport.infra.error import ProviderError, Unreachable
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

_FIRST_SECONDS = 0.25
_SLOWEST_SECONDS = 5.0
_FORGET_SECONDS = 600.0
# Hardly any task takes longer than that: from then on it is looked at now and then, and the others don't wait for it.
_OLD_SECONDS = 120.0
_OLD_SHARE, _OLD_SLOWEST = 0.1, 60.0


AGAIN_SECONDS = 30.0  # the poller wakes who waits; this is for when it can't
EARLY_SECONDS = 5.0  # most tasks are over by then: of the others, the first look says what they wait for
OVERDUE_SECONDS = 900.0  # for longer than that no task of a machine works
TaskStatus = Literal["queued", "running", "succeeded", "failed"]
ReadTasks = Callable[[Sequence[str]], Awaitable[Sequence["Task"]]]


@dataclass(frozen=True, slots=True)
class Task:
    """Something that the vendor does after it has answered. `entity_ids`: what it made or changed."""

    id: str
    status: TaskStatus
    progress: int = 0
    entity_ids: tuple[str, ...] = ()
    error: str = ""  # what the vendor says, codes included
    codes: tuple[str, ...] = field(default=())
    operation: str = ""  # as the vendor calls it
    names: tuple[str, ...] = field(default=())  # of what it makes or changes, where the vendor says so
    created: float = 0.0

    @property
    def unfinished(self) -> bool:
        return self.status in ("queued", "running")


@dataclass(slots=True)
class _Followed:
    since: float
    wakes: dict[str, Callable[[], None]] = field(default_factory=dict)  # by who waits
    task: Task | None = None  # the last that was seen of it
    unknown: int = 0
    next_look: float = 0.0  # of one that is old


class Poller:
    """`follow` a task and be woken when it is over; `state` says how it stands. Idle while there is none.

    `read` gives the tasks of these ids, many in one call where the vendor can; `vendor` is its name for messages.
    """

    def __init__(self, read: ReadTasks, clock: Clock, vendor: str) -> None:
        self._read = read
        self._clock = clock
        self._vendor = vendor
        self._followed: dict[str, _Followed] = {}
        self._running: asyncio.Task[None] | None = None
        self._task_added = asyncio.Event()  # there is a task that was not there before

    def follow(self, task_id: str, who: str, wake: Callable[[], None]) -> None:
        if task_id not in self._followed:
            self._forget()
            self._followed[task_id] = _Followed(self._clock.monotonic())
            self._task_added.set()
        self._followed[task_id].wakes[who] = wake
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._poll(), name=f"tasks of {self._vendor}")

    async def state(self, task_id: str) -> Task | None:
        """The newest state; read from the vendor if the task is not followed. None: the vendor does not know it."""
        held = self._followed.get(task_id)
        if held is not None and (held.task is not None or held.wakes):
            return held.task or Task(task_id, "queued")
        found = await self._read([task_id])
        return found[0] if found else None

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _poll(self) -> None:
        delay = _FIRST_SECONDS
        while True:
            self._forget()
            pending = {task_id: held for task_id, held in self._followed.items() if not _over(held.task)}
            if not pending:
                return
            now = self._clock.monotonic()
            young = [task_id for task_id, held in pending.items() if now - held.since < _OLD_SECONDS]
            due = [task_id for task_id, held in pending.items() if task_id not in young and held.next_look <= now]
            finished = await self._look(young + due) if young or due else False
            for held in (pending[task_id] for task_id in due):
                held.next_look = now + min((now - held.since) * _OLD_SHARE, _OLD_SLOWEST)
            delay = _FIRST_SECONDS if finished else min(delay * 1.5, _SLOWEST_SECONDS)
            if any(not _over(pending[task_id].task) for task_id in young):
                await asyncio.sleep(delay)
            elif not young:
                delay = _FIRST_SECONDS
                await self._wait_for_task(min(held.next_look for held in pending.values()) - now)

    async def _wait_for_task(self, seconds: float) -> None:
        """Until an old task is to be looked at, or there is a new one."""
        self._task_added.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._task_added.wait(), max(seconds, _FIRST_SECONDS))

    async def _look(self, pending: list[str]) -> bool:
        try:
            found = {task.id: task for task in await self._read(pending)}
        except ProviderError as error:
            log.info("tasks could not be read", vendor=self._vendor, error=error.message)
            if not isinstance(error, Unreachable):
                self._wake_all(pending)
            await asyncio.sleep(_SLOWEST_SECONDS)
            return False
        finished = False
        for task_id in pending:
            held = self._followed[task_id]
            held.task = found.get(task_id, held.task)
            # A task that vanished counts as ended: its caller looks at the machine instead.
            held.unknown = 0 if task_id in found else held.unknown + 1
            if held.unknown >= 3:
                held.task = Task(task_id, "failed", error=f"{self._vendor} no longer has the task")
            if _over(held.task):
                finished = True
                self._wake_all([task_id])
        return finished

    def _wake_all(self, ids: list[str]) -> None:
        for task_id in ids:
            held = self._followed[task_id]
            wakes, held.wakes = held.wakes, {}
            for wake in wakes.values():
                wake()

    def _forget(self) -> None:
        limit = self._clock.monotonic() - _FORGET_SECONDS
        self._followed = {
            task_id: held for task_id, held in self._followed.items() if held.since > limit or not _over(held.task)
        }


class Overdue:
    """Since when the task of each object is waited for, by the object's UID: one that takes too long is reported."""

    def __init__(self, clock: Clock, vendor: str) -> None:
        self._clock = clock
        self._vendor = vendor
        self._since: dict[str, tuple[str, float]] = {}

    def holds(self, uid: str, task: Task) -> bool:
        """Whether a task has run for so long that it probably hangs."""
        now = self._clock.monotonic()
        held, since = self._since.get(uid, ("", now))
        if held != task.id:
            self._since[uid] = (task.id, now)
        return held == task.id and now - since >= OVERDUE_SECONDS

    def forget(self, uid: str) -> None:
        self._since.pop(uid, None)

    def wait(self, uid: str, task: Task, reason: str, message: str) -> Wait:
        share = f", {task.progress} %" if task.progress else ""
        said = f"{message} (task {task.id.rpartition(':')[2]}, {task.status}{share})"
        new = uid not in self._since
        if not self.holds(uid, task):
            return Wait(reason, said, after=EARLY_SECONDS if new else AGAIN_SECONDS)
        text = (
            f"{said}, for more than {OVERDUE_SECONDS / 60:.0f} minutes: see in {self._vendor} what the task waits for, "
            "and cancel it there if it hangs"
        )
        return Wait("TaskOverdue", text, after=AGAIN_SECONDS, warning=True)


class Absence:
    """A machine that we did not remove ourselves is believed to be gone at the second look: answers may be old ones."""

    def __init__(self, clock: Clock, seconds: float = 30.0) -> None:
        self._clock = clock
        self._seconds = seconds
        self._since: dict[str, float] = {}

    def expect(self, uid: str) -> None:
        """We removed it: one look is enough."""
        self._since[uid] = float("-inf")

    def seen(self, uid: str) -> None:
        """It is there, or nobody asks any more."""
        self._since.pop(uid, None)

    def confirm(self, uid: str, known: str) -> Wait | None:
        """`known`: the id under which it once existed; '' if it never did, as far as anybody knows."""
        now = self._clock.monotonic()
        since = self._since.setdefault(uid, now)
        if known and now - since < self._seconds:
            text = f"VM {known} was not found, and Homeport did not delete it: checking again to confirm"
            return Wait("ConfirmingAbsence", text, after=self._seconds)
        self.seen(uid)
        return None


def _over(task: Task | None) -> bool:
    return task is not None and task.status in ("succeeded", "failed")
