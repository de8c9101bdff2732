"""A VM and its devices, as v4 writes them."""

from __future__ import annotations

from typing import Any, Final

from homeport.sim.prism.entity import Disk, Gpu, Nic, Vm
from homeport.sim.prism.site import Site
from homeport.sim.prism.v4.envelope import Dialect, Json, names, one_of, time_text

NS: Final = "vmm.v4.ahv.config"

FIELDS: Final = names(
    """apcConfig availabilityZone biosUuid bootConfig categories cdRoms cluster createTime customAttributes
    description disks enabledCpuFeatures extId generationUuid gpus guestCustomization guestTools
    hardwareClockTimezone host isAgentVm isBrandingEnabled isCpuHotplugEnabled isCpuPassthroughEnabled
    isCrossClusterMigrationInProgress isGpuConsoleEnabled isLiveMigrateCapable isMemoryOvercommitEnabled
    isScsiControllerEnabled isVcpuHardPinningEnabled isVgaConsoleEnabled links machineType memorySizeBytes name
    nextScheduledReboot nics numCoresPerSocket numNumaNodes numSockets numThreadsPerCore ownershipInfo pcieDevices
    powerState project projectExtId protectionPolicyState protectionType serialPorts source sourceVmProfile
    storageConfig tenantId updateTime vmGuestCustomizationStatus vtpmConfig"""
)

FLAGS: Final = {
    "isVcpuHardPinningEnabled": False,
    "isCpuPassthroughEnabled": False,
    "isMemoryOvercommitEnabled": False,
    "isGpuConsoleEnabled": False,
    "isCpuHotplugEnabled": True,
    "isScsiControllerEnabled": True,
    "isBrandingEnabled": True,
    "isVgaConsoleEnabled": True,
    "isAgentVm": False,
}


def reference(d: Dialect, kind: str, ext_id: str) -> Json | None:
    return d.typed(f"{NS}.{kind}", {"extId": ext_id}) if ext_id else None


def vm_view(site: Site, d: Dialect, vm: Vm) -> Json:
    power = "UNDETERMINED" if site.core.out_of_reach(vm.cluster) else vm.power
    fields: dict[str, Any] = {
        "extId": vm.ext_id,
        "name": vm.name,
        "description": vm.description or None,
        "createTime": time_text(vm.created),
        "updateTime": time_text(vm.updated),
        "numSockets": vm.sockets,
        "numCoresPerSocket": vm.cores,
        "numThreadsPerCore": vm.threads,
        "numNumaNodes": 0,
        "memorySizeBytes": vm.memory_bytes,
        **{name: vm.flags.get(name, default) for name, default in FLAGS.items()},
        "isLiveMigrateCapable": not vm.gpus,
        "isCrossClusterMigrationInProgress": False,
        "generationUuid": vm.generation_uuid,
        "biosUuid": vm.bios_uuid,
        "categories": [reference(d, "CategoryReference", each) for each in vm.categories] or None,
        "project": reference(d, "ProjectReference", vm.project),
        "ownershipInfo": d.typed(f"{NS}.OwnershipInfo", {"owner": reference(d, "OwnerReference", vm.owner)}),
        "host": reference(d, "HostReference", vm.host),
        "cluster": reference(d, "ClusterReference", vm.cluster),
        "hardwareClockTimezone": vm.timezone,
        "machineType": vm.machine_type,
        "powerState": power,
        "vtpmConfig": d.typed(f"{NS}.VtpmConfig", {"isVtpmEnabled": vm.vtpm}),
        "apcConfig": d.typed(f"{NS}.ApcConfig", {"isApcEnabled": False}),
        "storageConfig": d.typed(f"{NS}.ADSFVmStorageConfig", {"isFlashModeEnabled": False}),
        "disks": [disk_view(d, disk) for disk in vm.disks if not disk.cdrom] or None,
        "cdRoms": [cdrom_view(d, disk) for disk in vm.disks if disk.cdrom] or None,
        "nics": [nic_view(site, d, nic) for nic in vm.nics] or None,
        "gpus": [gpu_view(site, d, gpu) for gpu in vm.gpus] or None,
        "protectionType": "UNPROTECTED",
        **one_of("bootConfig", boot_view(d, vm)),
    }
    if d.minor >= 2:
        fields["customAttributes"] = list(vm.attributes) or None
    if d.minor >= 3:
        fields["projectExtId"] = vm.project or None
    return d.typed(f"{NS}.Vm", fields)


def boot_view(d: Dialect, vm: Vm) -> Json:
    order = list(vm.boot_order)
    if vm.boot == "LEGACY":
        return d.typed(f"{NS}.LegacyBoot", {"bootOrder": order})
    secure = vm.boot == "SECURE_BOOT"
    # The boot order of UEFI machines came with a later version of the API.
    return d.typed(f"{NS}.UefiBoot", {"isSecureBootEnabled": secure, "bootOrder": order if d.minor >= 1 else None})


