"""Tasks: what was accepted and is not done yet. Each ends by its action, in the order in which they come due."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final

from homeport.sim.engine.fault import TaskFailure, TaskHang
from homeport.sim.engine.injector import Subject
from homeport.sim.engine.progress import Countdown
from homeport.sim.prism.core import Core, replace
from homeport.sim.prism.entity import Affected, Failure, Task, Timer
from homeport.sim.prism.error import Refusal, rejected

PREFIX: Final = "ZXJnb24=:"  # base64 of "ergon": how v4 writes the ids of tasks
KEPT: Final = 2_000  # the newest of those that are over, and all that are not
KEPT_SECONDS: Final = 3600.0

Action = Callable[[Task], dict[str, str] | None]
TimerAction = Callable[[Timer], None]


class Tasks:
    def __init__(self, core: Core, on_timer: TimerAction) -> None:
        self._core = core
        self._actions: dict[str, Action] = {}
        self._on_timer = on_timer
        self._due: list[tuple[float, int, str, str]] = []  # moment, order, table, id
        self._order = 0
        self._held: set[str] = set()  # due, and waiting for their cluster or a file
        self.rebuild()

    def on(self, action: str, perform: Action) -> None:
        self._actions[action] = perform

    def rebuild(self) -> None:
        """After another world was put in place."""
        self._due, self._held = [], set()
        for task in self._core.world.tasks:
            if not task.over and not task.parent:
                self._schedule(task)
        for timer in self._core.world.timers:
            self._push(timer.at, "timers", timer.ext_id)

    def _push(self, at: float, table: str, ext_id: str) -> None:
        self._order += 1
        heapq.heappush(self._due, (at, self._order, table, ext_id))
        self._core.on_change()

    def _schedule(self, task: Task) -> None:
        if task.countdown.due is not None:
            self._push(task.countdown.due, "tasks", task.ext_id)
        elif task.countdown.done(self._core.now()):
            self._push(self._core.now(), "tasks", task.ext_id)

    def timer(self, timer: Timer) -> None:
        self._core.put(self._core.world.timers, timer)
        self._push(timer.at, "timers", timer.ext_id)

    def start(
        self,
        operation: str,
        action: str,
        arguments: dict[str, Any],
        affected: tuple[Affected, ...],
        *,
        cluster: str = "",
        owner: str = "",
        sub_operation: str = "",
    ) -> Task:
        core = self._core
        now = core.now()
        effect = self._effect(operation, affected, cluster)
        task = Task(
            ext_id=core.new_id(),
            operation=operation,
            action=action,
            arguments=arguments,
            countdown=core.pace.of(operation).start(now, core.rng),
            affected=affected,
            cluster=cluster,
            owner=owner,
            started=now,
        )
        task = _struck(task, effect, now)
        if sub_operation:
            task = self._with_child(task, sub_operation)
        core.put(core.world.tasks, task)
        self._forget_old()
        if task.countdown.done(now) and not self._blocked(task):
            self._finish(task.ext_id)
        else:
            self._schedule(task)
        return core.world.tasks.get(task.ext_id) or task

    def _effect(self, operation: str, affected: tuple[Affected, ...], cluster: str) -> TaskFailure | TaskHang | None:
        """The fault that this task meets."""
        first = affected[0] if affected else Affected("", "")
        return self._core.faults.on_task(
            Subject(
                kind=first.kind,
                name=first.name,
                ext_id=first.ext_id,
                clusters=self._core.cluster_names(cluster),
                operation=operation,
            )
        )

    def _with_child(self, task: Task, operation: str) -> Task:
        child = Task(
            ext_id=self._core.new_id(),
            operation=operation,
            parent=task.ext_id,
            affected=task.affected,
            cluster=task.cluster,
            owner=task.owner,
            started=task.started,
        )
        self._core.put(self._core.world.tasks, child)
        return replace(task, children=(child.ext_id,))

    def shown(self, task: Task) -> Task:
        """As a client sees it now: sub-tasks share the fate of their parent, waiting ones are queued."""
        now = self._core.now()
        parent = self._core.world.tasks.get(task.parent) if task.parent else None
        whole = parent or task
        if whole.over:
            return replace(
                task,
                status=whole.status,
                completed=whole.completed,
                failure=whole.failure,
                details=whole.details,
                progress=100 if whole.status == "SUCCEEDED" else whole.progress,
                updated=whole.completed,
            )
        if self._core.out_of_reach(whole.cluster):
            return replace(task, status="QUEUED", failure=None)
        share = int(100 * whole.countdown.share(now))
        return replace(task, status="RUNNING", progress=max(share, whole.progress), failure=None)

    def read(self, task: Task) -> Task:
        """Somebody looks at it: that may be what it waits for."""
        whole = self._core.world.tasks.get(task.parent) if task.parent else task
        if whole is not None and not whole.over and whole.countdown.reads is not None:
            counted = replace(whole, countdown=whole.countdown.read())
            self._core.world.tasks.put(counted)
            if counted.countdown.done(self._core.now()) and not self._blocked(whole):
                self._finish(whole.ext_id)
        return self._core.world.tasks.get(task.ext_id) or task

    def cancel(self, task: Task) -> None:
        if task.over:
            raise rejected("", f"The task {task.ext_id} is over and can't be canceled.", "TASK_NOT_CANCELABLE")
        now = self._core.now()
        self._core.put(self._core.world.tasks, task, status="CANCELED", completed=now)

    def settle(self) -> None:
        """Brings the world up to now: everything that came due happens at its own moment."""
        core = self._core
        moment = core.clock.now()
        self._retry_held()
        while self._due and self._due[0][0] <= moment:
            at, _, table, ext_id = heapq.heappop(self._due)
            core.at = at
            try:
                if table == "tasks":
                    self._came_due(ext_id)
                elif (timer := core.drop(core.world.timers, ext_id)) is not None:
                    self._on_timer(timer)
            finally:
                core.at = None

    def next_due(self) -> float | None:
        return self._due[0][0] if self._due else None

    def _blocked(self, task: Task) -> bool:
        """Its time is over, but its cluster does not answer, or the file that it needs is not there yet."""
        core, url = self._core, str(task.arguments.get("url") or "")
        if core.out_of_reach(task.cluster):
            return True
        return bool(url) and core.downloads is not None and core.downloads.ask(task.ext_id, url, core.on_change) is None

    def _came_due(self, ext_id: str) -> None:
        task = self._core.world.tasks.get(ext_id)
        if task is None or task.over:
            return
        if self._blocked(task):
            self._held.add(ext_id)
            return
        self._finish(ext_id)

    def _retry_held(self) -> None:
        for ext_id in sorted(self._held):
            task = self._core.world.tasks.get(ext_id)
            if task is None or task.over or not self._blocked(task):
                self._held.discard(ext_id)
                if task is not None and not task.over:
                    self._finish(ext_id)

    def _finish(self, ext_id: str) -> None:
        core = self._core
        task = core.world.tasks.get(ext_id)
        if task is None or task.over:
            return
        failure, details = task.failure, None
        if failure is None and task.action:
            try:
                details = self._actions[task.action](task)
            except Refusal as refusal:
                failure = refusal.failure
        core.put(
            core.world.tasks,
            task,
            status="FAILED" if failure else "SUCCEEDED",
            failure=failure,
            details=details or {},
            completed=core.now(),
            arguments={},
        )

    def _forget_old(self) -> None:
        tasks = self._core.world.tasks
        too_many, too_old = len(tasks) - KEPT, self._core.now() - KEPT_SECONDS
        for task in tasks:
            if too_many <= 0 and task.started >= too_old:
                return
            too_many -= 1
            whole = tasks.get(task.parent) if task.parent else task
            if whole is None or whole.over:
                self._core.drop(tasks, task.ext_id)


def bare_id(text: str) -> str:
    """The id of a task as it is kept, from either spelling."""
    return text.rpartition(":")[2]


def _struck(task: Task, effect: TaskFailure | TaskHang | None, now: float) -> Task:
    match effect:
        case TaskFailure(code=code, message=message, group=group):
            failure = Failure(code, message or f"The operation {task.operation} failed.", group or "INTERNAL_ERROR")
            return replace(task, failure=failure)
        case TaskHang(seconds=None):
            return replace(task, countdown=Countdown(never=True))
        case TaskHang():
            due = (task.countdown.due or now) + (effect.seconds or 0.0)
            return replace(task, countdown=Countdown(due=due, started=now))
    return task
