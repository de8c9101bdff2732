"""VMs on AHV: the requests to Prism Central that a machine's life is made of.

A VM carries the UID of its NutanixMachine from its first moment; creation is sent with a request id that follows from
that UID.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine, TaskRef
from homeport.infra.error import Missing, ProviderError, Stale, can_not_ask
from homeport.infra.machine.driver import own_addresses, require_user_data
from homeport.infra.protocol import Expected, Instance, Instances, Operation, TaskReference
from homeport.infra.vendor.task import Poller, Task
from homeport.providers.nutanix.address import explained
from homeport.providers.nutanix.client import failed_task
from homeport.providers.nutanix.connection import VENDOR, PrismSession
from homeport.providers.nutanix.plan import CLUSTER_CATEGORY, MARK, FindDomain, Scope, place, plan_vm
from homeport.providers.nutanix.prism.record import Category, NewVm, Vm
from homeport.providers.nutanix.watch import Watch
from homeport.runtime.outcome import Wait

PREFIX = "nutanix://"


class NutanixInstances(Instances[NutanixCluster, NutanixMachine, PrismSession, NewVm]):
    vendor = VENDOR
    host = "its Prism Element cluster"
    watches = True

    def __init__(self, find_domain: FindDomain) -> None:
        self._find_domain = find_domain
        self._watches: dict[str, Watch] = {}  # that look at the VM of an object, by its UID

    # -- reading -----------------------------------------------------------------------------------------------

    async def get(self, scope: Scope, id: str, *, fresh: bool = False) -> Instance | None:
        """From the looks for all, unless it is being deleted: then only its own answer counts."""
        if scope.deleting:
            self.stop_watching(scope.uid)
            vm = await scope.session.prism.vm(id)
        elif fresh:
            vm = await scope.session.prism.vm(id)
            if vm is not None and vm.mark(MARK) == scope.uid:
                self._watch(scope).note(scope.uid, vm, scope.wake)
        else:
            vm = await self._watch(scope).find(scope.uid, id, scope.name, scope.wake)
        return None if vm is None else _instance(scope, vm)

    async def find(self, scope: Scope) -> Sequence[Instance]:
        """VMs that were made for this very object: of its name, with its mark. Others of that name are not ours."""
        named = await scope.session.lookup.vms_named(scope.name)
        marked = [each for each in named if each.mark(MARK) == scope.uid]
        return [_instance(scope, vm) for vm in sorted(marked, key=lambda vm: (vm.created, vm.id))]

    def known_id(self, scope: Scope) -> str:
        """Some templates fill in a provider ID which means nothing."""
        return vm_id(scope.infra.status.vm_uuid) or vm_id(scope.infra.spec.provider_id)

    def keep_id(self, scope: Scope, id: str) -> None:
        scope.infra.status.vm_uuid = id

    # -- requests ----------------------------------------------------------------------------------------------

    async def prepare(self, scope: Scope) -> NewVm:
        ref = scope.infra.spec.bootstrap_ref
        if ref is None or ref.kind != "Image":
            require_user_data(scope)
        return await plan_vm(scope, self._find_domain, await hold_category(scope))

    async def create(self, scope: Scope, prepared: NewVm, request_id: str) -> str:
        try:
            return await scope.session.prism.create_vm(prepared, request_id)
        except ProviderError as error:
            if not can_not_ask(error):
                scope.session.lookup.forget()  # what the VM refers to may be gone
            raise

    async def power_on(self, scope: Scope, instance: Instance) -> str:
        return await scope.session.prism.power_on(instance.vendor)

    async def delete(self, scope: Scope, instance: Instance) -> str | Wait:
        vm: Vm = instance.vendor
        if vm.volume_group_ids:
            return await self._detach(scope, vm)
        return await scope.session.prism.delete_vm(vm)

    async def _detach(self, scope: Scope, vm: Vm) -> Wait:
        """All at once: each takes its time, and they don't depend on each other."""
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

    # -- tasks -------------------------------------------------------------------------------------------------

    def tasks(self, scope: Scope) -> Poller:
        return scope.session.tasks

    def kept_task(self, scope: Scope) -> TaskReference | None:
        kept = scope.infra.status.task
        operation = _OPERATIONS.get(kept.operation) if kept is not None else None
        return TaskReference(operation, kept.id) if kept is not None and operation is not None else None

    def keep_task(self, scope: Scope, task: TaskReference | None) -> None:
        scope.infra.status.task = TaskRef(operation=task.operation, id=task.id) if task is not None else None

    async def obstacle(self, scope: Scope) -> str:
        wanted = place(scope, self._find_domain).cluster
        found = None if wanted is None else await scope.session.lookup.disconnected(wanted)
        if found is None:
            return ""
        scope.session.watch.doubt()  # machines that run there can't be managed either
        return f"cluster {found.name!r} is not available: check its connection to Prism Central"

    def failure(self, scope: Scope, operation: Operation, task: Task, what: str) -> ProviderError:
        found = failed_task(task.error, task.codes, what)
        if operation != "create":
            return found
        scope.session.lookup.forget()
        return explained(found, scope.addresses)

    # -- the watch ---------------------------------------------------------------------------------------------

    def _watch(self, scope: Scope) -> Watch:
        watch = scope.session.watch
        if self._watches.get(scope.uid) is not watch:
            self.stop_watching(scope.uid)  # the credentials have changed
            self._watches[scope.uid] = watch
        return watch

    def stop_watching(self, uid: str) -> None:
        held = self._watches.pop(uid, None)
        if held is not None:
            held.forget(uid)

    def expect(self, scope: Scope, change: Expected) -> None:
        if change == "no":
            scope.session.watch.settle(scope.uid)
        else:
            scope.session.watch.hurry(scope.uid, expected=change == "now")


_OPERATIONS: dict[str, Operation] = {"create": "create", "power-on": "power-on", "delete": "delete"}


async def hold_category(scope: Scope) -> Category | None:
    """The mark of the cluster; created again if somebody removed it. None: the machine belongs to no cluster."""
    name, lookup = scope.cluster, scope.session.lookup
    if not name:
        return None
    found = await lookup.find_category(CLUSTER_CATEGORY, name)
    if found is None:
        description = f"Machines of Kubernetes cluster {name}, managed by Homeport"
        found = await scope.session.prism.create_category(CLUSTER_CATEGORY, name, description)
        lookup.know_category(found)
    return found


def vm_id(provider_id: str) -> str:
    """The VM's UUID of `nutanix://<VM>` or `nutanix://<Prism Central>/<VM>`; '' if there is none."""
    candidate = provider_id.removeprefix(PREFIX).rpartition("/")[2]
    try:
        uuid.UUID(candidate)
    except ValueError:
        return ""
    return candidate


def _instance(scope: Scope, vm: Vm) -> Instance:
    return Instance(
        id=vm.id,
        provider_id=f"{PREFIX}{vm.id}",
        name=vm.name,
        power=vm.power,
        addresses=own_addresses(scope, vm.addresses, vm.name),
        failure_domain=scope.failure_domain,
        uid=vm.mark(MARK),
        vendor=vm,
    )
