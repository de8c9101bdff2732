"""Machines as API v3 writes them, read and rendered."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from homeport.capi.family import reachable
from homeport.infra.error import Rejected
from homeport.infra.protocol import Power
from homeport.providers.nutanix.prism import v3_image as wire
from homeport.providers.nutanix.prism.record import (
    Disk,
    NewNic,
    NewVm,
    Vm,
    VmDisk,
    VmShape,
    described,
    marks_in,
)

_MIB = 2**20
_POWER: Mapping[str, Power] = {"ON": "on", "OFF": "off", "PAUSED": "on"}


def category_ids(entity: Mapping[str, Any]) -> tuple[str, ...]:
    mapping = entity["metadata"].get("categories_mapping") or {}
    return tuple(f"{key}/{value}" for key, values in mapping.items() for value in values)


def categories_of(metadata: dict[str, Any]) -> dict[str, list[str]]:
    """The map that counts: the plain one holds a single value of each key."""
    metadata["use_categories_mapping"] = True
    metadata.pop("categories", None)
    found: dict[str, list[str]] = metadata.setdefault("categories_mapping", {})
    return found


def read_shape(each: Mapping[str, Any]) -> VmShape:
    resources = (each.get("status") or {}).get("resources") or {}
    boot = str((resources.get("boot_config") or {}).get("boot_type") or "")
    nics = [(nic.get("subnet_reference") or {}).get("uuid") for nic in resources.get("nic_list") or ()]
    return VmShape(
        sockets=int(resources.get("num_sockets") or 1),
        cores_per_socket=int(resources.get("num_vcpus_per_socket") or 1),
        memory_bytes=int(resources.get("memory_size_mib") or 0) * _MIB,
        disks=tuple(_read_disk(disk) for disk in resources.get("disk_list") or ()),
        subnet_ids=tuple(str(found) for found in nics if found),
        boot="uefi" if boot in ("UEFI", "SECURE_BOOT") else "legacy",
        gpus=tuple(str(gpu["name"]) for gpu in resources.get("gpu_list") or () if gpu.get("name")),
    )


def _read_disk(each: Mapping[str, Any]) -> VmDisk:
    properties = each.get("device_properties") or {}
    address, source = properties.get("disk_address") or {}, each.get("data_source_reference") or {}
    return VmDisk(
        size_bytes=int(each.get("disk_size_bytes") or int(each.get("disk_size_mib") or 0) * _MIB),
        bus=str(address.get("adapter_type") or "SCSI"),
        index=int(address.get("device_index") or 0),
        image_id=str(source.get("uuid") or "") if source.get("kind", "image") == "image" else "",
        cdrom=properties.get("device_type") == "CDROM",
        volume_group=bool(each.get("volume_group_reference")),
    )


def read_vm(each: Mapping[str, Any]) -> Vm:
    status = each.get("status") or {}
    resources = status.get("resources") or {}
    description = (each.get("spec") or {}).get("description") or status.get("description") or ""
    return Vm(
        id=wire.uuid_of(each),
        name=wire.name_of(each),
        cluster_id=reference(each, "cluster_reference"),
        power=_POWER.get(str(resources.get("power_state")), "unknown"),
        memory_bytes=int(resources.get("memory_size_mib") or 0) * _MIB,
        addresses=tuple(
            dict.fromkeys(
                reachable(
                    endpoint["ip"]
                    for nic in resources.get("nic_list") or ()
                    for endpoint in nic.get("ip_endpoint_list") or ()
                    if endpoint.get("ip")
                )
            )
        ),
        category_ids=category_ids(each),
        marks=marks_in(description),
        volume_group_ids=tuple(
            disk["volume_group_reference"]["uuid"]
            for disk in resources.get("disk_list") or ()
            if disk.get("volume_group_reference")
        ),
        host_id=(resources.get("host_reference") or {}).get("uuid", ""),
        project_id=(each["metadata"].get("project_reference") or {}).get("uuid", ""),
        created=each["metadata"].get("creation_time", ""),
        etag=str(each["metadata"].get("spec_version", "")),
        raw=each,
    )


def render_vm(vm: NewVm) -> dict[str, Any]:
    mapping: dict[str, list[str]] = {}
    for category in vm.categories:
        mapping.setdefault(category.key, []).append(category.value)
    resources: dict[str, Any] = {
        "num_sockets": vm.sockets,
        "num_vcpus_per_socket": vm.cores_per_socket,
        "memory_size_mib": vm.memory_bytes // _MIB,
        "power_state": "ON",
        "hardware_clock_timezone": "UTC",
        "disk_list": [_disk(each) for each in vm.disks],
        "nic_list": [_nic(each) for each in vm.nics],
        "gpu_list": [
            {"vendor": each.vendor.removeprefix("k").upper(), "mode": each.mode, "device_id": each.device_id}
            for each in vm.gpus
        ],
    }
    if vm.boot:
        order = ["CDROM", "DISK", "NETWORK"]
        resources["boot_config"] = {"boot_type": vm.boot.upper(), "boot_device_order_list": order}
    if vm.user_data:
        resources["guest_customization"] = {
            "cloud_init": {
                "user_data": base64.b64encode(vm.user_data).decode(),
                "meta_data": base64.b64encode(vm.meta_data).decode(),
            }
        }
    metadata: dict[str, Any] = {"kind": "vm", "categories_mapping": mapping, "use_categories_mapping": True}
    if vm.project_id:
        metadata["project_reference"] = {"kind": "project", "uuid": vm.project_id}
    spec = {
        "name": vm.name,
        "description": described(vm.description, vm.marks),
        "cluster_reference": {"kind": "cluster", "uuid": vm.cluster_id},
        "resources": resources,
    }
    return {"api_version": "3.1", "metadata": metadata, "spec": spec}


def _nic(nic: NewNic) -> dict[str, Any]:
    made: dict[str, Any] = {"subnet_reference": {"kind": "subnet", "uuid": nic.subnet_id}}
    if nic.address:
        made["ip_endpoint_list"] = [{"ip": nic.address, "type": "ASSIGNED"}]
    return made


def _disk(disk: Disk) -> dict[str, Any]:
    if disk.container_id:
        raise Rejected("storage containers can't be chosen with Prism Central's API v3")
    properties: dict[str, Any] = {"device_type": "CDROM" if disk.cdrom else "DISK"}
    if disk.bus_index is not None:
        properties["disk_address"] = {"adapter_type": disk.bus, "device_index": disk.bus_index}
    made: dict[str, Any] = {"device_properties": properties}
    if disk.size_bytes:
        made["disk_size_bytes"] = disk.size_bytes
        made["disk_size_mib"] = -(-disk.size_bytes // _MIB)
    if disk.image_id:
        made["data_source_reference"] = {"kind": "image", "uuid": disk.image_id}
    return made


def reference(entity: Mapping[str, Any], name: str) -> str:
    for part in ("status", "spec"):
        found = ((entity.get(part) or {}).get(name) or {}).get("uuid")
        if found:
            return str(found)
    return ""
