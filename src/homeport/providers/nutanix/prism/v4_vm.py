"""A machine as API v4 spells it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from homeport.capi.family import reachable
from homeport.infra.protocol import Power
from homeport.providers.nutanix.prism.record import (
    Disk,
    GpuProfile,
    NewNic,
    NewVm,
    Vm,
    VmDisk,
    VmShape,
    described,
    marks_in,
)

_POWER: Mapping[str, Power] = {"ON": "on", "OFF": "off", "PAUSED": "on"}
_BOOT_ORDER = ["CDROM", "DISK", "NETWORK"]
_CONFIG = "vmm.v4.ahv.config"


def read_vm(raw: Mapping[str, Any], etag: str = "") -> Vm:
    return Vm(
        id=raw["extId"],
        name=raw.get("name", ""),
        cluster_id=(raw.get("cluster") or {}).get("extId", ""),
        power=_POWER.get(str(raw.get("powerState")), "unknown"),
        memory_bytes=int(raw.get("memorySizeBytes") or 0),
        addresses=tuple(dict.fromkeys(reachable(_addresses(raw.get("nics") or ())))),
        category_ids=tuple(each["extId"] for each in raw.get("categories") or ()),
        marks=(*(raw.get("customAttributes") or ()), *marks_in(raw.get("description"))),
        volume_group_ids=tuple(_volume_groups(raw.get("disks") or ())),
        host_id=(raw.get("host") or {}).get("extId", ""),
        project_id=(raw.get("project") or {}).get("extId", "") or raw.get("projectExtId", ""),
        created=raw.get("createTime", ""),
        etag=etag,
        raw=raw,
    )


def _addresses(nics: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Assigned ones first, then what was learned from the wire. Newer servers say it in `nicNetworkInfo`."""
    for nic in nics:
        info = nic.get("nicNetworkInfo") or nic.get("networkInfo") or {}
        config = info.get("ipv4Config") or {}
        assigned = (config.get("ipAddress") or {}).get("value")
        if assigned:
            yield assigned
        for each in config.get("secondaryIpAddressList") or ():
            if each.get("value"):
                yield each["value"]
        learned = (info.get("ipv4Info") or {}).get("learnedIpAddresses") or ()
        for each in (*learned, *((info.get("ipv6Info") or {}).get("learnedIpv6Addresses") or ())):
            if each.get("value"):
                yield each["value"]


