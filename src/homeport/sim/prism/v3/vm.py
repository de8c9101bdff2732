"""VMs in v3: the whole intent in one entity, power state and devices included."""

from __future__ import annotations

from typing import Any, Final

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.core import Core, replace
from homeport.sim.prism.entity import MIB, Disk, Gpu, Nic, Vm
from homeport.sim.prism.error import invalid, rejected
from homeport.sim.prism.machine import place_disks
from homeport.sim.prism.rule import customization_disk
from homeport.sim.prism.site import Handlers, Routes, Site
from homeport.sim.prism.v3 import envelope
from homeport.sim.prism.v3.envelope import Json

_BUSES: Final = ("SCSI", "IDE", "PCI", "SATA", "SPAPR")
_BOOTS: Final = ("LEGACY", "UEFI", "SECURE_BOOT")
_LARGEST_USER_DATA: Final = 128_000
_LARGEST_META_DATA: Final = 32_000


def add_routes(routes: Routes) -> None:
    handlers = Handlers(list_vms, create_vm, get_vm, update_vm, delete_vm)
    envelope.add_entity_routes(routes, "vms", handlers)


# As it is read.


def vm_view(site: Site, vm: Vm) -> Json:
    project = site.world.projects.get(vm.project)
    meta = envelope.metadata(site, "vm", vm, **envelope.categories(site, vm.categories))
    meta["spec_version"] = vm.spec_version
    if project is not None:
        meta["project_reference"] = envelope.reference("project", project.ext_id, project.name)
    spec = {"name": vm.name, "resources": _resources(site, vm), "cluster_reference": _cluster(site, vm.cluster)}
    status = {
        "name": vm.name,
        "state": "COMPLETE",
        "resources": {
            **_resources(site, vm),
            "hypervisor_type": "AHV",
            "generation_uuid": vm.generation_uuid,
            "bios_uuid": vm.bios_uuid,
            "protection_type": "UNPROTECTED",
        },
        "cluster_reference": _cluster(site, vm.cluster),
        "execution_context": {"task_uuid": [vm.last_task] if vm.last_task else []},
    }
    found = site.world.cluster_of_host(vm.host) if vm.host else None
    if found is not None:
        status["resources"]["host_reference"] = envelope.reference("host", found[1].ext_id, found[1].name)  # type: ignore[index]
    if vm.description:
        spec["description"] = status["description"] = vm.description
    return envelope.entity_view(meta, spec, status)


def _cluster(site: Site, ext_id: str) -> Json:
    cluster = site.world.clusters.get(ext_id)
    return envelope.reference("cluster", ext_id, cluster.name if cluster else "")


def _resources(site: Site, vm: Vm) -> Json:
    found: Json = {
        "num_sockets": vm.sockets,
        "num_vcpus_per_socket": vm.cores,
        "num_threads_per_core": vm.threads,
        "memory_size_mib": vm.memory_bytes // MIB,
        "power_state": vm.power,
        "power_state_mechanism": {
            "mechanism": "HARD",
            "guest_transition_config": {"enable_script_exec": False, "should_fail_on_script_failure": False},
        },
        "hardware_clock_timezone": vm.timezone,
        "machine_type": vm.machine_type,
        "disk_list": [_disk_view(site, disk) for disk in vm.disks],
        "nic_list": [_nic_view(site, nic) for nic in vm.nics],
        "gpu_list": [_gpu_view(gpu) for gpu in vm.gpus],
        "boot_config": {"boot_device_order_list": list(vm.boot_order), "boot_type": vm.boot},
        "vga_console_enabled": vm.flags.get("isVgaConsoleEnabled", True),
        "vtpm_config": {"vtpm_enabled": vm.vtpm},
        "vnuma_config": {"num_vnuma_nodes": 0},
        "serial_port_list": [],
        "is_agent_vm": vm.flags.get("isAgentVm", False),
        "memory_overcommit_enabled": vm.flags.get("isMemoryOvercommitEnabled", False),
        "enable_cpu_passthrough": vm.flags.get("isCpuPassthroughEnabled", False),
    }
    if vm.user_data or vm.meta_data:
        # It holds secrets: what was given is kept, and not shown again.
        found["guest_customization"] = {"is_overridable": False, "cloud_init": {}}
    return found


