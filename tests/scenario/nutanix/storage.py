"""What Nutanix' storage driver does in workload clusters: a volume is a volume group, attached to the VM of its Pod."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from homeport.api.meta import Unstructured
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Client, Key, MergePatch
from homeport.sim.machine.workload.kind import ATTACHMENT, CLAIM, POD, VOLUME
from homeport.sim.prism.entity import Disk, VolumeDisk, VolumeGroup
from scenario.nutanix.site import Site

_DRIVER = "csi.nutanix.com"
_FINALIZER = f"{_DRIVER}/attached"


class Storage:
    def __init__(self, site: Site) -> None:
        self._site = site

    def groups(self) -> dict[str, VolumeGroup]:
        return {each.name: each for each in self._site.prism.world.volume_groups}

    def attached(self) -> dict[str, str]:
        """Volumes and the VMs that have them."""
        names = {vm.ext_id: vm.name for vm in self._site.vms()}
        return {each.name: names[vm] for each in self.groups().values() for vm in each.attached}

    async def use(self, pod: str, node: str, *volumes: str) -> None:
        """A Pod on a Node, with claims that are bound to volumes of these names."""
        (workload,) = self._site.fleet.clusters()
        client = workload.client()
        for name in volumes:
            self._make(name)
            source = {"csi": {"driver": _DRIVER, "volumeHandle": name}, "capacity": {"storage": "1Gi"}}
            modes: dict[str, Any] = {"accessModes": ["ReadWriteOnce"]}
            await client.create({"metadata": {"name": name}, "spec": source | modes}, kind=VOLUME)
            spec = {**modes, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
            await client.create({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, kind=CLAIM)
        claims = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in volumes]
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}], "volumes": claims}
        meta = {"name": pod, "namespace": "default", "labels": {"app": pod}}
        await client.create({"metadata": meta, "spec": spec}, kind=POD)

    def _make(self, name: str) -> None:
        core = self._site.prism.core
        cluster = self._site.vms()[0].cluster
        disk = VolumeDisk(ext_id=core.new_id(), size_bytes=1 << 30)
        core.put(core.world.volume_groups, VolumeGroup(ext_id=core.new_id(), name=name, cluster=cluster, disks=(disk,)))

    async def run(self) -> None:
        """Attaches and detaches as the workload cluster says, while there is one to say it."""
        while True:
            await asyncio.sleep(1.0)
            for workload in self._site.fleet.clusters():
                client = workload.client()
                for each in (await client.list(ATTACHMENT)).items:
                    await self._follow(client, each)

    async def _follow(self, client: Client, attachment: Unstructured) -> None:
        """What is attached stays in the API until it is detached."""
        spec, meta = attachment["spec"], attachment.metadata
        group = self.groups()[spec["source"]["persistentVolumeName"]]
        held = meta.get("finalizers") or []
        if meta.get("deletionTimestamp"):
            self._settle(group, "")
            kept = [each for each in held if each != _FINALIZER]
        else:
            self._settle(group, spec["nodeName"])
            kept = [*held, _FINALIZER] if _FINALIZER not in held else held
        if kept != held:
            body = {"metadata": {"finalizers": kept, "resourceVersion": attachment.resource_version}}
            with contextlib.suppress(Conflict, NotFound):  # then in the next round
                await client.patch(ATTACHMENT, Key("", attachment.name), MergePatch(body))

    def _settle(self, group: VolumeGroup, node: str) -> None:
        core = self._site.prism.core
        holders = tuple(vm for vm in self._site.vms() if vm.name == node)
        if group.attached == tuple(vm.ext_id for vm in holders):
            return
        for vm in self._site.vms():
            kept = tuple(each for each in vm.disks if each.volume_group != group.ext_id)
            if vm in holders:
                used = {each.index for each in kept if each.bus == "SCSI"}
                index = next(number for number in range(1, 256) if number not in used)
                kept += (Disk(ext_id=core.new_id(), bus="SCSI", index=index, volume_group=group.ext_id),)
            if kept != vm.disks:
                core.put(core.world.vms, msgspec.structs.replace(vm, disks=kept))
        core.put(core.world.volume_groups, group, attached=tuple(vm.ext_id for vm in holders))


@asynccontextmanager
async def storage(site: Site) -> AsyncIterator[Storage]:
    made = Storage(site)
    task = asyncio.get_running_loop().create_task(made.run(), name="storage driver")
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