def _volume_groups(disks: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for disk in disks:
        found = (disk.get("backingInfo") or {}).get("volumeGroupExtId")
        if found:
            yield found


def read_shape(raw: Mapping[str, Any]) -> VmShape:
    nics = [nic.get("nicNetworkInfo") or nic.get("networkInfo") or {} for nic in raw.get("nics") or ()]
    boot = str((raw.get("bootConfig") or {}).get("$objectType") or "")
    disks = [_read_disk(each, cdrom=False) for each in raw.get("disks") or ()]
    return VmShape(
        sockets=int(raw.get("numSockets") or 1),
        cores_per_socket=int(raw.get("numCoresPerSocket") or 1),
        memory_bytes=int(raw.get("memorySizeBytes") or 0),
        disks=(*disks, *(_read_disk(each, cdrom=True) for each in raw.get("cdRoms") or ())),
        subnet_ids=tuple(found for nic in nics if (found := (nic.get("subnet") or {}).get("extId"))),
        boot="uefi" if boot.endswith("UefiBoot") else "legacy",
        bios_uuid=str(raw.get("biosUuid") or ""),
        gpus=tuple(str(each["name"]) for each in raw.get("gpus") or () if each.get("name")),
    )


def _read_disk(raw: Mapping[str, Any], *, cdrom: bool) -> VmDisk:
    address, backing = raw.get("diskAddress") or {}, raw.get("backingInfo") or {}
    source = (backing.get("dataSource") or {}).get("reference") or {}
    return VmDisk(
        size_bytes=int(backing.get("diskSizeBytes") or 0),
        bus=str(address.get("busType") or "SCSI"),
        index=int(address.get("index") or 0),
        image_id=str(source.get("imageExtId") or ""),
        cdrom=cdrom,
        volume_group=bool(backing.get("volumeGroupExtId")),
    )


def read_gpu(config: Mapping[str, Any], *, virtual: bool) -> GpuProfile:
    mode = "VIRTUAL" if virtual else str(config.get("type") or "PASSTHROUGH_COMPUTE")
    return GpuProfile(
        str(config.get("deviceName", "")),
        int(config.get("deviceId") or 0),
        str(config.get("vendorName", "")),
        mode if mode in ("VIRTUAL", "PASSTHROUGH_GRAPHICS") else "PASSTHROUGH_COMPUTE",
        virtual,
        not config.get("isInUse", False),
    )


def render_vm(vm: NewVm, *, newer: bool) -> dict[str, Any]:
    """`newer`: the server knows custom attributes, and the newer spelling of network cards."""
    body: dict[str, Any] = {
        "$objectType": f"{_CONFIG}.Vm",
        "name": vm.name,
        "description": vm.description if newer else described(vm.description, vm.marks),
        "cluster": {"extId": vm.cluster_id},
        "numSockets": vm.sockets,
        "numCoresPerSocket": vm.cores_per_socket,
        "memorySizeBytes": vm.memory_bytes,
        "hardwareClockTimezone": "UTC",
        "disks": [_disk(each) for each in vm.disks if not each.cdrom],
        "nics": [_nic(each, newer) for each in vm.nics],
        "categories": [{"extId": each.id} for each in vm.categories],
    }
    if newer:
        body["customAttributes"] = list(vm.marks)
    cdroms = [_cdrom(each) for each in vm.disks if each.cdrom]
    if cdroms:
        body["cdRoms"] = cdroms
    if vm.project_id:
        body["project"] = {"extId": vm.project_id}
    if vm.gpus:
        body["gpus"] = [
            {"name": each.name, "deviceId": each.device_id, "vendor": _vendor(each.vendor), "mode": each.mode}
            for each in vm.gpus
        ]
    if vm.boot:
        kind = "UefiBoot" if vm.boot == "uefi" else "LegacyBoot"
        body["bootConfig"] = {"$objectType": f"{_CONFIG}.{kind}", "bootOrder": _BOOT_ORDER}
    if vm.user_data:
        body["guestCustomization"] = _customization(vm)
    return body


def _customization(vm: NewVm) -> dict[str, Any]:
    return {
        "config": {
            "$objectType": f"{_CONFIG}.CloudInit",
            "datasourceType": "CONFIG_DRIVE_V2",
            "metadata": base64.b64encode(vm.meta_data).decode(),
            "cloudInitScript": {
                "$objectType": f"{_CONFIG}.Userdata",
                "value": base64.b64encode(vm.user_data).decode(),
            },
        }
    }


def _disk(disk: Disk) -> dict[str, Any]:
    backing: dict[str, Any] = {"$objectType": f"{_CONFIG}.VmDisk", "diskSizeBytes": disk.size_bytes}
    if disk.image_id:
        backing["dataSource"] = _source(disk.image_id)
    if disk.container_id:
        backing["storageContainer"] = {"extId": disk.container_id}
    if disk.flash:
        backing["storageConfig"] = {"isFlashModeEnabled": True}
    made: dict[str, Any] = {"backingInfo": backing}
    if disk.bus_index is not None:
        made["diskAddress"] = {"busType": disk.bus, "index": disk.bus_index}
    return made


def _cdrom(disk: Disk) -> dict[str, Any]:
    backing: dict[str, Any] = {"$objectType": f"{_CONFIG}.VmDisk"}
    if disk.image_id:
        backing["dataSource"] = _source(disk.image_id)
    if disk.size_bytes:
        backing["diskSizeBytes"] = disk.size_bytes
    return {"backingInfo": backing, "diskAddress": {"busType": disk.bus, "index": disk.bus_index or 0}}


def _source(image_id: str) -> dict[str, Any]:
    return {"reference": {"$objectType": f"{_CONFIG}.ImageReference", "imageExtId": image_id}}


def _nic(nic: NewNic, new: bool) -> dict[str, Any]:
    subnet: dict[str, Any] = {"subnet": {"extId": nic.subnet_id}}
    if nic.address:
        subnet["ipv4Config"] = {"shouldAssignIp": True, "ipAddress": {"value": nic.address}}
    if not new:
        return {"networkInfo": {**subnet, "nicType": "NORMAL_NIC"}}
    return {
        "nicBackingInfo": {"$objectType": f"{_CONFIG}.VirtualEthernetNic", "isConnected": True},
        "nicNetworkInfo": {
            "$objectType": f"{_CONFIG}.VirtualEthernetNicNetworkInfo",
            **subnet,
            "nicType": "NORMAL_NIC",
        },
    }


def _vendor(name: str) -> str:
    """Profiles say kNvidia where machines say NVIDIA."""
    return {"knvidia": "NVIDIA", "kintel": "INTEL", "kamd": "AMD"}.get(name.lower(), name.upper())
