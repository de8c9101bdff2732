"""The life of a machine at any vendor: found by its mark, created once, powered on, and seen to be gone.

No vendor creates a machine exactly once by itself: replies get lost and processes are killed between a request and the
note about it. So before each creation the vendor is asked for machines that carry the object's UID, and what was
started is followed to its end before anything else is started.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import structlog

from homeport.api.meta import Object
from homeport.capi.cloud import Address
from homeport.capi.family import canonical, in_order
from homeport.infra.error import Misconfigured, Missing, ProviderError, Stale, Taken, Unreachable, can_not_ask
from homeport.infra.protocol import Instance, Instances, MachineScope, Operation, Session, TaskReference
from homeport.infra.vendor.task import Absence, Overdue, Task
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

C = TypeVar("C", bound=Object)
M = TypeVar("M", bound=Object)
S = TypeVar("S", bound=Session)

# How many creations the vendor has refused or failed: part of the request id.
ATTEMPT = "infra.homeport.dev/create-attempt"
CREATING = "CreatingVM"
POWERING_ON = "PoweringOn"
DELETING = "Deleting"
# Without a task or a watch somebody has to look: soon at first, then less and less often.
_FIRST_SECONDS, _FACTOR, _SLOWEST_SECONDS = 1.0, 1.5, 15.0
_POWER_SECONDS = 8.0  # until the task is asked why the machine is not on yet
_ADDRESS_SECONDS = 30.0  # for when the watch fails


class InstanceDriver(Generic[C, M, S]):
    """The MachineDriver of all vendors that `instances` can talk to."""

    def __init__(self, instances: Instances[C, M, S, Any], clock: Clock) -> None:
        self._instances = instances
        self._absence = Absence(clock)
        self._overdue = Overdue(clock, instances.vendor)
        self._tasks: dict[str, TaskReference] = {}  # by the object's UID. The status has the same, but may lag behind.
        self._looks: dict[str, int] = {}  # how often a change was looked for in vain, by UID
        self._unseen: dict[str, str] = {}  # the task that created a machine which is not shown, by UID

    def forget(self, uid: str) -> None:
        self._tasks.pop(uid, None)
        self._looks.pop(uid, None)
        self._unseen.pop(uid, None)
        self._instances.stop_watching(uid)
        self._absence.seen(uid)
        self._overdue.forget(uid)

    def stop_watching(self, uid: str) -> None:
        self._instances.stop_watching(uid)

    # -- tasks -------------------------------------------------------------------------------------------------

    def _task(self, scope: MachineScope[C, M, S]) -> TaskReference | None:
        return self._tasks.get(scope.uid) or self._instances.kept_task(scope)

    def _begin(self, scope: MachineScope[C, M, S], operation: Operation, task_id: str) -> None:
        self._looks.pop(scope.uid, None)
        if task_id:
            self._tasks[scope.uid] = TaskReference(operation, task_id)
            self._instances.keep_task(scope, self._tasks[scope.uid])

    def _end(self, scope: MachineScope[C, M, S]) -> None:
        self._tasks.pop(scope.uid, None)
        self._instances.keep_task(scope, None)

    async def _state(self, scope: MachineScope[C, M, S], task: TaskReference) -> Task | None:
        return await self._instances.tasks(scope).state(task.id)

    def _wait_for(self, scope: MachineScope[C, M, S], task: Task, reason: str, message: str) -> Wait:
        if not task.id:
            return Wait(reason, message, after=self._next_look(scope))
        self._instances.tasks(scope).follow(task.id, scope.uid, scope.wake)
        return self._overdue.wait(scope.uid, task, reason, message)

    def _next_look(self, scope: MachineScope[C, M, S]) -> float:
        count = self._looks[scope.uid] = self._looks.get(scope.uid, -1) + 1
        return float(min(_FIRST_SECONDS * _FACTOR ** min(count, 20), _SLOWEST_SECONDS))

    # -- observe -----------------------------------------------------------------------------------------------

    async def observe(self, scope: MachineScope[C, M, S]) -> Instance | None:
        known = self._instances.known_id(scope)
        if known:
            instance = await self._instances.get(scope, known)
            return instance if instance is not None and _is_ours(scope, instance) else None
        task = self._task(scope)
        if task is not None:
            return await self._made(scope, task)  # the task names it when it is there
        if scope.never_asked:
            return None
        found = sorted(await self._instances.find(scope), key=lambda each: each.power == "off")
        if not found:
            return None
        await self._remove_twins(scope, found)
        self._instances.keep_id(scope, found[0].id)
        return await self._instances.get(scope, found[0].id, fresh=True)

    async def _remove_twins(self, scope: MachineScope[C, M, S], found: Sequence[Instance]) -> None:
        """A create whose reply was lost was repeated where the vendor has no request ids. A machine that was never
        powered on is not in use, but of two that run either may be."""
        running = [each for each in found if each.power != "off"]
        if len(running) > 1:
            shown = ", ".join(f"{each.name} ({each.id})" for each in running)
            raise Taken(
                f"{_kind(scope)} {scope.infra.metadata.name}: several running VMs have its mark: {shown}. "
                f"Homeport changes none of them: others may have copied one. In {self._instances.vendor}, find out "
                "which one is the Node, and remove the mark from the others"
            )
        for twin in found[1:]:
            log.warning("a second VM was created for the same object and is removed", vm=twin.name, id=twin.id)
            await self._instances.delete(scope, twin)

    async def _made(self, scope: MachineScope[C, M, S], task: TaskReference) -> Instance | None:
        """What a create that has ended made. Tasks name all sorts of things, some of which never existed."""
        state = await self._state(scope, task)
        for each in state.entity_ids if state is not None and state.status == "succeeded" else ():
            instance = await self._instances.get(scope, each, fresh=True)
            if instance is not None and instance.uid == scope.uid:
                self._end(scope)
                self._instances.keep_id(scope, instance.id)
                return instance
        return None

    # -- converge ----------------------------------------------------------------------------------------------

    async def converge(self, scope: MachineScope[C, M, S], instance: Instance | None) -> Wait | None:
        if instance is None:
            return await self._make(scope)
        self._instances.keep_id(scope, instance.id)
        self._unseen.pop(scope.uid, None)
        if not instance.complete and self._task(scope) is None:
            return self._wait_for(scope, Task("", "running"), CREATING, f"VM {instance.name} is being created")
        if instance.power != "on":
            return await self._power_on(scope, instance)
        self._end(scope)
        if not instance.addresses and not _is_provisioned(scope):
            return self._await_address(scope, instance)
        self._looks.pop(scope.uid, None)
        self._instances.expect(scope, "no")
        return None

    def _await_address(self, scope: MachineScope[C, M, S], instance: Instance) -> Wait:
        text = f"VM {instance.name} ({instance.id}) has no address yet: check that its subnet has a DHCP server or IPAM"
        self._instances.expect(scope, "soon")
        after = _ADDRESS_SECONDS if self._instances.watches else self._next_look(scope)
        return Wait("WaitingForAddress", text, after=after)

    async def _make(self, scope: MachineScope[C, M, S]) -> Wait:
        name, reference = scope.name, self._task(scope)
        if reference is None:
            return await self._create(scope)
        task = await self._state(scope, reference)
        if task is not None and task.unfinished:
            held_up = await self._instances.obstacle(scope)
            said = f"VM {name} is being created" + (f": {held_up}" if held_up else "")
            return self._wait_for(scope, task, CREATING, said)
        self._end(scope)
        if task is None:
            # It may have ended long ago: what it made is found by its mark, and otherwise made again.
            return Wait(CREATING, f"VM {name} is being created", after=0.0, quiet=True)
        if task.status == "failed":
            await self._count_attempt(scope)
            raise self._instances.failure(scope, "create", task, f"VM {name} could not be created")
        self._unseen[scope.uid] = task.id
        for each in await self._instances.find(scope):
            self._instances.keep_id(scope, each.id)
            return Wait(CREATING, f"VM {name} is made", after=0.0, quiet=True)
        raise Missing(self._unseen_text(scope, task.id))

    def _unseen_text(self, scope: MachineScope[C, M, S], task_id: str) -> str:
        return (
            f"task {task_id.rpartition(':')[2]} has created VM {scope.name}, but {self._instances.vendor} does not "
            "show it: its answers may be old, or somebody has deleted the VM; checking again"
        )

    async def _create(self, scope: MachineScope[C, M, S]) -> Wait:
        prepared = await self._instances.prepare(scope)
        request_id = str(uuid.uuid5(uuid.UUID(scope.uid), f"create {_attempt(scope)}"))
        try:
            task_id = await self._instances.create(scope, prepared, request_id)
        except ProviderError as error:
            if not can_not_ask(error) and not isinstance(error, Stale):
                await self._count_attempt(scope)
            raise
        log.info("VM is being created", vm=scope.name, task=task_id)
        self._begin(scope, "create", task_id)
        if task_id and self._unseen.get(scope.uid) == task_id:  # the same request has the same answer
            return self._wait_for(scope, Task("", "running"), CREATING, self._unseen_text(scope, task_id))
        return self._wait_for(scope, Task(task_id, "queued"), CREATING, f"VM {scope.name} is being created")

    async def _count_attempt(self, scope: MachineScope[C, M, S]) -> None:
        """The next try is a new request: vendors give the same answer to the same request id even if everything is in
        order by then."""
        await scope.record({ATTEMPT: str(_attempt(scope) + 1)})

    async def _power_on(self, scope: MachineScope[C, M, S], instance: Instance) -> Wait:
        if scope.has_run:
            return self._left_off(scope, instance)
        what, reference = f"VM {instance.name}", self._task(scope)
        if reference is not None:
            task = await self._state(scope, reference)
            if task is not None and task.unfinished:
                return self._wait_for(scope, task, POWERING_ON, f"{what} is being powered on")
            self._end(scope)
            if task is not None and task.status == "failed":
                raise self._instances.failure(scope, "power-on", task, f"{what} could not be powered on")
        elif instance.power != "changing":
            self._begin(scope, "power-on", await self._instances.power_on(scope, instance))
        # The machine itself shows that it is on, and its address with it: the task is asked only if that takes long.
        self._instances.expect(scope, "now")
        after = _POWER_SECONDS if self._instances.watches else self._next_look(scope)
        return Wait(POWERING_ON, f"{what} is being powered on", after=after)

    def _left_off(self, scope: MachineScope[C, M, S], instance: Instance) -> Wait:
        """Whoever switched it off had a reason: a machine that ran is not started against his will."""
        if instance.power == "unknown":  # it may run as before: its Node shows that, not the vendor
            raise Unreachable(
                f"{self._instances.vendor} does not know whether VM {instance.name} ({instance.id}) is on: check the "
                f"connection to {self._instances.host}"
            )
        text = f"VM {instance.name} ({instance.id}) is powered {instance.power}: power it on, or delete the Machine"
        return Wait("PoweredOff", text, 60.0, warning=True)

    # -- pause -------------------------------------------------------------------------------------------------

    async def quiesce(self, scope: MachineScope[C, M, S]) -> Wait | None:
        reference = self._task(scope)
        if reference is None:
            return None
        task = await self._state(scope, reference)
        if task is not None and task.unfinished:
            text = f"VM of {scope.infra.metadata.name}: waiting for {reference.operation} to finish"
            return self._wait_for(scope, task, "Paused", text)
        if await self._made(scope, reference) is None:
            self._end(scope)
        return None

    # -- release -----------------------------------------------------------------------------------------------

    async def release(self, scope: MachineScope[C, M, S], instance: Instance | None) -> Wait | None:
        reference = self._task(scope)
        wait = await self._await_task(scope, instance, reference) if reference is not None else None
        if wait is not None:
            return wait
        if instance is None:
            return self._confirm_absence(scope)
        if instance.deleting:
            return self._wait_for(scope, Task("", "running"), DELETING, f"VM {instance.name} is being deleted")
        self._absence.seen(scope.uid)
        try:
            begun = await self._instances.delete(scope, instance)
        except Missing:
            return Wait(DELETING, f"VM {instance.name} is gone", after=0.0, quiet=True)
        if isinstance(begun, Wait):
            return begun
        self._begin(scope, "delete", begun)
        if not begun:
            self._absence.expect(scope.uid)
        return self._wait_for(scope, Task(begun, "queued"), DELETING, f"VM {instance.name} is being deleted")

    async def _await_task(
        self, scope: MachineScope[C, M, S], instance: Instance | None, reference: TaskReference
    ) -> Wait | None:
        name, task = scope.infra.metadata.name, await self._state(scope, reference)
        if task is not None and task.unfinished:
            text = f"VM of {name}: waiting for {reference.operation} to finish"
            wait = self._wait_for(scope, task, DELETING, text)
            # A task that hangs goes with its machine, if there is one; a machine that is not there may still come.
            if instance is None or not self._overdue.holds(scope.uid, task):
                return wait
            log.warning("no longer waiting for a task", vm=instance.name, task=task.id)
        self._end(scope)
        deleting = reference.operation == "delete" and task is not None
        if deleting and task is not None and task.status == "failed" and instance:
            what = f"VM {instance.name} ({instance.id}) could not be deleted"
            raise self._instances.failure(scope, "delete", task, what)
        if deleting and task is not None and task.status == "succeeded":
            self._absence.expect(scope.uid)
        if reference.operation == "create":
            # It was not looked for while it was being created.
            return Wait(DELETING, f"VM of {name}: create has finished", after=0.0, quiet=True)
        return None

    def _confirm_absence(self, scope: MachineScope[C, M, S]) -> Wait | None:
        wait = self._absence.confirm(scope.uid, self._instances.known_id(scope))
        if wait is None:
            self.forget(scope.uid)
        return wait


def own_addresses(scope: MachineScope[C, M, S], found: Iterable[str], name: str) -> tuple[Address, ...]:
    """The addresses of a machine as its status shows them. The control plane's virtual address wanders from machine to
    machine and belongs to none."""
    virtual = canonical(scope.endpoint)
    own = [each for each in found if canonical(each) != virtual]
    addresses = [Address("InternalIP", each) for each in in_order(own, scope.family)]
    return (*addresses, Address("Hostname", name)) if addresses else ()


def require_user_data(scope: MachineScope[C, M, S]) -> None:
    if not scope.user_data and not scope.bare:
        raise Misconfigured(f"Machine {scope.name} has empty bootstrap data")


def _is_ours(scope: MachineScope[C, M, S], instance: Instance) -> bool:
    """By the mark; after a move to another management cluster the UID is another one, and the name decides."""
    return instance.uid == scope.uid or instance.name in {scope.name, scope.infra.metadata.name}


def _is_provisioned(scope: MachineScope[C, M, S]) -> bool:
    status = getattr(scope.infra, "status", None)
    return bool(status.initialization.provisioned) if status is not None else False


def _attempt(scope: MachineScope[C, M, S]) -> int:
    text = scope.infra.metadata.annotations.get(ATTEMPT, "0")
    return int(text) if text.isdigit() else 0


def _kind(scope: MachineScope[C, M, S]) -> str:
    return type(scope.infra).__resource__.kind
