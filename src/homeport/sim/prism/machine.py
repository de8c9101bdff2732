"""The life of virtual machines: made, changed, cloned and removed, as tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from homeport.sim.engine.fault import AddressLate
from homeport.sim.prism.capacity import (
    added_storage,
    bind_gpu,
    check_growth,
    check_project,
    check_storage,
    default_container,
)
from homeport.sim.prism.core import Core, replace
from homeport.sim.prism.entity import Affected, Disk, Gpu, Nic, Task, Vm
from homeport.sim.prism.error import Refusal, rejected
from homeport.sim.prism.power import Power

Edit = Callable[[Vm], Vm]


class Machines:
    """Requests start tasks here; `perform_*` is what the tasks do when they are done."""

    def __init__(self, core: Core, power: Power) -> None:
        self._core = core
        self._power = power
        self._tasks = power.tasks
        for name, action in {
            "vm-create": self._perform_create,
            "vm-delete": self._perform_delete,
            "vm-update": self._perform_update,
            "vm-power": self._perform_power,
        }.items():
            self._tasks.on(name, action)

    # Starting.

    def create(self, vm: Vm, owner: str, *, then_on: bool = False) -> Task:
        self.check(vm)
        arguments = {"vm": msgspec.to_builtins(vm), "on": then_on}
        return self._start("kVmCreate", "vm-create", arguments, vm, owner)

    def delete(self, vm: Vm, owner: str) -> Task:
        return self._start("kVmDelete", "vm-delete", {"vm": vm.ext_id}, vm, owner)

    def update(self, before: Vm, after: Vm, owner: str, *, operation: str = "kVmUpdate", power: str = "") -> Task:
        """Changes the fields in which the two differ, in whatever the machine has become by then."""
        self.check(after)
        old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
        changes = {name: new.get(name) for name in {*old, *new} if old.get(name) != new.get(name)}
        arguments = {"vm": before.ext_id, "changes": changes, "power": power}
        return self._start(operation, "vm-update", arguments, before, owner)

    def power(self, vm: Vm, what: str, owner: str, operation: str) -> Task:
        return self._start(operation, "vm-power", {"vm": vm.ext_id, "what": what}, vm, owner)

    def _start(self, operation: str, action: str, arguments: dict[str, Any], vm: Vm, owner: str) -> Task:
        affected = (Affected("vm", vm.ext_id, vm.name),)
        sub = operation.removeprefix("k")
        return self._tasks.start(
            operation, action, arguments, affected, cluster=vm.cluster, owner=owner, sub_operation=sub
        )

    # Most problems of a machine are found before a task starts.

    def check(self, vm: Vm) -> None:
        world = self._core.world
        cluster = world.clusters.get(vm.cluster)
        if cluster is None or cluster.central:
            raise rejected("VMM-30106", f"The cluster {vm.cluster} is unknown.", "CLUSTER_NOT_FOUND")
        if vm.sockets < 1 or vm.cores < 1 or vm.threads < 1:
            raise rejected("VMM-30102", "The number of sockets, cores and threads must be 1 or more.")
        if vm.memory_bytes < 1:
            raise rejected("VMM-30102", "memorySizeBytes must be given.")
        for nic in vm.nics:
            self._check_nic(nic, vm.cluster)
        for disk in vm.disks:
            self._check_disk(disk)
        for category in vm.categories:
            if category not in world.categories:
                raise rejected("", f"The category {category} is unknown.", "CATEGORY_NOT_FOUND")
        if vm.project and vm.project not in world.projects:
            raise rejected("VMM-31701", f"The project {vm.project} is unknown.", "PROJECT_NOT_FOUND")
        _check_addresses(vm)

    def _check_nic(self, nic: Nic, cluster: str) -> None:
        subnet = self._core.world.subnets.get(nic.subnet)
        if subnet is None:
            raise rejected("VMM-30604", f"The subnet {nic.subnet} is unknown.", "SUBNET_NOT_FOUND")
        if subnet.type == "VLAN" and subnet.clusters and cluster not in subnet.clusters:
            raise rejected("VMM-30605", f"The subnet {subnet.name} can't be used on the cluster {cluster}.")

    def _check_disk(self, disk: Disk) -> None:
        world = self._core.world
        if disk.image:
            image = world.images.get(disk.image)
            if image is None:
                raise rejected("VMM-31201", f"The image {disk.image} is unknown.", "IMAGE_NOT_FOUND")
            if not disk.cdrom and disk.size_bytes and disk.size_bytes < image.size_bytes:
                raise rejected(
                    "", f"Requested image size {disk.size_bytes} is less than actual size {image.size_bytes}"
                )
        if disk.container and disk.container not in world.containers:
            raise rejected("", f"The storage container {disk.container} is unknown.", "CONTAINER_NOT_FOUND")
        if disk.volume_group and disk.volume_group not in world.volume_groups:
            raise rejected("", f"The volume group {disk.volume_group} is unknown.", "VOLUME_GROUP_NOT_FOUND")

    # Ending.

    def _perform_create(self, task: Task) -> None:
        core = self._core
        vm = msgspec.convert(task.arguments["vm"], Vm)
        late = core.faults.strike(core.subject(vm), AddressLate)
        if late:
            vm = replace(vm, late=late[0][1].seconds)
        vm = self._equipped(vm, None)
        core.put(core.world.vms, vm, last_task=task.ext_id)
        if task.arguments.get("on"):
            self._power.on(vm.ext_id)

    def _equipped(self, vm: Vm, before: Vm | None) -> Vm:
        """With everything that the machine did not bring itself: space, addresses, devices."""
        core = self._core
        container = default_container(core.world, vm.cluster)
        fallback = container.ext_id if container is not None else ""
        disks = tuple(self._stored(disk, fallback) for disk in vm.disks)
        if not vm.project:
            vm = replace(vm, project=core.world.default_project())
        vm = replace(vm, disks=disks)
        check_project(core.world, core.usage, before, vm)
        check_storage(core.world, core.usage, added_storage(before, vm), full=core.disk_full(vm.cluster))
        vm = replace(vm, gpus=self._bound(vm, before))
        return replace(vm, nics=self._addressed(vm, before))

    def _stored(self, disk: Disk, container: str) -> Disk:
        if disk.volume_group:
            return disk
        size = disk.size_bytes
        image = self._core.world.images.get(disk.image)
        if not size and image is not None:
            size = image.size_bytes
        return replace(disk, container=disk.container or container, size_bytes=size)

    def _bound(self, vm: Vm, before: Vm | None) -> tuple[Gpu, ...]:
        held = {gpu.ext_id: gpu for gpu in before.gpus} if before is not None else {}
        taken: dict[str, int] = {}
        found = []
        for gpu in vm.gpus:
            if gpu.ext_id in held and held[gpu.ext_id].device:
                found.append(gpu)
                continue
            device = bind_gpu(self._core.world, self._core.usage, vm.cluster, gpu, taken)
            found.append(replace(gpu, device=device.ext_id, name=gpu.name or device.name))
        return tuple(found)

    def _addressed(self, vm: Vm, before: Vm | None) -> tuple[Nic, ...]:
        core = self._core
        held = {nic.ext_id: nic for nic in before.nics} if before is not None else {}
        taken: list[tuple[str, str]] = []
        found = []
        try:
            for nic in vm.nics:
                subnet = core.world.subnets.get(nic.subnet)
                known = held.get(nic.ext_id)
                wants = subnet is not None and subnet.managed and nic.assign and vm.late == 0.0
                if subnet is not None and not subnet.managed and nic.requested and known is None:
                    message = f"{nic.requested} can't be assigned to a NIC on {subnet.name}, an unmanaged network."
                    raise rejected("", message)
                if subnet is not None and wants and not nic.address and known is None:
                    address = core.usage.take_address(subnet, vm.ext_id, nic.requested)
                    taken.append((subnet.ext_id, address))
                    nic = replace(nic, address=address)
                if not nic.mac:
                    nic = replace(nic, mac=core.new_mac())
                found.append(nic)
        except Refusal:
            for subnet_id, address in taken:  # a machine that is not made keeps no address
                core.usage.held(subnet_id).pop(address, None)
            raise
        return tuple(found)

    def _perform_update(self, task: Task) -> None:
        core = self._core
        before = self._power.vm(task.arguments["vm"])
        fields = {**msgspec.to_builtins(before), **task.arguments["changes"]}
        after = msgspec.convert({name: value for name, value in fields.items() if value is not None}, Vm)
        self.check(after)
        if before.power == "ON":
            _check_running(before, after)
            check_growth(core.world, core.usage, before, after)
        after = self._equipped(after, before)
        core.put(core.world.vms, after, spec_version=before.spec_version + 1, last_task=task.ext_id)
        self._follow_groups(before, after)
        if task.arguments.get("power"):
            self._switch(after.ext_id, task.arguments["power"])

    def _follow_groups(self, before: Vm, after: Vm) -> None:
        """A volume group knows the machines that hold it."""
        old = {disk.volume_group for disk in before.disks if disk.volume_group}
        new = {disk.volume_group for disk in after.disks if disk.volume_group}
        for group_id in old ^ new:
            group = self._core.world.volume_groups.get(group_id)
            if group is not None:
                others = tuple(vm for vm in group.attached if vm != after.ext_id)
                attached = (*others, after.ext_id) if group_id in new else others
                self._core.put(self._core.world.volume_groups, group, attached=attached)

    def _switch(self, ext_id: str, power: str) -> None:
        vm = self._power.vm(ext_id)
        if power == "ON" and vm.power != "ON":
            self._power.on(ext_id)
        elif power == "OFF" and vm.power != "OFF":
            self._power.off(ext_id)

    def _perform_power(self, task: Task) -> None:
        vm = task.arguments["vm"]
        match task.arguments["what"]:
            case "on":
                self._power.on(vm)
            case "off":
                self._power.off(vm)
            case _:
                self._power.restart(vm)
        core = self._core
        core.put(core.world.vms, self._power.vm(vm), last_task=task.ext_id)

    def _perform_delete(self, task: Task) -> None:
        core = self._core
        vm = self._power.vm(task.arguments["vm"])
        if vm.power != "OFF":
            self._power.off(vm.ext_id)
        for group in core.world.volume_groups:
            if vm.ext_id in group.attached:
                attached = tuple(each for each in group.attached if each != vm.ext_id)
                core.put(core.world.volume_groups, group, attached=attached)
        core.drop(core.world.vms, vm.ext_id)
        core.guests.removed(vm.ext_id)


def _check_addresses(vm: Vm) -> None:
    """Two devices can't have one place on a bus."""
    seen: set[tuple[str, int]] = set()
    for disk in vm.disks:
        place = (disk.bus, disk.index)
        if place in seen:
            raise rejected("", f"The disk address {disk.bus}.{disk.index} is used twice.", "DISK_ADDRESS_IN_USE")
        seen.add(place)


def _check_running(before: Vm, after: Vm) -> None:
    smaller = after.sockets < before.sockets or after.memory_bytes < before.memory_bytes
    reshaped = (after.cores, after.threads, after.boot) != (before.cores, before.threads, before.boot)
    if smaller or reshaped:
        message = f"The VM {before.name} must be powered off for this change: only sockets and memory may grow."
        raise Refusal(400, message, "", "VM_INVALID_POWER_STATE", "INVALID_REQUEST")


def place_disks(disks: list[Disk], taken: tuple[Disk, ...] = ()) -> tuple[Disk, ...]:
    """Gives an index to every device that asks for none (-1): the lowest that is free on its bus."""
    used = {(disk.bus, disk.index) for disk in (*disks, *taken) if disk.index >= 0}
    found = []
    for disk in disks:
        if disk.index < 0:
            index = 0
            while (disk.bus, index) in used:
                index += 1
            used.add((disk.bus, index))
            disk = replace(disk, index=index)
        found.append(disk)
    return tuple(found)
