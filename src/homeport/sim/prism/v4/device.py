"""vmm: disks, CD-ROMs, NICs, GPUs and serial ports, one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.core import Core, replace
from homeport.sim.prism.entity import Disk, Nic, Vm
from homeport.sim.prism.error import missing, rejected
from homeport.sim.prism.machine import place_disks
from homeport.sim.prism.site import Routes, Site
from homeport.sim.prism.v4 import envelope
from homeport.sim.prism.v4.envelope import Dialect, Json, Listing
from homeport.sim.prism.v4.vm_input import read_cdrom, read_disk, read_gpu, read_nic, with_backing
from homeport.sim.prism.v4.vm_view import NS, cdrom_view, disk_view, gpu_view, nic_view
from homeport.sim.prism.v4.vmm import VMS, matched_vm


@dataclass(frozen=True, slots=True)
class Devices:
    """One kind of device: where it is in a VM, how it is shown, read, and put back."""

    path: str
    kind: str  # as in vmm.v4.ahv.config.Nic
    plural: str
    fields: frozenset[str]
    held: Callable[[Vm], tuple[Any, ...]]
    shown: Callable[[Site, Dialect, Any], Json]
    read: Callable[[Core, Body], Any]
    kept: Callable[[Vm, tuple[Any, ...]], Vm]
    updates: bool = False


def _with_disks(vm: Vm, disks: tuple[Disk, ...]) -> Vm:
    others = tuple(disk for disk in vm.disks if disk.cdrom)
    return replace(vm, disks=(*place_disks(list(disks), others), *others))


def _with_cdroms(vm: Vm, cdroms: tuple[Disk, ...]) -> Vm:
    others = tuple(disk for disk in vm.disks if not disk.cdrom)
    return replace(vm, disks=(*others, *place_disks(list(cdroms), others)))


DEVICES: Final = (
    Devices(
        "disks",
        "Disk",
        "Disks",
        envelope.names("extId diskAddress backingInfo customAttributes links tenantId"),
        lambda vm: tuple(disk for disk in vm.disks if not disk.cdrom),
        lambda site, d, disk: disk_view(d, disk),
        read_disk,
        _with_disks,
        updates=True,
    ),
    Devices(
        "cd-roms",
        "CdRom",
        "CdRoms",
        envelope.names("extId diskAddress backingInfo isoType links tenantId"),
        lambda vm: tuple(disk for disk in vm.disks if disk.cdrom),
        lambda site, d, disk: cdrom_view(d, disk),
        read_cdrom,
        _with_cdroms,
    ),
    Devices(
        "nics",
        "Nic",
        "Nics",
        envelope.names("extId backingInfo networkInfo nicBackingInfo nicNetworkInfo links tenantId"),
        lambda vm: vm.nics,
        nic_view,
        read_nic,
        lambda vm, nics: replace(vm, nics=nics),
        updates=True,
    ),
    Devices(
        "gpus",
        "Gpu",
        "Gpus",
        envelope.names("extId mode deviceId vendor pciAddress name frameBufferSizeBytes fraction links tenantId"),
        lambda vm: vm.gpus,
        gpu_view,
        read_gpu,
        lambda vm, gpus: replace(vm, gpus=gpus),
    ),
)


def add_routes(routes: Routes) -> None:
    for devices in DEVICES:
        many, one = f"{VMS}/{{vmExtId}}/{devices.path}", f"{VMS}/{{vmExtId}}/{devices.path}/{{extId}}"
        view = _View(devices)
        for method, path, respond, response in (
            ("GET", many, view.list, f"List{devices.plural}ApiResponse"),
            ("POST", many, view.create, f"Create{devices.kind}ApiResponse"),
            ("GET", one, view.get, f"Get{devices.kind}ApiResponse"),
            ("DELETE", one, view.delete, f"Delete{devices.kind}ApiResponse"),
        ):
            routes.add(method, path, respond, f"{NS}.{response}", table="vms", param="vmExtId")
        if devices.updates:
            routes.add("PUT", one, view.update, f"{NS}.Update{devices.kind}ApiResponse", table="vms", param="vmExtId")
    for path, respond, response in (
        ("nics/{extId}/$actions/assign-ip", assign_ip, "AssignIpApiResponse"),
        ("nics/{extId}/$actions/release-ip", release_ip, "ReleaseIpApiResponse"),
        ("cd-roms/{extId}/$actions/insert", insert, "InsertCdRomApiResponse"),
        ("cd-roms/{extId}/$actions/eject", eject, "EjectCdRomApiResponse"),
    ):
        routes.add("POST", f"{VMS}/{{vmExtId}}/{path}", respond, f"{NS}.{response}", table="vms", param="vmExtId")


class _View:
    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def list(self, site: Site, call: Call) -> Answer:
        vm = site.find(site.world.vms, call.params["vmExtId"])
        d, what = envelope.dialect_of(call), self._devices
        listing = Listing(f"{NS}.List{what.plural}ApiResponse", f"{NS}.{what.kind}", what.fields)
        return envelope.listed(call, listing, what.held(vm), lambda device: what.shown(site, d, device))

    def get(self, site: Site, call: Call) -> Answer:
        vm = site.find(site.world.vms, call.params["vmExtId"])
        shown = self._devices.shown(site, envelope.dialect_of(call), self._find(vm, call))
        return envelope.single(call, f"{NS}.Get{self._devices.kind}ApiResponse", shown, version=vm)

    def create(self, site: Site, call: Call) -> Answer:
        vm = matched_vm(site, call, "vmExtId")
        device = self._devices.read(site.core, Body(call.body))
        device = replace(device, ext_id=site.core.new_id())
        after = self._devices.kept(vm, (*self._devices.held(vm), device))
        return self._changed(site, call, vm, after, "Create")

    def update(self, site: Site, call: Call) -> Answer:
        vm = matched_vm(site, call, "vmExtId")
        old = self._find(vm, call)
        new = replace(self._devices.read(site.core, Body(call.body)), ext_id=old.ext_id)
        if isinstance(old, Disk) and isinstance(new, Disk):
            new = _grown(old, new)
        elif isinstance(old, Nic) and isinstance(new, Nic):
            new = _moved(old, new)
        devices = tuple(new if each.ext_id == old.ext_id else each for each in self._devices.held(vm))
        return self._changed(site, call, vm, self._devices.kept(vm, devices), "Update")

    def delete(self, site: Site, call: Call) -> Answer:
        vm = matched_vm(site, call, "vmExtId")
        gone = self._find(vm, call)
        left = tuple(each for each in self._devices.held(vm) if each.ext_id != gone.ext_id)
        return self._changed(site, call, vm, self._devices.kept(vm, left), "Delete")

    def _find(self, vm: Vm, call: Call) -> Any:
        ext_id = call.params["extId"]
        for device in self._devices.held(vm):
            if device.ext_id == ext_id:
                return device
        raise missing(self._devices.kind.lower(), ext_id)

    def _changed(self, site: Site, call: Call, vm: Vm, after: Vm, verb: str) -> Answer:
        operation = f"kVm{self._devices.kind}{verb}"
        task = site.machines.update(vm, after, call.user, operation=operation)
        return envelope.accepted(call, f"{NS}.{verb}{self._devices.kind}ApiResponse", task.ext_id)


def _grown(old: Disk, new: Disk) -> Disk:
    if new.size_bytes < old.size_bytes and not new.volume_group:
        raise rejected("", f"NotSupported: Can't shrink disk at {old.bus.lower()}.{old.index}.")
    return replace(
        old, size_bytes=new.size_bytes or old.size_bytes, flash=new.flash, container=new.container or old.container
    )


def _moved(old: Nic, new: Nic) -> Nic:
    same = new.subnet == old.subnet
    return replace(
        new,
        mac=new.mac or old.mac,
        address=old.address if same else "",
        learned=old.learned if same else (),
    )


def _nic_changed(site: Site, call: Call, response: str, change: Callable[[Nic], Nic]) -> Answer:
    vm = matched_vm(site, call, "vmExtId")
    if call.params["extId"] not in {nic.ext_id for nic in vm.nics}:
        raise missing("nic", call.params["extId"])
    nics = tuple(change(nic) if nic.ext_id == call.params["extId"] else nic for nic in vm.nics)
    task = site.machines.update(vm, replace(vm, nics=nics), call.user, operation="kVmNicUpdate")
    return envelope.accepted(call, f"{NS}.{response}", task.ext_id)


def assign_ip(site: Site, call: Call) -> Answer:
    wanted = Body(call.body or {}).reference("ipAddress", "value")

    def change(nic: Nic) -> Nic:
        subnet = site.find(site.world.subnets, nic.subnet)
        if not subnet.managed:
            raise rejected("", f"The subnet {subnet.name} has no address management.")
        address = site.core.usage.take_address(subnet, call.params["vmExtId"], wanted)
        return replace(nic, address=address, assign=True, learned=(address,) if nic.learned else ())

    return _nic_changed(site, call, "AssignIpApiResponse", change)


def release_ip(site: Site, call: Call) -> Answer:
    return _nic_changed(
        site, call, "ReleaseIpApiResponse", lambda nic: replace(nic, address="", requested="", assign=False)
    )


def _cdrom_changed(site: Site, call: Call, response: str, change: Callable[[Disk], Disk]) -> Answer:
    vm = matched_vm(site, call, "vmExtId")
    if call.params["extId"] not in {disk.ext_id for disk in vm.disks if disk.cdrom}:
        raise missing("cdrom", call.params["extId"])
    disks = tuple(change(disk) if disk.ext_id == call.params["extId"] else disk for disk in vm.disks)
    task = site.machines.update(vm, replace(vm, disks=disks), call.user, operation="kVmDiskUpdate")
    return envelope.accepted(call, f"{NS}.{response}", task.ext_id)


def insert(site: Site, call: Call) -> Answer:
    backing = Body(call.body).object("backingInfo")
    if backing is None:
        raise rejected("", "backingInfo must be given.")
    return _cdrom_changed(site, call, "InsertCdRomApiResponse", lambda disk: with_backing(site.core, disk, backing))


def eject(site: Site, call: Call) -> Answer:
    return _cdrom_changed(
        site, call, "EjectCdRomApiResponse", lambda disk: replace(disk, image="", size_bytes=0, iso="OTHER")
    )
