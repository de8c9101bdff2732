"""A VM and its devices, read from the bodies of v4."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from homeport.sim.prism.body import Body
from homeport.sim.prism.core import Core, replace
from homeport.sim.prism.entity import Disk, Gpu, Nic, Vm
from homeport.sim.prism.error import invalid, rejected
from homeport.sim.prism.machine import place_disks
from homeport.sim.prism.rule import customization_disk
from homeport.sim.prism.v4.vm_view import FLAGS

_BUSES: Final = ("SCSI", "IDE", "PCI", "SATA", "SPAPR")
_MODES: Final = ("PASSTHROUGH_GRAPHICS", "PASSTHROUGH_COMPUTE", "VIRTUAL")
_LARGEST_USER_DATA: Final = 128_000


def new_vm(core: Core, body: Body, owner: str) -> Vm:
    if body.text("powerState") == "ON":
        raise rejected("VMM-30109", "A VM can't be created powered on: create it, then power it on.")
    ext_id = core.new_id()
    vm = Vm(
        ext_id=ext_id,
        name=body.required_text("name"),
        cluster=_cluster(body),
        bios_uuid=ext_id,
        generation_uuid=core.new_id(),
        owner=owner,
    )
    vm = with_scalars(vm, body)
    disks = [read_disk(core, each) for each in body.objects("disks")]
    disks += [read_cdrom(core, each) for each in body.objects("cdRoms")]
    vm = with_customization(core, vm, body.object("guestCustomization"))
    if vm.user_data or vm.meta_data:
        disks.append(customization_disk(core, disks))
    return replace(
        vm,
        disks=place_disks(disks),
        nics=tuple(read_nic(core, each) for each in body.objects("nics")),
        gpus=tuple(read_gpu(core, each) for each in body.objects("gpus")),
    )


def _cluster(body: Body) -> str:
    cluster = body.reference("cluster")
    if not cluster:
        raise rejected("VMM-30106", "The cluster of the VM must be given.", "CLUSTER_NOT_FOUND")
    return cluster


def with_scalars(vm: Vm, body: Body) -> Vm:
    """Everything but devices; what the body leaves out stays."""
    flags = {name: body.flag(name) for name in FLAGS if body.has(name)}
    categories = tuple(dict.fromkeys(each.required_text("extId") for each in body.objects("categories")))
    if body.has("numSockets") and body.integer("numSockets") < 1:
        raise rejected("VMM-30102", "numSockets must be 1 or more.")
    vm = replace(
        vm,
        name=body.text("name", vm.name, longest=256),
        description=body.text("description", vm.description, longest=1000),
        sockets=body.integer("numSockets", vm.sockets),
        cores=body.integer("numCoresPerSocket", vm.cores),
        threads=body.integer("numThreadsPerCore", vm.threads),
        memory_bytes=body.integer("memorySizeBytes", vm.memory_bytes),
        categories=categories if body.has("categories") else vm.categories,
        project=body.reference("project") or body.text("projectExtId") or vm.project,
        timezone=body.text("hardwareClockTimezone", vm.timezone),
        machine_type=body.text("machineType", vm.machine_type),
        attributes=body.texts("customAttributes") if body.has("customAttributes") else vm.attributes,
        flags={**vm.flags, **flags},
    )
    tpm = body.object("vtpmConfig")
    if tpm is not None:
        vm = replace(vm, vtpm=tpm.flag("isVtpmEnabled"))
    return _with_boot(vm, body.object("bootConfig"))


def _with_boot(vm: Vm, boot: Body | None) -> Vm:
    if boot is None:
        return vm
    order = boot.texts("bootOrder") or vm.boot_order
    kind = boot.text("$objectType")
    if kind.endswith("UefiBoot") or boot.has("isSecureBootEnabled"):
        return replace(vm, boot="SECURE_BOOT" if boot.flag("isSecureBootEnabled") else "UEFI", boot_order=order)
    return replace(vm, boot="LEGACY", boot_order=order)


def with_customization(core: Core, vm: Vm, body: Body | None) -> Vm:
    del core
    config = body.object("config") if body is not None else None
    if config is None:
        return vm
    script = config.object("cloudInitScript")
    value = script.text("value") if script is not None else ""
    if script is not None and not value and script.has("keyValuePairs"):
        raise rejected("", "Custom key values are not supported for cloud-init scripts of this cluster.")
    sysprep = config.object("sysprepScript")
    if sysprep is not None:
        value = sysprep.text("value")
    for name, text in (("cloudInitScript.value", value), ("metadata", config.text("metadata"))):
        _check_base64(f"{config.path}.{name}", text)
    if len(value) > _LARGEST_USER_DATA:
        raise invalid(f"{config.path}.cloudInitScript.value", f"must have at most {_LARGEST_USER_DATA} characters")
    return replace(
        vm,
        user_data=value,
        meta_data=config.text("metadata"),
        datasource=config.text("datasourceType", "CONFIG_DRIVE_V2"),
    )


def _check_base64(path: str, text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise invalid(path, "must be base64") from error


def read_disk(core: Core, body: Body) -> Disk:
    address, backing = body.object("diskAddress"), body.object("backingInfo")
    bus = address.text("busType", "SCSI", choices=_BUSES) if address is not None else "SCSI"
    index = address.integer("index", -1) if address is not None else -1
    disk = Disk(
        ext_id=body.text("extId") or core.new_id(),
        bus=bus,  # type: ignore[arg-type]  # checked by `choices`
        index=index,
        attributes=body.texts("customAttributes"),
    )
    if backing is None:
        return disk
    if group := backing.text("volumeGroupExtId"):
        return replace(disk, volume_group=group)
    return with_backing(core, disk, backing)


def with_backing(core: Core, disk: Disk, backing: Body) -> Disk:
    source = backing.object("dataSource")
    origin = source.object("reference") if source is not None else None
    config = backing.object("storageConfig")
    image = origin.text("imageExtId") if origin is not None else ""
    other = _source_disk(core, origin)
    size = backing.integer("diskSizeBytes")
    if not image and other is None and size < 1 and not disk.cdrom:
        raise rejected("", f"{backing.path}: diskSizeBytes must be given for a disk without a source.")
    if other is not None:
        size = max(size, other.size_bytes)
    return replace(
        disk,
        size_bytes=size,
        container=backing.reference("storageContainer"),
        image=image,
        source_disk=other.disk_ext_id if other is not None else "",
        disk_ext_id=backing.text("diskExtId") or core.new_id(),
        flash=config.flag("isFlashModeEnabled") if config is not None else False,
    )


def _source_disk(core: Core, origin: Body | None) -> Disk | None:
    wanted = origin.text("diskExtId") if origin is not None else ""
    if not wanted:
        return None
    for vm in core.world.vms:
        for disk in vm.disks:
            if wanted in (disk.disk_ext_id, disk.ext_id):
                return disk
    raise rejected("", f"The disk {wanted} is unknown.", "DISK_NOT_FOUND")


def read_cdrom(core: Core, body: Body) -> Disk:
    address, backing = body.object("diskAddress"), body.object("backingInfo")
    bus = address.text("busType", "IDE", choices=("IDE", "SATA")) if address is not None else "IDE"
    disk = Disk(
        ext_id=body.text("extId") or core.new_id(),
        bus=bus,  # type: ignore[arg-type]  # checked by `choices`
        index=address.integer("index", -1) if address is not None else -1,
        cdrom=True,
        disk_ext_id=core.new_id(),
    )
    return with_backing(core, disk, backing) if backing is not None else disk


def read_nic(core: Core, body: Body) -> Nic:
    """The newer fields win where both are given."""
    info = body.object("nicNetworkInfo") or body.object("networkInfo")
    device = body.object("nicBackingInfo") or body.object("backingInfo")
    if info is None or not info.reference("subnet"):
        raise rejected("VMM-30604", f"{body.path}: the subnet of the NIC must be given.", "SUBNET_NOT_FOUND")
    config = info.object("ipv4Config")
    requested = config.reference("ipAddress", "value") if config is not None else ""
    return Nic(
        ext_id=body.text("extId") or core.new_id(),
        subnet=info.reference("subnet"),
        mac=(device.text("macAddress").lower() if device is not None else ""),
        connected=device.flag("isConnected", True) if device is not None else True,
        queues=device.integer("numQueues", 1) if device is not None else 1,
        model=device.text("model", "VIRTIO") if device is not None else "VIRTIO",
        assign=config.flag("shouldAssignIp", True) if config is not None else True,
        requested=requested,
        vlan_mode=info.text("vlanMode", "ACCESS"),
        trunked=info.integers("trunkedVlans"),
        type=info.text("nicType", "NORMAL_NIC"),
    )


def read_gpu(core: Core, body: Body) -> Gpu:
    return Gpu(
        ext_id=body.text("extId") or core.new_id(),
        device_id=body.integer("deviceId", -1),
        mode=body.text("mode", "PASSTHROUGH_COMPUTE", choices=_MODES),
        vendor=body.text("vendor", "NVIDIA"),
        name=body.text("name"),
    )
