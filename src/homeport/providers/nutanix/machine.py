"""Machines on AHV: found by identity, made once, powered on, and seen to be gone.

A VM carries the UID of its NutanixMachine from its first moment; creation is sent with a request id that follows from
that UID, so that neither a lost answer nor a restart makes a second one.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

import structlog

from homeport.api.nutanix.v1beta1 import TaskRef
from homeport.capi.cloud import Address
from homeport.capi.family import canonical, in_order
from homeport.infra.error import Misconfigured, Missing, ProviderError, Stale, Taken, Unreachable, can_not_ask
from homeport.infra.protocol import CREATING, DELETING, NO_ADDRESS, POWERED_OFF, POWERING_ON, Instance
from homeport.infra.task import Absence, Overdue, Task
from homeport.providers.nutanix.address import explained
from homeport.providers.nutanix.client import failed_task
from homeport.providers.nutanix.connection import VENDOR
from homeport.providers.nutanix.plan import CLUSTER_CATEGORY, MARK, FindDomain, Scope, plan_vm
from homeport.providers.nutanix.prism.record import Category, Vm
from homeport.providers.nutanix.watch import Watch
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

PREFIX = "nutanix://"
# How often a creation was given up: part of the request id, for a failed request is answered with its failure for ever.
ATTEMPT = "nutanix.homeport.dev/create-attempt"
_POWER_SECONDS = 8.0  # until the task is asked why the VM is not on yet
_ADDRESS_SECONDS = 30.0  # the watch wakes us; this is for when it can't


class MachineDriver:
    def __init__(self, find_domain: FindDomain, clock: Clock) -> None:
        self._find_domain = find_domain
        self._absence = Absence(clock)
        self._overdue = Overdue(clock, VENDOR)
        # What is under way, by the object's UID. The status says the same, but may lag behind.
        self._tasks: dict[str, TaskRef] = {}
        self._watches: dict[str, Watch] = {}  # that look at its VM

    # -- what is under way -------------------------------------------------------------------------------------

    def _under_way(self, scope: Scope) -> TaskRef | None:
        return self._tasks.get(scope.uid) or scope.infra.status.task

    def _begin(self, scope: Scope, operation: str, task_id: str) -> None:
        self._tasks[scope.uid] = scope.infra.status.task = TaskRef(operation=operation, id=task_id)

    def _end(self, scope: Scope) -> None:
        self._tasks.pop(scope.uid, None)
        scope.infra.status.task = None

    def forget(self, uid: str) -> None:
        self._tasks.pop(uid, None)
        self._unwatch(uid)
        self._absence.seen(uid)
        self._overdue.forget(uid)

    # -- looking -----------------------------------------------------------------------------------------------

    async def observe(self, scope: Scope) -> Instance | None:
        vm = await self._find(scope)
        return None if vm is None else _instance(scope, vm)

    async def _find(self, scope: Scope) -> Vm | None:
        known = known_id(scope)
        if known:
            vm = await self._look(scope, known)
            return vm if vm is not None and _is_ours(scope, vm) else None
        under_way = self._under_way(scope)
        if under_way is not None:
            return await self._made(scope, under_way)  # the task says when it is there
        if scope.never_asked:
            return None
        found = sorted(await self._marked(scope), key=lambda vm: (vm.power == "off", vm.created, vm.id))
        if not found:
            return None
        await self._remove_twins(scope, found)
        scope.infra.status.vm_uuid = found[0].id
        return await scope.session.prism.vm(found[0].id)

    async def _remove_twins(self, scope: Scope, found: Sequence[Vm]) -> None:
        """A create whose answer was lost was repeated where the API has no request ids. One that runs stays: a VM that
        was never powered on is nobody's, but of two that run either may be in use."""
        running = [vm for vm in found if vm.power != "off"]
        if len(running) > 1:
            shown = ", ".join(f"{vm.name} ({vm.id})" for vm in running)
            raise Taken(
                f"NutanixMachine {scope.infra.metadata.name}: several running VMs have its mark: {shown}; in Prism "
                "Central, delete those that are not in use"
            )
        for twin in found[1:]:
            log.warning("a second VM was created for the same object and is removed", vm=twin.name, id=twin.id)
            await scope.session.prism.delete_vm(twin)

    async def _look(self, scope: Scope, vm_id: str) -> Vm | None:
        """By the looks for all, unless it is to go: then nothing but its own answer counts."""
        if scope.deleting:
            self._unwatch(scope.uid)
            return await scope.session.prism.vm(vm_id)
        watch = self._watch(scope)
        return await watch.find(scope.uid, vm_id, scope.name, scope.wake)

    def _watch(self, scope: Scope) -> Watch:
        watch = scope.session.watch
        if self._watches.get(scope.uid) is not watch:
            self._unwatch(scope.uid)  # the credentials are others by now
            self._watches[scope.uid] = watch
        return watch

    def _unwatch(self, uid: str) -> None:
        held = self._watches.pop(uid, None)
        if held is not None:
            held.forget(uid)

    def stop_watching(self, uid: str) -> None:
        self._unwatch(uid)

    async def _made(self, scope: Scope, under_way: TaskRef) -> Vm | None:
        """What a create that has ended made. Tasks name all sorts of entities, some of which never were."""
        task = await scope.session.tasks.state(under_way.id)
        for each in task.entity_ids if task is not None and task.status == "succeeded" else ():
            vm = await scope.session.prism.vm(each)
            if vm is not None and vm.mark(MARK) == scope.uid:
                self._end(scope)
                scope.infra.status.vm_uuid = vm.id
                if not scope.deleting:
                    self._watch(scope).note(scope.uid, vm, scope.wake)
                return vm
        return None

    async def _marked(self, scope: Scope) -> list[Vm]:
        """VMs that were made for this very object: of its name, with its mark. Others of that name are none of ours."""
        named = await scope.session.lookup.vms_named(scope.name)
        return [each for each in named if each.mark(MARK) == scope.uid]

    # -- growing -----------------------------------------------------------------------------------------------

    async def converge(self, scope: Scope, instance: Instance | None) -> Wait | None:
        if instance is None:
            return await self._make(scope)
        vm: Vm = instance.vendor
        scope.infra.status.vm_uuid = vm.id
        if vm.power != "on":
            return await self._power_on(scope, vm)
        self._end(scope)
        if not instance.addresses and not scope.infra.status.initialization.provisioned:
            text = f"VM {vm.name} ({vm.id}) has no address yet: check that its subnet has a DHCP server or IPAM"
            scope.session.watch.hurry(scope.uid)
            return Wait(NO_ADDRESS, text, after=_ADDRESS_SECONDS)
        scope.session.watch.settle(scope.uid)
        return None

    async def _make(self, scope: Scope) -> Wait:
        name = scope.name
        under_way = self._under_way(scope)
        if under_way is None:
            return await self._create(scope)
        task = await scope.session.tasks.state(under_way.id)
        if task is not None and task.unfinished:
            return self._wait_for(scope, task, CREATING, f"VM {name} is being created")
        self._end(scope)
        if task is None:
            # It may have ended long ago: what it made is found by its mark, and otherwise made again.
            return Wait(CREATING, f"VM {name} is being created", after=0.0, quiet=True)
        if task.status == "failed":
            await self._refused(scope)
            raise explained(failed_task(task.error, task.codes, f"VM {name} could not be created"), scope.addresses)
        for vm in await self._marked(scope):
            scope.infra.status.vm_uuid = vm.id
            return Wait(CREATING, f"VM {name} is made", after=0.0, quiet=True)
        raise Missing(f"VM {name} was created but was not found: checking again")

    async def _create(self, scope: Scope) -> Wait:
        ref = scope.infra.spec.bootstrap_ref
        if not scope.user_data and (ref is None or ref.kind != "Image"):
            raise Misconfigured(f"Machine {scope.name} has empty bootstrap data")
        vm = await plan_vm(scope, self._find_domain, await hold_category(scope))
        request_id = str(uuid.uuid5(uuid.UUID(scope.uid), f"create {_attempt(scope)}"))
        try:
            task_id = await scope.session.prism.create_vm(vm, request_id)
        except ProviderError as error:
            if not can_not_ask(error) and not isinstance(error, Stale):
                await self._refused(scope)
            raise
        log.info("VM is being created", vm=vm.name, task=task_id)
        self._begin(scope, "create", task_id)
        return self._wait_for(scope, Task(task_id, "queued"), CREATING, f"VM {vm.name} is being created")

    async def _refused(self, scope: Scope) -> None:
        """Prepares another try. What the VM refers to may be gone, and Prism Central gives the same answer to the same
        request id even if everything is in order by then."""
        scope.session.lookup.forget()
        await scope.record({ATTEMPT: str(_attempt(scope) + 1)})

    async def _power_on(self, scope: Scope, vm: Vm) -> Wait:
        if scope.has_run:
            if vm.power == "unknown":  # it may run as before: its Node shows that, not Prism Central
                raise Unreachable(
                    f"Prism Central does not know whether VM {vm.name} ({vm.id}) is on: check the connection to its "
                    "Prism Element cluster"
                )
            # Whoever switched it off had a reason: a machine that ran is not started against his will.
            text = f"VM {vm.name} ({vm.id}) is powered {vm.power}: power it on, or delete the Machine"
            return Wait(POWERED_OFF, text, 60.0, warning=True)
        under_way = self._under_way(scope)
        if under_way is not None:
            task = await scope.session.tasks.state(under_way.id)
            if task is not None and task.unfinished:
                return self._wait_for(scope, task, POWERING_ON, f"VM {vm.name} is being powered on")
            self._end(scope)
            if task is not None and task.status == "failed":
                raise failed_task(task.error, task.codes, f"VM {vm.name} could not be powered on")
        else:
            self._begin(scope, "power-on", await scope.session.prism.power_on(vm))
        # The VM itself shows that it is on, and its address with it: the task is asked only if that takes long.
        scope.session.watch.hurry(scope.uid, anew=True)
        return Wait(POWERING_ON, f"VM {vm.name} is being powered on", after=_POWER_SECONDS)

    async def quiesce(self, scope: Scope) -> Wait | None:
        under_way = self._under_way(scope)
        if under_way is None:
            return None
        task = await scope.session.tasks.state(under_way.id)
        if task is not None and task.unfinished:
            text = f"VM of {scope.infra.metadata.name}: waiting for {under_way.operation} to finish"
            return self._wait_for(scope, task, "Paused", text)
        if await self._made(scope, under_way) is None:
            self._end(scope)
        return None

    # -- shrinking ---------------------------------------------------------------------------------------------

    async def release(self, scope: Scope, instance: Instance | None) -> Wait | None:
        name = scope.infra.metadata.name
        under_way = self._under_way(scope)
        if under_way is not None:
            task = await scope.session.tasks.state(under_way.id)
            if task is not None and task.unfinished:
                text = f"VM of {name}: waiting for {under_way.operation} to finish"
                wait = self._wait_for(scope, task, DELETING, text)
                # What hangs in a VM that is there goes with it; one that is not there yet may still come.
                if instance is None or not self._overdue.holds(scope.uid, task):
                    return wait
                log.warning("no longer waiting for a task", vm=instance.name, task=task.id)
            self._end(scope)
            if under_way.operation == "delete" and task is not None and task.status == "failed" and instance:
                raise failed_task(task.error, task.codes, f"VM {instance.name} ({instance.id}) could not be deleted")
            if under_way.operation == "delete" and task is not None and task.status == "succeeded":
                self._absence.expect(scope.uid)
            if under_way.operation == "create":
                # It was not looked for while it was being made.
                return Wait(DELETING, f"VM of {name}: create has finished", after=0.0, quiet=True)
        if instance is None:
            return self._confirm_absence(scope)
        self._absence.seen(scope.uid)
        vm: Vm = instance.vendor
        if vm.volume_group_ids:
            return await self._detach(scope, vm)
        try:
            task_id = await scope.session.prism.delete_vm(vm)
        except Missing:
            return Wait(DELETING, f"VM {vm.name} is gone", after=0.0, quiet=True)
        self._begin(scope, "delete", task_id)
        return self._wait_for(scope, Task(task_id, "queued"), DELETING, f"VM {vm.name} is being deleted")

    def _confirm_absence(self, scope: Scope) -> Wait | None:
        wait = self._absence.confirm(scope.uid, known_id(scope))
        if wait is None:
            self.forget(scope.uid)
        return wait

    async def _detach(self, scope: Scope, vm: Vm) -> Wait:
        """All at once: each takes its time, and they don't care for each other."""
        started = await asyncio.gather(
            *(scope.session.prism.detach(vm, each) for each in vm.volume_group_ids), return_exceptions=True
        )
        failed = [each for each in started if isinstance(each, BaseException)]
        for task_id in started:
            if isinstance(task_id, str):
                scope.session.tasks.follow(task_id, scope.uid, scope.wake)
        for error in failed:
            if not isinstance(error, Missing | Stale):
                raise error
        count = len(vm.volume_group_ids)
        return Wait("DetachingVolumeGroups", f"VM {vm.name}: {count} volume groups are being detached", after=5.0)

    def _wait_for(self, scope: Scope, task: Task, reason: str, message: str) -> Wait:
        scope.session.tasks.follow(task.id, scope.uid, scope.wake)
        return self._overdue.wait(scope.uid, task, reason, message)