def disk_view(d: Dialect, disk: Disk) -> Json:
    if disk.volume_group:
        backing = d.typed(f"{NS}.ADSFVolumeGroupReference", {"volumeGroupExtId": disk.volume_group})
    else:
        backing = backing_view(d, disk)
    address = d.typed(f"{NS}.DiskAddress", {"busType": disk.bus, "index": disk.index})
    fields = {"extId": disk.ext_id, "diskAddress": address, **one_of("backingInfo", backing)}
    if d.minor >= 3:
        fields["customAttributes"] = list(disk.attributes) or None
    return d.typed(f"{NS}.Disk", fields)


def backing_view(d: Dialect, disk: Disk) -> Json:
    source = None
    if disk.image:
        image = d.typed(f"{NS}.ImageReference", {"imageExtId": disk.image})
        source = d.typed(f"{NS}.DataSource", one_of("reference", image))
    elif disk.source_disk:
        other = d.typed(f"{NS}.VmDiskReference", {"diskExtId": disk.source_disk})
        source = d.typed(f"{NS}.DataSource", one_of("reference", other))
    return d.typed(
        f"{NS}.VmDisk",
        {
            "diskExtId": disk.disk_ext_id,
            "diskSizeBytes": disk.size_bytes,
            "storageContainer": reference(d, "VmDiskContainerReference", disk.container),
            "storageConfig": d.typed(f"{NS}.VmDiskStorageConfig", {"isFlashModeEnabled": disk.flash}),
            "dataSource": source,
            "isMigrationInProgress": False,
        },
    )


def cdrom_view(d: Dialect, disk: Disk) -> Json:
    address = d.typed(f"{NS}.CdRomAddress", {"busType": disk.bus, "index": disk.index})
    return d.typed(
        f"{NS}.CdRom",
        {
            "extId": disk.ext_id,
            "diskAddress": address,
            "backingInfo": backing_view(d, disk) if disk.image or disk.iso != "OTHER" else None,
            "isoType": disk.iso,
        },
    )


def nic_view(site: Site, d: Dialect, nic: Nic) -> Json:
    """In both generations of the fields: older clients read one, newer ones the other."""
    device = {"macAddress": nic.mac, "isConnected": nic.connected, "numQueues": nic.queues}
    info = _network_info(site, d, nic)
    return d.typed(
        f"{NS}.Nic",
        {
            "extId": nic.ext_id,
            "backingInfo": d.typed(f"{NS}.EmulatedNic", {"model": nic.model, **device}),
            "networkInfo": d.typed(f"{NS}.NicNetworkInfo", info),
            **one_of("nicBackingInfo", d.typed(f"{NS}.VirtualEthernetNic", {"model": nic.model, **device})),
            **one_of("nicNetworkInfo", d.typed(f"{NS}.VirtualEthernetNicNetworkInfo", {**info, **_ipv6(d, nic)})),
        },
    )


def _ipv6(d: Dialect, nic: Nic) -> Json:
    """Only the newer generation has it."""
    if not nic.learned6:
        return {}
    return {"ipv6Info": d.typed(f"{NS}.Ipv6Info", {"learnedIpv6Addresses": [d.ipv6(each) for each in nic.learned6]})}


def _network_info(site: Site, d: Dialect, nic: Nic) -> Json:
    subnet = site.world.subnets.get(nic.subnet)
    config = info = None
    if nic.address:
        config = d.typed(f"{NS}.Ipv4Config", {"shouldAssignIp": nic.assign, "ipAddress": d.ipv4(nic.address)})
    if nic.learned:
        info = d.typed(f"{NS}.Ipv4Info", {"learnedIpAddresses": [d.ipv4(address) for address in nic.learned]})
    return {
        "nicType": nic.type,
        "subnet": reference(d, "SubnetReference", nic.subnet),
        "vlanMode": nic.vlan_mode if subnet is None or subnet.type == "VLAN" else None,
        "trunkedVlans": list(nic.trunked) or None,
        "shouldAllowUnknownMacs": False,
        "ipv4Config": config,
        "ipv4Info": info,
    }


def gpu_view(site: Site, d: Dialect, gpu: Gpu) -> Json:
    device = site.world.gpus.get(gpu.device)
    return d.typed(
        f"{NS}.Gpu",
        {
            "extId": gpu.ext_id,
            "mode": gpu.mode,
            "deviceId": gpu.device_id,
            "vendor": gpu.vendor,
            "name": gpu.name or None,
            "frameBufferSizeBytes": device.frame_buffer_bytes if device else None,
            "fraction": device.fraction if device and device.fraction else None,
        },
    )
