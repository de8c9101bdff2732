"""Power, boot and addresses of machines, and what faults do to them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection
from ipaddress import IPv6Address, IPv6Network

from homeport.sim.engine.fault import AddressChange, AddressLoss, Crash, Isolation, NoBoot
from homeport.sim.engine.guest import Machine
from homeport.sim.prism.capacity import place
from homeport.sim.prism.core import Core, replace
from homeport.sim.prism.entity import Nic, Timer, Vm
from homeport.sim.prism.error import Refusal, missing
from homeport.sim.prism.task import Tasks


class Power:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._tasks = Tasks(core, self.came_due)

    @property
    def tasks(self) -> Tasks:
        return self._tasks

    def vm(self, ext_id: str) -> Vm:
        vm = self._core.world.vms.get(ext_id)
        if vm is None:
            raise missing("vm", ext_id)
        return vm

    def on(self, ext_id: str) -> None:
        vm = self.vm(ext_id)
        if vm.power == "ON":
            raise wrong_state(vm, "power on")
        core = self._core
        host = place(core.world, core.usage, vm)
        now = core.now()
        vm = core.put(core.world.vms, vm, power="ON", host=host, powered_at=now, booted=False)
        self._await_boot(vm)
        self._await_faults(vm)

    def _await_boot(self, vm: Vm) -> None:
        core = self._core
        struck = core.faults.strike(core.subject(vm), NoBoot)
        countdown = core.pace.boot.start(core.now(), core.rng)
        if struck or countdown.never or vm.late is None:
            return
        due = max(countdown.due or core.now(), core.now() + vm.late)
        if due <= core.now():
            self._boot(vm)
        else:
            self._timer(vm, "boot", due)

    def meet(self, faults: Collection[str]) -> None:
        """Machines that run already meet faults that are set now; seconds count from here."""
        for vm in list(self._core.world.vms):
            if faults and vm.power == "ON":
                self._await_faults(vm, faults)

    def _await_faults(self, vm: Vm, only: Collection[str] = ()) -> None:
        core = self._core
        subject = core.subject(core.world.vms.get(vm.ext_id) or vm)
        for _, change in core.faults.strike(subject, AddressChange, only=only):
            self._timer(vm, "address-change", core.now() + change.seconds)
        for _, loss in core.faults.strike(subject, AddressLoss, only=only):
            self._timer(vm, "address-loss", core.now() + loss.seconds)
        for _, crash in core.faults.strike(subject, Crash, only=only):
            self._timer(vm, "crash", core.now() + crash.seconds)

    def _timer(self, vm: Vm, what: str, at: float) -> None:
        timer = Timer(
            ext_id=self._core.new_id(),
            at=at,
            what=what,  # type: ignore[arg-type]  # callers pass the literals of the field
            vm=vm.ext_id,
            powered_at=vm.powered_at,
        )
        self._tasks.timer(timer)

    def came_due(self, timer: Timer) -> None:
        vm = self._core.world.vms.get(timer.vm)
        if vm is None or vm.power != "ON" or vm.powered_at != timer.powered_at:
            return
        if timer.what == "boot":
            self._boot(vm)
        elif timer.what == "crash":
            self._stop(vm, crashed=True)
        else:
            self._readdress(vm, lost=timer.what == "address-loss")

    def _boot(self, vm: Vm) -> None:
        core = self._core
        nics = tuple(self._with_address(vm, nic) for nic in vm.nics)
        vm = core.put(core.world.vms, vm, booted=True, nics=nics)
        isolated = {each for _, effect in core.faults.strike(core.subject(vm), Isolation) for each in effect.lacks}
        core.guests.powered_on(machine_of(core, vm, isolated))

    def _with_address(self, vm: Vm, nic: Nic) -> Nic:
        subnet = self._core.world.subnets.get(nic.subnet)
        if subnet is None or not nic.connected:
            return nic
        nic = replace(nic, learned6=learned6(subnet.ipv6, nic.mac))
        try:
            if subnet.managed and nic.assign:
                address = nic.address or self._core.usage.take_address(subnet, vm.ext_id, nic.requested)
                return replace(nic, address=address, learned=(address,))
            if not subnet.managed and subnet.outside:
                return replace(nic, learned=(self._core.usage.take_address(subnet, vm.ext_id),))
        except Refusal:
            return nic  # the machine runs without: nobody has an address for it
        return nic

    def _readdress(self, vm: Vm, *, lost: bool) -> None:
        core = self._core
        nics = tuple(replace(nic, address="", learned=(), learned6=() if lost else nic.learned6) for nic in vm.nics)
        if not lost:
            nics = tuple(self._other_address(vm, old, nic) for old, nic in zip(vm.nics, nics, strict=True))
        vm = core.put(core.world.vms, vm, nics=nics)
        core.guests.readdressed(vm.ext_id, addresses_of(vm))

    def _other_address(self, vm: Vm, old: Nic, nic: Nic) -> Nic:
        subnet = self._core.world.subnets.get(nic.subnet)
        if subnet is None:
            return nic
        before = (old.address, *old.learned)
        try:
            address = self._core.usage.take_address(subnet, vm.ext_id, not_these=before)
        except Refusal:
            return nic  # no other is free: the machine is left without
        return replace(nic, address=address if subnet.managed else "", learned=(address,))

    def off(self, ext_id: str) -> None:
        vm = self.vm(ext_id)
        if vm.power == "OFF":
            raise wrong_state(vm, "power off")
        self._stop(vm, crashed=False)

    def _stop(self, vm: Vm, *, crashed: bool) -> None:
        core = self._core
        nics = tuple(replace(nic, learned=(), learned6=()) for nic in vm.nics)
        core.put(core.world.vms, vm, power="OFF", host="", booted=False, nics=nics)
        core.guests.powered_off(vm.ext_id, crashed=crashed)

    def restart(self, ext_id: str) -> None:
        """Reset and power cycle: the machine keeps its host and boots again."""
        vm = self.vm(ext_id)
        if vm.power != "ON":
            raise wrong_state(vm, "reset")
        core = self._core
        core.guests.powered_off(vm.ext_id, crashed=False)
        nics = tuple(replace(nic, learned=(), learned6=()) for nic in vm.nics)
        vm = core.put(core.world.vms, vm, booted=False, nics=nics, powered_at=core.now())
        self._await_boot(vm)


def wrong_state(vm: Vm, what: str) -> Refusal:
    message = f"The VM {vm.name} can't {what} while it is {vm.power}."
    return Refusal(400, message, "", "VM_INVALID_POWER_STATE", "INVALID_REQUEST")


def addresses_of(vm: Vm) -> tuple[str, ...]:
    """Without link-local addresses: they are not reachable."""
    found = [address for nic in vm.nics for address in (nic.address, *nic.learned) if address]
    found += [address for nic in vm.nics for address in nic.learned6 if not IPv6Address(address).is_link_local]
    return tuple(dict.fromkeys(found))


def learned6(prefix: str, mac: str) -> tuple[str, ...]:
    """What a machine makes of a router's announcement and its own MAC, and its address on the link."""
    if not prefix or not mac:
        return ()
    octets = bytes.fromhex(mac.replace(":", ""))
    own = int.from_bytes(bytes([octets[0] ^ 2, *octets[1:3], 0xFF, 0xFE, *octets[3:]]), "big")
    networks = (IPv6Network(prefix), IPv6Network("fe80::/64"))
    return tuple(str(IPv6Address(int(each.network_address) | own)) for each in networks)


