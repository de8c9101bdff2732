"""volumes: volume groups, their disks, and the VMs that hold them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.capacity import check_storage, default_container
from homeport.sim.prism.core import Core, replace
from homeport.sim.prism.entity import Disk, Task, VolumeDisk, VolumeGroup
from homeport.sim.prism.error import Refusal, conflict, invalid, missing, rejected
from homeport.sim.prism.machine import place_disks
from homeport.sim.prism.site import Handlers, Routes, Site
from homeport.sim.prism.v4 import envelope
from homeport.sim.prism.v4.envelope import Dialect, Json, Listing
from homeport.sim.prism.v4.reading import readers

NS: Final = "volumes.v4.config"
GROUPS: Final = "/api/volumes/{v}/config/volume-groups"
LISTING: Final = envelope.listing(
    f"{NS}.VolumeGroup",
    """attachmentType attachments clusterReference createdBy description disks enabledAuthentications extId
        hydrationStatus iscsiFeatures isHidden links name projectExtId protocol sharingStatus
        shouldLoadBalanceVmAttachments storageFeatures targetName targetPrefix tenantId usageType""",
    projected=True,
)
DISKS: Final = envelope.listing(
    f"{NS}.VolumeDisk",
    "description diskDataSourceReference diskSizeBytes diskStorageFeatures extId index links storageContainerId",
    projected=True,
)
ATTACHMENTS: Final = Listing(f"{NS}.ListVmAttachmentsApiResponse", f"{NS}.VmAttachment", envelope.names("extId index"))


def add_routes(routes: Routes) -> None:
    handlers = Handlers(list_groups, create_group, get_group, update_group, delete_group)
    one = envelope.add_entity_routes(routes, GROUPS, f"{NS}.VolumeGroup", "volume_groups", handlers)
    for method, path, respond, response in (
        ("POST", f"{one}/$actions/attach-vm", attach, "AttachVmApiResponse"),
        ("POST", f"{one}/$actions/detach-vm", detach, "DetachVmApiResponse"),
        ("GET", f"{one}/vm-attachments", list_attachments, "ListVmAttachmentsApiResponse"),
        ("GET", f"{one}/disks", list_disks, "ListVolumeDisksApiResponse"),
        ("POST", f"{one}/disks", create_disk, "CreateVolumeDiskApiResponse"),
        ("GET", f"{one}/disks/{{diskExtId}}", get_disk, "GetVolumeDiskApiResponse"),
        ("PUT", f"{one}/disks/{{diskExtId}}", update_disk, "UpdateVolumeDiskApiResponse"),
        ("DELETE", f"{one}/disks/{{diskExtId}}", delete_disk, "DeleteVolumeDiskApiResponse"),
    ):
        routes.add(method, path, respond, f"{NS}.{response}", table="volume_groups")


def group_view(d: Dialect, group: VolumeGroup) -> Json:
    fields: dict[str, Any] = {
        "extId": group.ext_id,
        "name": group.name,
        "description": group.description or None,
        "shouldLoadBalanceVmAttachments": False,
        "sharingStatus": group.sharing,
        "targetName": group.target_name,
        "createdBy": group.owner or None,
        "clusterReference": group.cluster,
        "usageType": group.usage,
        "isHidden": group.hidden,
    }
    return d.typed(f"{NS}.VolumeGroup", fields)


list_groups, get_group = readers(lambda world: world.volume_groups, LISTING, lambda site, d, each: group_view(d, each))


def disk_view(d: Dialect, disk: VolumeDisk) -> Json:
    return d.typed(
        f"{NS}.VolumeDisk",
        {
            "extId": disk.ext_id,
            "index": disk.index,
            "diskSizeBytes": disk.size_bytes,
            "storageContainerId": disk.container,
            "description": disk.description or None,
        },
    )


def _group(site: Site, call: Call) -> VolumeGroup:
    return site.find(site.world.volume_groups, call.params["extId"])


def read_disk(site: Site, cluster: str, body: Body) -> VolumeDisk:
    size = body.integer("diskSizeBytes")
    if size < 1:
        raise invalid("diskSizeBytes", "must be given")
    fallback = default_container(site.world, cluster)
    container = body.text("storageContainerId") or (fallback.ext_id if fallback else "")
    if container not in site.world.containers:
        raise rejected("", f"The storage container {container} is unknown.", "CONTAINER_NOT_FOUND")
    return VolumeDisk(
        ext_id=site.core.new_id(),
        index=body.integer("index", -1),
        size_bytes=size,
        container=container,
        description=body.text("description"),
    )


def _indexed(disks: tuple[VolumeDisk, ...]) -> tuple[VolumeDisk, ...]:
    used = {disk.index for disk in disks if disk.index >= 0}
    found = []
    for disk in disks:
        if disk.index < 0:
            index = next(number for number in range(len(disks) + 1) if number not in used)
            used.add(index)
            disk = replace(disk, index=index)
        found.append(disk)
    return tuple(found)


def create_group(site: Site, call: Call) -> Answer:
    body = Body(call.body)
    cluster = body.required_text("clusterReference")
    known = site.world.clusters.get(cluster)
    if known is None or known.central:
        raise rejected("", f"The cluster {cluster} is unknown.", "CLUSTER_NOT_FOUND")
    group = VolumeGroup(
        ext_id=site.core.new_id(),
        name=body.required_text("name"),
        description=body.text("description"),
        cluster=cluster,
        disks=_indexed(tuple(read_disk(site, cluster, each) for each in body.objects("disks"))),
        sharing=body.text("sharingStatus", "NOT_SHARED", choices=("SHARED", "NOT_SHARED")),
        usage=body.text("usageType", "USER"),
        hidden=body.flag("isHidden"),
        owner=call.user,
    )
    prefix = body.text("targetPrefix") or group.name
    group = replace(group, target_name=body.text("targetName") or f"{prefix}-{group.ext_id}")
    return _put(site, call, "kVolumeGroupCreate", group, "CreateVolumeGroupApiResponse")


def _put(site: Site, call: Call, operation: str, group: VolumeGroup, response: str) -> Answer:
    task = site.start(operation, "volume-group-put", {"group": msgspec.to_builtins(group)}, group, call.user)
    return envelope.accepted(call, f"{NS}.{response}", task.ext_id)


def update_group(site: Site, call: Call) -> Answer:
    group = _group(site, call)
    envelope.check_match(call, group)
    body = Body(call.body)
    after = replace(
        group,
        name=body.text("name", group.name),
        description=body.text("description", group.description),
        sharing=body.text("sharingStatus", group.sharing, choices=("SHARED", "NOT_SHARED")),
    )
    return _put(site, call, "kVolumeGroupUpdate", after, "UpdateVolumeGroupApiResponse")


def delete_group(site: Site, call: Call) -> Answer:
    group = _group(site, call)
    task = site.start("kVolumeGroupDelete", "volume-group-drop", {"group": group.ext_id}, group, call.user)
    return envelope.accepted(call, f"{NS}.DeleteVolumeGroupApiResponse", task.ext_id)


def attach(site: Site, call: Call) -> Answer:
    return _attachment(site, call, "kVolumeGroupAttachVm", "volume-group-attach", "AttachVmApiResponse")


def detach(site: Site, call: Call) -> Answer:
    return _attachment(site, call, "kVolumeGroupDetachVm", "volume-group-detach", "DetachVmApiResponse")


def _attachment(site: Site, call: Call, operation: str, action: str, response: str) -> Answer:
    group = _group(site, call)
    vm = Body(call.body).required_text("extId")
    if vm not in site.world.vms:
        raise missing("vm", vm)
    task = site.start(operation, action, {"group": group.ext_id, "vm": vm}, group, call.user)
    return envelope.accepted(call, f"{NS}.{response}", task.ext_id)


def list_attachments(site: Site, call: Call) -> Answer:
    d = envelope.dialect_of(call)
    held = _group(site, call).attached
    return envelope.listed(call, ATTACHMENTS, held, lambda vm: d.typed(f"{NS}.VmAttachment", {"extId": vm}))


def list_disks(site: Site, call: Call) -> Answer:
    d = envelope.dialect_of(call)
    return envelope.listed(call, DISKS, _group(site, call).disks, lambda disk: disk_view(d, disk))


def _find_disk(group: VolumeGroup, ext_id: str) -> VolumeDisk:
    for disk in group.disks:
        if disk.ext_id == ext_id:
            return disk
    raise missing("volume disk", ext_id)


def get_disk(site: Site, call: Call) -> Answer:
    group = _group(site, call)
    view = disk_view(envelope.dialect_of(call), _find_disk(group, call.params["diskExtId"]))
    return envelope.single(call, f"{NS}.GetVolumeDiskApiResponse", view, version=group)


def create_disk(site: Site, call: Call) -> Answer:
    group = _group(site, call)
    disk = read_disk(site, group.cluster, Body(call.body))
    after = replace(group, disks=_indexed((*group.disks, disk)))
    return _put(site, call, "kVolumeDiskCreate", after, "CreateVolumeDiskApiResponse")


def update_disk(site: Site, call: Call) -> Answer:
    """A disk can grow, while VMs use it, too."""
    group = _group(site, call)
    envelope.check_match(call, group)
    before, body = _find_disk(group, call.params["diskExtId"]), Body(call.body)
    size = body.integer("diskSizeBytes", before.size_bytes)
    if size < before.size_bytes:
        raise invalid("diskSizeBytes", f"is smaller than the disk, which has {before.size_bytes} bytes")
    disk = replace(before, size_bytes=size, description=body.text("description", before.description))
    after = replace(group, disks=tuple(disk if each is before else each for each in group.disks))
    return _put(site, call, "kVolumeDiskUpdate", after, "UpdateVolumeDiskApiResponse")


def delete_disk(site: Site, call: Call) -> Answer:
    group = _group(site, call)
    gone = _find_disk(group, call.params["diskExtId"])
    after = replace(group, disks=tuple(disk for disk in group.disks if disk is not gone))
    return _put(site, call, "kVolumeDiskDelete", after, "DeleteVolumeDiskApiResponse")


def perform_put(core: Core, task: Task) -> None:
    group = msgspec.convert(task.arguments["group"], VolumeGroup)
    before = core.world.volume_groups.get(group.ext_id)
    added: dict[str, int] = {}
    for each, sign in ((before, -1), (group, 1)):
        for disk in each.disks if each is not None else ():
            added[disk.container] = added.get(disk.container, 0) + sign * disk.size_bytes
    check_storage(core.world, core.usage, added, full=core.disk_full(group.cluster))
    if before is not None:
        group = replace(group, attached=before.attached)
    core.put(core.world.volume_groups, group)


def _kept(core: Core, task: Task) -> VolumeGroup:
    group = core.world.volume_groups.get(task.arguments["group"])
    if group is None:
        raise missing("volume group", task.arguments["group"])
    return group


def perform_drop(core: Core, task: Task) -> None:
    group = _kept(core, task)
    if group.attached:
        raise conflict(f"The volume group {group.name} is attached to VMs.", group="VOLUME_GROUP_IN_USE")
    core.drop(core.world.volume_groups, group.ext_id)


def perform_attach(core: Core, task: Task) -> None:
    group = _kept(core, task)
    vm = core.world.vms.get(task.arguments["vm"])
    if vm is None:
        raise missing("vm", task.arguments["vm"])
    if vm.cluster != group.cluster:
        raise rejected("", f"The VM {vm.name} is on another cluster than the volume group {group.name}.")
    if group.attached and group.sharing != "SHARED":
        raise conflict(f"The volume group {group.name} is attached and not shared.", group="VOLUME_GROUP_IN_USE")
    if vm.ext_id in group.attached:
        raise conflict(f"The volume group {group.name} is attached to the VM {vm.name}.")
    disk = Disk(ext_id=core.new_id(), index=-1, volume_group=group.ext_id)
    core.put(core.world.vms, vm, disks=(*vm.disks, *place_disks([disk], vm.disks)))
    core.put(core.world.volume_groups, group, attached=(*group.attached, vm.ext_id))


def perform_detach(core: Core, task: Task) -> None:
    group = _kept(core, task)
    vm_id = task.arguments["vm"]
    if vm_id not in group.attached:
        raise Refusal(400, f"The volume group {group.name} is not attached to the VM {vm_id}.", "", "NOT_ATTACHED")
    vm = core.world.vms.get(vm_id)
    if vm is not None:
        core.put(core.world.vms, vm, disks=tuple(disk for disk in vm.disks if disk.volume_group != group.ext_id))
    core.put(core.world.volume_groups, group, attached=tuple(each for each in group.attached if each != vm_id))
