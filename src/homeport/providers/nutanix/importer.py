"""VMs on AHV that somebody else created: what they are made of, whose they are, and our mark on them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine, NutanixMachineTemplate
from homeport.infra.candidate import Candidate, Json, Mark
from homeport.infra.error import Missing, Rejected, Taken, Unreachable
from homeport.machinery.quantity import render_bytes
from homeport.providers.nutanix.connection import VENDOR, PrismSession
from homeport.providers.nutanix.machine import PREFIX
from homeport.providers.nutanix.plan import CLUSTER_CATEGORY, CLUSTER_MARK, MARK
from homeport.providers.nutanix.prism.record import Category, Vm, VmDisk, VmShape
from homeport.providers.nutanix.spelling import identifier

_TASK_SECONDS = 120.0
_POLL_SECONDS = 0.5


class NutanixImporter:
    vendor = VENDOR
    cluster_kind = NutanixCluster.__resource__
    machine_kind = NutanixMachine.__resource__
    template_kind = NutanixMachineTemplate.__resource__

    def __init__(self, session: PrismSession, close: Callable[[], Any]) -> None:
        self._session = session
        self._prism = session.prism
        self._close = close

    async def close(self) -> None:
        await self._close()

    async def candidates(self) -> Sequence[Candidate]:
        clusters = {each.id: each.value for each in await self._prism.categories(CLUSTER_CATEGORY)}
        return [self._candidate(vm, clusters) for vm in await self._prism.find_vms()]

    def _candidate(self, vm: Vm, clusters: Mapping[str, str]) -> Candidate:
        shape = self._prism.shape(vm)
        spec, missing = machine_spec(vm, shape)
        return Candidate(
            id=vm.id,
            name=vm.name,
            provider_id=f"{PREFIX}{vm.id}",
            power=vm.power,
            addresses=vm.addresses,
            # The guest of a VM that was never cloned or restored reads the id of the VM itself.
            system_uuids=tuple({each.lower() for each in (vm.id, shape.bios_uuid) if each}),
            machine_uid=vm.mark(MARK),
            holder=_holder(vm, clusters),
            spec=spec,
            size=_size(spec),
            missing=missing,
            vendor=vm,
        )

    def with_image(self, spec: Mapping[str, Any], image: str) -> Json:
        return {**spec, "image": identifier(image)}

    # -- marks -------------------------------------------------------------------------------------------------
    # The category comes last and goes first: a VM that has it without a mark is somebody else's.

    async def mark(self, candidate: Candidate, mark: Mark) -> None:
        vm = await self._read(candidate.id)
        if vm is None:
            raise Missing(f"VM {candidate.name} ({candidate.id}) no longer exists")
        held = vm.mark(MARK)
        if held and held != mark.machine_uid:
            raise Taken(f"VM {vm.name} ({vm.id}) meanwhile got the mark of another plane ({MARK}:{held})")
        if set(_marks(mark)) - set(vm.marks):
            await self._finish(await self._prism.edit_marks(vm, add=_marks(mark)), f"VM {vm.name}: mark")
        category = await self._category(mark.cluster)
        vm = await self._read(candidate.id)
        if vm is not None and category.id not in vm.category_ids:
            await self._finish(await self._prism.add_category(vm, category), f"VM {vm.name}: category")

    async def unmark(self, vm_id: str, mark: Mark) -> bool:
        vm = await self._read(vm_id)
        if vm is None or vm.mark(MARK) != mark.machine_uid:
            return False
        category = await self._prism.find_category(CLUSTER_CATEGORY, mark.cluster)
        if category is not None and category.id in vm.category_ids:
            await self._finish(await self._prism.remove_category(vm, category), f"VM {vm.name}: category")
            vm = await self._read(vm_id) or vm
        ours = [each for each in vm.marks if each.partition(":")[0] in (MARK, CLUSTER_MARK)]
        await self._finish(await self._prism.edit_marks(vm, remove=ours), f"VM {vm.name}: mark")
        return True

    async def forget(self, cluster: str) -> None:
        found = await self._prism.find_category(CLUSTER_CATEGORY, cluster)
        if found is not None:
            with contextlib.suppress(Taken):  # a cluster of another plane has the same name
                await self._prism.delete_category(found)

    async def _read(self, vm_id: str) -> Vm | None:
        return await self._prism.vm(vm_id)

    async def _category(self, cluster: str) -> Category:
        found = await self._prism.find_category(CLUSTER_CATEGORY, cluster)
        if found is not None:
            return found
        description = f"Machines of Kubernetes cluster {cluster}, managed by Homeport"
        return await self._prism.create_category(CLUSTER_CATEGORY, cluster, description)

    async def _finish(self, task_id: str, what: str) -> None:
        """Waits for a task: the next change needs the version of the VM that this one makes."""
        clock = self._session.clock
        until = clock.monotonic() + _TASK_SECONDS
        while clock.monotonic() < until:
            found = await self._prism.tasks([task_id])
            if found and found[0].status == "succeeded":
                return
            if found and found[0].status == "failed":
                raise Rejected(f"{what}: {found[0].error or 'the task failed without a message'}")
            await asyncio.sleep(_POLL_SECONDS)
        raise Unreachable(f"{what}: task {task_id} did not finish within {_TASK_SECONDS:g} s: run the command again")


def _marks(mark: Mark) -> list[str]:
    return [f"{MARK}:{mark.machine_uid}", f"{CLUSTER_MARK}:{mark.cluster_uid}"]


def _holder(vm: Vm, clusters: Mapping[str, str]) -> str:
    if vm.mark(MARK):
        return f"carries the mark {MARK}:{vm.mark(MARK)}, which a Homeport plane sets on its VMs"
    named = next((clusters[each] for each in vm.category_ids if each in clusters), "")
    if named:
        return f"has the category {CLUSTER_CATEGORY}:{named}, which Cluster API sets on VMs that it manages"
    return ""


def machine_spec(vm: Vm, shape: VmShape) -> tuple[Json, tuple[str, ...]]:
    """The spec of a NutanixMachine like this VM, and the fields that can't be read from it."""
    disks = [each for each in shape.disks if not each.cdrom and not each.volume_group]
    disks.sort(key=lambda disk: (disk.bus != "SCSI", disk.bus, disk.index))
    system = disks[0] if disks else VmDisk(0)
    spec: Json = {
        "vcpuSockets": shape.sockets,
        "vcpusPerSocket": shape.cores_per_socket,
        "memorySize": render_bytes(shape.memory_bytes),
        "systemDiskSize": render_bytes(system.size_bytes),
        "bootType": shape.boot,
        "cluster": identifier(vm.cluster_id),
        "subnet": [identifier(each) for each in shape.subnet_ids],
    }
    if system.image_id:
        spec["image"] = identifier(system.image_id)
    if vm.project_id:
        spec["project"] = identifier(vm.project_id)
    if disks[1:]:
        spec["dataDisks"] = [{"diskSize": render_bytes(each.size_bytes)} for each in disks[1:]]
    if shape.gpus:
        spec["gpus"] = [{"type": "name", "name": each} for each in shape.gpus]
    return spec, () if system.image_id else ("image",)


def _size(spec: Json) -> str:
    cpus = spec["vcpuSockets"] * spec["vcpusPerSocket"]
    return f"{cpus} vCPU, {spec['memorySize']} memory, {spec['systemDiskSize']} disk"