def _disk_view(site: Site, disk: Disk) -> Json:
    address = {"adapter_type": disk.bus, "device_index": disk.index}
    found: Json = {
        "uuid": disk.ext_id,
        "device_properties": {"disk_address": address, "device_type": "CDROM" if disk.cdrom else "DISK"},
        "disk_size_mib": max(1, -(-disk.size_bytes // MIB)),
        "disk_size_bytes": disk.size_bytes,
    }
    if disk.volume_group:
        found["volume_group_reference"] = envelope.reference("volume_group", disk.volume_group)
    if disk.image:
        found["data_source_reference"] = envelope.reference("image", disk.image)
    if disk.container:
        container = site.world.containers.get(disk.container)
        name = container.name if container else ""
        found["storage_config"] = {
            "flash_mode": "ENABLED" if disk.flash else "DISABLED",
            "storage_container_reference": envelope.reference("storage_container", disk.container, name),
        }
    return found


def _nic_view(site: Site, nic: Nic) -> Json:
    subnet = site.world.subnets.get(nic.subnet)
    kind = "ASSIGNED" if nic.address else "LEARNED"
    addresses = [nic.address] if nic.address else list(nic.learned)
    return {
        "uuid": nic.ext_id,
        "nic_type": nic.type,
        "vlan_mode": nic.vlan_mode,
        "trunked_vlan_list": list(nic.trunked),
        "num_queues": nic.queues,
        "mac_address": nic.mac,
        "is_connected": nic.connected,
        "ip_endpoint_list": [{"type": kind, "ip": address} for address in addresses],
        "subnet_reference": envelope.reference("subnet", nic.subnet, subnet.name if subnet else ""),
    }


def _gpu_view(gpu: Gpu) -> Json:
    return {"uuid": gpu.ext_id, "vendor": gpu.vendor, "mode": gpu.mode, "device_id": gpu.device_id, "name": gpu.name}


# As it is written.


def read_vm(site: Site, before: Vm, spec: Body, meta: Body, resources: Body) -> Vm:
    core = site.core
    memory = resources.integer("memory_size_mib") * MIB
    boot = resources.object("boot_config")
    vm = replace(
        before,
        name=spec.required_text("name"),
        description=spec.text("description"),
        sockets=resources.integer("num_sockets", before.sockets),
        cores=resources.integer("num_vcpus_per_socket", before.cores),
        threads=resources.integer("num_threads_per_core", before.threads),
        memory_bytes=memory or before.memory_bytes,
        timezone=resources.text("hardware_clock_timezone", before.timezone),
        machine_type=resources.text("machine_type", before.machine_type),
        categories=_read_categories(site, meta, before.categories),
        project=meta.reference("project_reference", "uuid") or before.project,
    )
    if boot is not None:
        order = boot.texts("boot_device_order_list") or vm.boot_order
        vm = replace(vm, boot=boot.text("boot_type", vm.boot, choices=_BOOTS), boot_order=order)
    known_disks = {disk.ext_id: disk for disk in before.disks}
    known_nics = {nic.ext_id: nic for nic in before.nics}
    known_gpus = {gpu.ext_id: gpu for gpu in before.gpus}
    disks = [_read_disk(core, each, known_disks) for each in resources.objects("disk_list")]
    vm = _with_customization(vm, resources.object("guest_customization"))
    if (vm.user_data or vm.meta_data) and not any(disk.iso == "GUEST_CUSTOMIZATION" for disk in disks):
        disks.append(customization_disk(core, disks))
    return replace(
        vm,
        disks=place_disks(disks),
        nics=tuple(_read_nic(core, each, known_nics) for each in resources.objects("nic_list")),
        gpus=tuple(_read_gpu(core, each, known_gpus) for each in resources.objects("gpu_list")),
    )


def _read_categories(site: Site, meta: Body, before: tuple[str, ...]) -> tuple[str, ...]:
    if meta.flag("use_categories_mapping") or (meta.has("categories_mapping") and not meta.has("categories")):
        mapping = meta.mapping("categories_mapping")
    elif meta.has("categories"):
        mapping = meta.mapping("categories")
    else:
        return before
    wanted = [(key, value) for key, values in mapping.items() for value in values]
    ids = {(each.key, each.value): each.ext_id for each in site.world.categories}
    for key, value in wanted:
        if (key, value) not in ids:
            raise rejected("", f"The category {key}:{value} does not exist.", "CATEGORY_NOT_FOUND")
    return tuple(ids[each] for each in wanted)


def _with_customization(vm: Vm, body: Body | None) -> Vm:
    cloud_init = body.object("cloud_init") if body is not None else None
    if cloud_init is None:
        return vm
    user_data = cloud_init.text("user_data", vm.user_data, longest=_LARGEST_USER_DATA)
    meta_data = cloud_init.text("meta_data", vm.meta_data, longest=_LARGEST_META_DATA)
    return replace(vm, user_data=user_data, meta_data=meta_data)


def _read_disk(core: Core, body: Body, known: dict[str, Disk]) -> Disk:
    before = known.get(body.text("uuid"))
    properties = body.object("device_properties")
    address = properties.object("disk_address") if properties is not None else None
    cdrom = properties is not None and properties.text("device_type", "DISK") == "CDROM"
    bus = address.text("adapter_type", "", choices=(*_BUSES, "")) if address is not None else ""
    size = body.integer("disk_size_bytes") or body.integer("disk_size_mib") * MIB
    storage = body.object("storage_config")
    container = storage.reference("storage_container_reference", "uuid") if storage is not None else ""
    source = body.object("data_source_reference")
    image = source.text("uuid") if source is not None and source.text("kind", "image") == "image" else ""
    if before is not None:
        if size and size < before.size_bytes and not cdrom:
            raise rejected("", f"NotSupported: Can't shrink disk at {before.bus.lower()}.{before.index}")
        return replace(before, size_bytes=size or before.size_bytes)
    if not size and not image and not cdrom and not body.has("volume_group_reference"):
        raise invalid(f"{body.path}.disk_size_mib", "is required for a disk without a source")
    return Disk(
        ext_id=core.new_id(),
        bus=bus or ("IDE" if cdrom else "SCSI"),  # type: ignore[arg-type]  # checked by `choices`
        index=address.integer("device_index", -1) if address is not None else -1,
        size_bytes=size,
        container=container,
        image=image,
        disk_ext_id=core.new_id(),
        volume_group=body.reference("volume_group_reference", "uuid"),
        cdrom=cdrom,
    )


def _read_nic(core: Core, body: Body, known: dict[str, Nic]) -> Nic:
    before = known.get(body.text("uuid"))
    subnet = body.reference("subnet_reference", "uuid")
    if before is not None and subnet in ("", before.subnet):
        return replace(before, connected=body.flag("is_connected", before.connected))
    endpoints = list(body.objects("ip_endpoint_list"))
    return Nic(
        ext_id=core.new_id(),
        subnet=subnet,
        mac=body.text("mac_address").lower() if before is None else before.mac,
        connected=body.flag("is_connected", True),
        requested=endpoints[0].text("ip") if endpoints and before is None else "",
        vlan_mode=body.text("vlan_mode", "ACCESS"),
        type=body.text("nic_type", "NORMAL_NIC"),
    )


def _read_gpu(core: Core, body: Body, known: dict[str, Gpu]) -> Gpu:
    before = known.get(body.text("uuid"))
    if before is not None:
        return before
    return Gpu(
        ext_id=core.new_id(),
        device_id=body.integer("device_id", -1),
        mode=body.text("mode", "PASSTHROUGH_COMPUTE"),
        vendor=body.text("vendor", "NVIDIA"),
    )


# Requests.


def list_vms(site: Site, call: Call) -> Answer:
    def values(vm: Vm) -> Json:
        cluster = site.world.clusters.get(vm.cluster)
        return {
            "vm_name": vm.name,
            "name": vm.name,
            "uuid": vm.ext_id,
            "vm_uuid": vm.ext_id,
            "power_state": vm.power,
            "cluster_name": cluster.name if cluster else "",
            "cluster_uuid": vm.cluster,
            "ip_addresses": [address for nic in vm.nics for address in (nic.address, *nic.learned) if address],
        }

    return envelope.listed(call, "vm", tuple(site.world.vms), lambda vm: vm_view(site, vm), values)


def get_vm(site: Site, call: Call) -> Answer:
    return Answer(200, vm_view(site, site.find(site.world.vms, call.params["uuid"])))


def create_vm(site: Site, call: Call) -> Answer:
    spec, meta, resources = envelope.spec_of(call)
    ext_id = site.core.new_id()
    user = site.world.user(call.user)
    blank = Vm(
        ext_id=ext_id,
        name="",
        cluster=spec.reference("cluster_reference", "uuid"),
        bios_uuid=ext_id,
        generation_uuid=site.core.new_id(),
        owner=user.ext_id if user else "",
    )
    vm = read_vm(site, blank, spec, meta, resources)
    on = resources.text("power_state", "OFF", choices=("ON", "OFF")) == "ON"
    task = site.machines.create(vm, call.user, then_on=on)
    return envelope.pending("vm", ext_id, 0, spec.value, task.ext_id)


def update_vm(site: Site, call: Call) -> Answer:
    vm = site.find(site.world.vms, call.params["uuid"])
    spec, meta, resources = envelope.spec_of(call)
    envelope.check_version(vm.spec_version, meta)
    after = read_vm(site, vm, spec, meta, resources)
    power: Any = resources.text("power_state", "", choices=("ON", "OFF", ""))
    task = site.machines.update(vm, after, call.user, power=power if power != vm.power else "")
    return envelope.pending("vm", vm.ext_id, vm.spec_version, spec.value, task.ext_id)


def delete_vm(site: Site, call: Call) -> Answer:
    vm = site.find(site.world.vms, call.params["uuid"])
    return envelope.deleting(site.machines.delete(vm, call.user).ext_id)