def _lacks(core: Core, vm: Vm) -> set[str]:
    """What none of its networks reaches."""
    subnets = [core.world.subnets.get(nic.subnet) for nic in vm.nics if nic.connected]
    missing: list[set[str]] = [set(subnet.lacks) for subnet in subnets if subnet is not None]
    return set.intersection(*missing) if missing else set()


def machine_of(core: Core, vm: Vm, isolated: Collection[str] = ()) -> Machine:
    """`isolated`: what it does not reach, whatever its networks do."""
    boot = next((disk for disk in vm.disks if not disk.cdrom), vm.disks[0] if vm.disks else None)
    image = core.world.images.get(boot.image) if boot is not None else None
    return Machine(
        ext_id=vm.ext_id,
        name=vm.name,
        cluster=vm.cluster,
        image=image.name if image else "",
        image_type=image.type if image else "",
        image_os=image.os if image else "",
        image_network=image.network if image else "bridge",
        image_programs=image.programs if image else (),
        image_without=image.without if image else (),
        lacks=tuple(sorted({*_lacks(core, vm), *isolated})),
        uefi=vm.boot != "LEGACY",
        secure_boot=vm.boot == "SECURE_BOOT",
        vcpus=vm.vcpus,
        memory_bytes=vm.memory_bytes,
        user_data=_decoded(vm.user_data),
        meta_data=_decoded(vm.meta_data),
        addresses=addresses_of(vm),
        macs=tuple(nic.mac for nic in vm.nics),
    )


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text.encode()
