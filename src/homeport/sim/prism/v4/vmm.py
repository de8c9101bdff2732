"""vmm: virtual machines and what is done to them as a whole."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.core import replace
from homeport.sim.prism.entity import Task, Vm
from homeport.sim.prism.error import Refusal, precondition_failed, rejected
from homeport.sim.prism.machine import place_disks
from homeport.sim.prism.rule import customization_disk
from homeport.sim.prism.site import Handlers, Routes, Site
from homeport.sim.prism.v4 import envelope
from homeport.sim.prism.v4.envelope import Listing
from homeport.sim.prism.v4.vm_input import new_vm, read_nic, with_customization, with_scalars
from homeport.sim.prism.v4.vm_view import FIELDS, NS, vm_view

VMS: Final = "/api/vmm/{v}/ahv/config/vms"
LISTING: Final = Listing(f"{NS}.ListVmsApiResponse", f"{NS}.Vm", FIELDS)

# Actions without a body: what happens to the power, the operation of the task, the type of the answer.
_POWER: Final = {
    "power-on": ("on", "kVmPowerOn", "PowerOnVmApiResponse"),
    "power-off": ("off", "kVmPowerOff", "PowerOffVmApiResponse"),
    "shutdown": ("off", "kVmShutdown", "ShutdownVmApiResponse"),
    "guest-shutdown": ("off", "kVmGuestShutdown", "ShutdownVmApiResponse"),
    "reset": ("restart", "kVmReset", "ResetVmApiResponse"),
    "power-cycle": ("restart", "kVmPowerCycle", "PowerCycleVmApiResponse"),
    "reboot": ("restart", "kVmReboot", "RebootVmApiResponse"),
    "guest-reboot": ("restart", "kVmGuestReboot", "RebootVmApiResponse"),
}


def add_routes(routes: Routes) -> None:
    handlers = Handlers(list_vms, create_vm, get_vm, update_vm, delete_vm)
    one = envelope.add_entity_routes(routes, VMS, f"{NS}.Vm", "vms", handlers)
    for action, (what, operation, response) in _POWER.items():
        routes.add(
            "POST", f"{one}/$actions/{action}", _power(what, operation, response), f"{NS}.{response}", table="vms"
        )
    for action, edit, response in (
        ("add-custom-attributes", _add_attributes, "AddVmCustomAttributesApiResponse"),
        ("remove-custom-attributes", _remove_attributes, "RemoveVmCustomAttributesApiResponse"),
        ("associate-categories", _add_categories, "AssociateCategoriesApiResponse"),
        ("disassociate-categories", _remove_categories, "DisassociateCategoriesApiResponse"),
        ("assign-owner", _assign_owner, "AssignVmOwnerApiResponse"),
        ("customize-guest", _customize, "CustomizeGuestVmApiResponse"),
        ("migrate-to-host", _migrate, "MigrateVmToHostApiResponse"),
    ):
        routes.add("POST", f"{one}/$actions/{action}", _edit(edit, response), f"{NS}.{response}", table="vms")
    routes.add("POST", f"{one}/$actions/clone", clone_vm, f"{NS}.CloneVmApiResponse", table="vms")


def matched_vm(site: Site, call: Call, param: str = "extId") -> Vm:
    """The machine of the path, if the caller knows its newest version."""
    vm = site.find(site.world.vms, call.params[param])
    envelope.check_match(call, vm, lambda: precondition_failed(vm.ext_id))
    return vm


def list_vms(site: Site, call: Call) -> Answer:
    d = envelope.dialect_of(call)
    quick: dict[str, Callable[[Vm], object]] = {
        "name": lambda vm: vm.name,
        "extId": lambda vm: vm.ext_id,
        "biosUuid": lambda vm: vm.bios_uuid,
    }
    name = envelope.equal_to(call, "name")
    if name is not None and site.world is site.core.world:
        found = tuple(vm for each in site.core.usage.named(name) if (vm := site.world.vms.get(each)) is not None)
    else:
        found = tuple(site.world.vms)
    return envelope.listed(call, LISTING, found, lambda vm: vm_view(site, d, vm), quick)


def get_vm(site: Site, call: Call) -> Answer:
    vm = site.find(site.world.vms, call.params["extId"])
    return envelope.single(call, f"{NS}.GetVmApiResponse", vm_view(site, envelope.dialect_of(call), vm), version=vm)


def create_vm(site: Site, call: Call) -> Answer:
    request_id = call.headers.get("ntnx-request-id", "")
    if not request_id:
        raise rejected("VMM-30400", "The header NTNX-Request-Id is missing.", "REQUEST_ID_MISSING")
    try:
        uuid.UUID(request_id)
    except ValueError as error:
        raise rejected("VMM-30401", "The header NTNX-Request-Id is not a valid UUID.", "REQUEST_ID_INVALID") from error
    vm = new_vm(site.core, Body(call.body), _owner(site, call))
    return _accepted(call, "CreateVmApiResponse", site.machines.create(vm, call.user))


def _owner(site: Site, call: Call) -> str:
    user = site.world.user(call.user)
    return user.ext_id if user is not None else ""


def _accepted(call: Call, response: str, task: Task) -> Answer:
    return envelope.accepted(call, f"{NS}.{response}", task.ext_id)


def update_vm(site: Site, call: Call) -> Answer:
    vm = matched_vm(site, call)
    after = with_scalars(vm, Body(call.body))
    return _accepted(call, "UpdateVmApiResponse", site.machines.update(vm, after, call.user))


def delete_vm(site: Site, call: Call) -> Answer:
    vm = matched_vm(site, call)
    return _accepted(call, "DeleteVmApiResponse", site.machines.delete(vm, call.user))


def _power(what: str, operation: str, response: str) -> Callable[[Site, Call], Answer]:
    def respond(site: Site, call: Call) -> Answer:
        vm = matched_vm(site, call)
        return _accepted(call, response, site.machines.power(vm, what, call.user, operation))

    return respond


Edit = Callable[[Site, Vm, Body], Vm]


def _edit(edit: Edit, response: str) -> Callable[[Site, Call], Answer]:
    def respond(site: Site, call: Call) -> Answer:
        vm = matched_vm(site, call)
        after = edit(site, vm, Body(call.body))
        return _accepted(call, response, site.machines.update(vm, after, call.user))

    return respond


def _add_attributes(site: Site, vm: Vm, body: Body) -> Vm:
    return replace(vm, attributes=tuple(dict.fromkeys((*vm.attributes, *body.texts("customAttributes")))))


def _remove_attributes(site: Site, vm: Vm, body: Body) -> Vm:
    gone = set(body.texts("customAttributes"))
    return replace(vm, attributes=tuple(each for each in vm.attributes if each not in gone))


def _named_categories(body: Body) -> tuple[str, ...]:
    return tuple(each.required_text("extId") for each in body.objects("categories"))


def _add_categories(site: Site, vm: Vm, body: Body) -> Vm:
    return replace(vm, categories=tuple(dict.fromkeys((*vm.categories, *_named_categories(body)))))


def _remove_categories(site: Site, vm: Vm, body: Body) -> Vm:
    gone = set(_named_categories(body))
    return replace(vm, categories=tuple(each for each in vm.categories if each not in gone))


def _assign_owner(site: Site, vm: Vm, body: Body) -> Vm:
    owner = body.reference("owner")
    if owner not in site.world.users:
        raise rejected("", f"The user {owner} is unknown.", "OWNER_NOT_FOUND")
    return replace(vm, owner=owner)


def _customize(site: Site, vm: Vm, body: Body) -> Vm:
    after = with_customization(site.core, vm, body)
    if not any(disk.iso == "GUEST_CUSTOMIZATION" for disk in vm.disks):
        drive = customization_disk(site.core, list(vm.disks))
        after = replace(after, disks=(*vm.disks, *place_disks([drive], vm.disks)))
    return after


def _migrate(site: Site, vm: Vm, body: Body) -> Vm:
    host = body.reference("host")
    found = site.world.cluster_of_host(host)
    if found is None or found[0].ext_id != vm.cluster:
        raise rejected("", f"The host {host} is not part of the VM's cluster.", "HOST_NOT_FOUND")
    if vm.power != "ON":
        raise Refusal(400, f"The VM {vm.name} is not powered on.", "", "VM_INVALID_POWER_STATE")
    return replace(vm, host=host)


def clone_vm(site: Site, call: Call) -> Answer:
    source = matched_vm(site, call)
    body = Body(call.body or {})
    core = site.core
    ext_id = core.new_id()
    nics = [read_nic(core, each) for each in body.objects("nics")]
    disks = [
        replace(disk, ext_id=core.new_id(), source_disk=disk.disk_ext_id, image="", disk_ext_id=core.new_id())
        for disk in source.disks
        if not disk.volume_group and disk.iso != "GUEST_CUSTOMIZATION"
    ]
    vm = replace(
        with_scalars(source, body),
        ext_id=ext_id,
        name=body.text("name", f"{source.name}-clone"),
        bios_uuid=ext_id,
        generation_uuid=core.new_id(),
        version=1,
        created=0.0,
        spec_version=0,
        power="OFF",
        host="",
        booted=False,
        categories=source.categories,
        nics=tuple(nics)
        or tuple(replace(nic, ext_id=core.new_id(), mac="", address="", learned=()) for nic in source.nics),
        user_data="",
        meta_data="",
        disks=tuple(disks),
    )
    vm = with_customization(core, vm, body.object("guestCustomization"))
    if vm.user_data or vm.meta_data:
        vm = replace(vm, disks=(*vm.disks, *place_disks([customization_disk(core, disks)], vm.disks)))
    return _accepted(call, "CloneVmApiResponse", site.machines.create(vm, call.user))
