"""Addresses that VMs get on their networks: from the DHCP servers of VLANs, and from the network of Pods."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.sim.harvester.world import Vlan
from homeport.sim.network import Exhausted, Pool, Taken

POD_NETWORK = -1  # in place of a VLAN


class Leases:
    """A MAC keeps its address until `free`, over restarts of its VM, too."""

    def __init__(self, vlans: Iterable[Vlan], pod_network: str) -> None:
        self._pools = {each.id: Pool(each.dhcp) for each in vlans if each.trunked and each.dhcp}
        self._pools[POD_NETWORK] = Pool([pod_network])
        self._held: dict[tuple[int, str], str] = {}

    def take(self, vlan: int, mac: str) -> str:
        """'' where no DHCP server answers, or it has nothing left."""
        pool = self._pools.get(vlan)
        if pool is None:
            return ""
        held = self._held.get((vlan, mac))
        if held is None:
            try:
                held = self._held[vlan, mac] = pool.take(mac)
            except Exhausted:
                return ""
        return held

    def change(self, vlan: int, mac: str) -> str:
        """Another address than before; '' if there is none."""
        pool = self._pools.get(vlan)
        if pool is None:
            return ""
        before = self._held.pop((vlan, mac), "")
        try:
            taken = pool.take(f"{mac} next")
        except Exhausted:
            taken = ""
        pool.free(mac)
        pool.free(f"{mac} next")
        if taken and taken != before:
            pool.take(mac, taken)
            self._held[vlan, mac] = taken
            return taken
        return ""

    def claim(self, vlan: int, mac: str, address: str) -> None:
        """What a VM had before the simulator was restarted."""
        pool = self._pools.get(vlan)
        if pool is None or (vlan, mac) in self._held:
            return
        try:
            self._held[vlan, mac] = pool.take(mac, address)
        except Taken:
            return  # somebody else has it by now: the VM gets another at its next boot

    def free(self, mac: str) -> None:
        for vlan, held in [each for each in self._held if each[1] == mac]:
            self._pools[vlan].free(held)
            del self._held[vlan, held]