async def hold_category(scope: Scope) -> Category | None:
    """The mark of the cluster, made anew where somebody removed it. None: it belongs to no cluster."""
    name, lookup = scope.cluster, scope.session.lookup
    if not name:
        return None
    found = await lookup.find_category(CLUSTER_CATEGORY, name)
    if found is None:
        description = f"Machines of Kubernetes cluster {name}, managed by Homeport"
        found = await scope.session.prism.create_category(CLUSTER_CATEGORY, name, description)
        lookup.know_category(found)
    return found


def known_id(scope: Scope) -> str:
    """Of the VM, '' while there is none. Templates are about that fill in a provider id which means nothing."""
    return vm_id(scope.infra.status.vm_uuid) or vm_id(scope.infra.spec.provider_id)


def vm_id(provider_id: str) -> str:
    """The VM's UUID of `nutanix://<VM>` or `nutanix://<Prism Central>/<VM>`; '' if there is none."""
    candidate = provider_id.removeprefix(PREFIX).rpartition("/")[2]
    try:
        uuid.UUID(candidate)
    except ValueError:
        return ""
    return candidate


def _is_ours(scope: Scope, vm: Vm) -> bool:
    """By the mark; after a move to another management cluster the UID is another one, and the name decides."""
    names = {scope.name, scope.infra.metadata.name}
    return vm.mark(MARK) == scope.uid or vm.name in names


def _attempt(scope: Scope) -> int:
    text = scope.infra.metadata.annotations.get(ATTEMPT, "0")
    return int(text) if text.isdigit() else 0


def _instance(scope: Scope, vm: Vm) -> Instance:
    # The control plane's virtual address wanders from machine to machine: it is nobody's own.
    virtual = canonical(scope.endpoint)
    own = [each for each in vm.addresses if canonical(each) != virtual]
    addresses = [Address("InternalIP", each) for each in in_order(own, scope.family)]
    if addresses:
        addresses.append(Address("Hostname", vm.name))
    return Instance(
        id=vm.id,
        provider_id=f"{PREFIX}{vm.id}",
        name=vm.name,
        power=vm.power,
        addresses=tuple(addresses),
        failure_domain=scope.failure_domain,
        vendor=vm,
    )
