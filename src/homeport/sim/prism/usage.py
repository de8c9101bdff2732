"""What machines use of clusters, subnets and projects, kept up to date with every change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from ipaddress import ip_address, ip_network

from homeport.sim.prism.entity import Disk, Subnet, Vm, VolumeGroup, parse_range
from homeport.sim.prism.error import Refusal, exhausted, rejected


class Usage:
    def __init__(self, vms: Iterable[Vm] = (), groups: Iterable[VolumeGroup] = ()) -> None:
        self.memory: Counter[str] = Counter()  # by host, of machines that are on
        self.vcpus: Counter[str] = Counter()
        self.running: Counter[str] = Counter()
        self.storage: Counter[str] = Counter()  # by container
        self.gpus: Counter[str] = Counter()  # by device
        self.by_cluster: Counter[str] = Counter()
        self.by_category: Counter[str] = Counter()
        self.project_vcpus: Counter[str] = Counter()
        self.project_memory: Counter[str] = Counter()
        self.project_storage: Counter[str] = Counter()
        self.macs: set[str] = set()
        self._named: dict[str, dict[str, None]] = {}  # ids of VMs by name, in order
        self._addresses: dict[str, dict[str, str]] = {}  # subnet: address: VM
        self._hints: dict[str, int] = {}
        for vm in vms:
            self.change(None, vm)
        for group in groups:
            self.change_group(None, group)

    def change(self, before: Vm | None, after: Vm | None) -> None:
        if before is not None:
            self._count(before, -1)
        if after is not None:
            self._count(after, 1)

    def change_group(self, before: VolumeGroup | None, after: VolumeGroup | None) -> None:
        for group, sign in ((before, -1), (after, 1)):
            for disk in group.disks if group is not None else ():
                self.storage[disk.container] += sign * disk.size_bytes

    def _count(self, vm: Vm, sign: int) -> None:
        self.by_cluster[vm.cluster] += sign
        named = self._named.setdefault(vm.name, {})
        if sign > 0:
            named[vm.ext_id] = None
        else:
            named.pop(vm.ext_id, None)
            if not named:
                del self._named[vm.name]
        for category in vm.categories:
            self.by_category[category] += sign
        if vm.host:
            self.memory[vm.host] += sign * vm.memory_bytes
            self.vcpus[vm.host] += sign * vm.vcpus
            self.running[vm.host] += sign
        for disk in vm.disks:
            self.storage[disk.container] += sign * stored(disk)
        for gpu in vm.gpus:
            self.gpus[gpu.device] += sign
        self.project_vcpus[vm.project] += sign * vm.vcpus
        self.project_memory[vm.project] += sign * vm.memory_bytes
        self.project_storage[vm.project] += sign * sum(map(stored, vm.disks))
        for nic in vm.nics:
            held = self._addresses.setdefault(nic.subnet, {})
            for address in filter(None, (nic.address, *nic.learned)):
                if sign > 0:
                    held[address] = vm.ext_id
                elif held.get(address) == vm.ext_id:
                    del held[address]
            (self.macs.add if sign > 0 else self.macs.discard)(nic.mac)

    def named(self, name: str) -> tuple[str, ...]:
        return tuple(self._named.get(name, ()))

    def held(self, subnet: str) -> dict[str, str]:
        return self._addresses.get(subnet, {})

    def take_address(self, subnet: Subnet, vm: str, requested: str = "", *, not_these: Iterable[str] = ()) -> str:
        """A free address of the subnet's pools, or the one that was asked for. It is held at once."""
        held = self._addresses.setdefault(subnet.ext_id, {})
        reserved = {each.address for each in subnet.reserved}
        if requested:
            self._check_requested(subnet, requested, held, vm)
            held[requested] = vm
            return requested
        avoided = set(not_these)
        for first, last in self._pools(subnet):
            span = last - first + 1
            # From where the last search ended: addresses are given out in a row, and not used again at once.
            start = self._hints.get(subnet.ext_id, first)
            start = start if first <= start <= last else first
            for step in range(span):
                number = first + (start - first + step) % span
                address = str(ip_address(number))
                if address not in held and address not in reserved and address not in avoided:
                    held[address] = vm
                    self._hints[subnet.ext_id] = number + 1
                    return address
        raise exhausted(f"The subnet {subnet.name} has no free IP address left.", group="NO_FREE_IP_ADDRESS")

    def _pools(self, subnet: Subnet) -> list[tuple[int, int]]:
        texts = subnet.pools or ((subnet.outside,) if subnet.outside else ())
        return [parse_range(text) for text in texts]

    def _check_requested(self, subnet: Subnet, address: str, held: dict[str, str], vm: str) -> None:
        try:
            inside = ip_address(address) in ip_network(subnet.cidr)
        except ValueError as error:
            raise rejected("", f"{address} is not an address of the subnet {subnet.name}.") from error
        if not inside:
            raise rejected("", f"{address} is outside of the subnet {subnet.name} ({subnet.cidr}).")
        network = ip_network(subnet.cidr)
        ends = (str(network.network_address), str(network.broadcast_address))
        if address in (subnet.gateway, subnet.dhcp_server, *ends):
            raise taken(address, subnet)
        if held.get(address, vm) != vm:
            raise taken(address, subnet)

    def free_addresses(self, subnet: Subnet) -> list[tuple[str, int, int]]:
        """Of each pool: its range, how many addresses it has, how many are free."""
        used = set(self.held(subnet.ext_id)) | {each.address for each in subnet.reserved}
        numbers = [int(ip_address(address)) for address in used]
        found = []
        for text in subnet.pools:
            first, last = parse_range(text)
            inside = sum(1 for number in numbers if first <= number <= last)
            found.append((text, last - first + 1, last - first + 1 - inside))
        return found


def stored(disk: Disk) -> int:
    return 0 if disk.volume_group or disk.cdrom else disk.size_bytes


def taken(address: str, subnet: Subnet) -> Refusal:
    return rejected("", f"The IP address {address} of the subnet {subnet.name} is in use.", "IP_ADDRESS_IN_USE")
