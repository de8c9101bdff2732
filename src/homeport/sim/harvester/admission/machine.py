"""How Harvester rewrites a VirtualMachine: what it asks of its node, its guest memory, CPU, affinity, grace period and
MAC addresses. Whoever compares a VM with the manifest that it was made from meets these."""

from __future__ import annotations

from typing import Any

import orjson

from homeport.apiserver.verb.admission import CREATE, Attributes
from homeport.client.errors import not_found
from homeport.machinery.quantity import Quantity, QuantityError, parse_quantity
from homeport.sim.harvester.admission.refusal import unchangeable
from homeport.sim.harvester.controller.machine import MAC_ADDRESSES, RUN_STRATEGY
from homeport.sim.harvester.controller.run import run_strategy
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import NAD, VM, Json
from homeport.sim.harvester.manifest import NETWORK_GROUP
from homeport.sim.harvester.object import labels, leaving, notes

BY_MAC = "mac"  # index of VMs
RESERVED_MEMORY = "harvesterhci.io/reservedMemory"
HOTPLUG = "harvesterhci.io/enableCPUAndMemoryHotplug"
_MIB = 1024**2
_LEAST_MEMORY = 10 * _MIB
_QEMU_MEMORY = 100 * _MIB


class MachineChanges:
    def __init__(self, core: Core) -> None:
        self._core = core

    def mutate(self, attributes: Attributes) -> None:
        vm, old = attributes.object, attributes.old
        if vm is None or leaving(vm) or "template" not in vm.get("spec", {}):
            return
        if attributes.operation == CREATE or old is None or _asks_otherwise(old, vm):
            self._set_resources(vm)
        _set_cpu(vm)
        if old is not None and "running" not in vm["spec"]:
            if run_strategy(old) == "Halted" and run_strategy(vm) != "Halted":
                # KubeVirt's start always asks for Always; Harvester goes back to what the VM had.
                vm["spec"]["runStrategy"] = notes(vm).get(RUN_STRATEGY) or "RerunOnFailure"
        self._set_affinity(vm)
        self._set_grace(vm)
        self._set_macs(vm)

    # -- resources ---------------------------------------------------------------------------------------------------

    def _set_resources(self, vm: Json) -> None:
        overcommit = orjson.loads(self._core.setting("overcommit-config") or "null")
        if not overcommit:
            return
        domain = _domain(vm)
        limits = (domain.get("resources") or {}).get("limits") or {}
        dedicated = bool((domain.get("cpu") or {}).get("dedicatedCpuPlacement"))
        if cpu := limits.get("cpu"):
            amount = parse_quantity(str(cpu))
            milli = int(amount.amount * 1000)
            milli = milli if dedicated else milli * 100 // int(overcommit["cpu"])
            _requests(domain)["cpu"] = str(Quantity(milli, amount.form) if milli == 0 else _milli(milli))
        if memory := limits.get("memory"):
            self._set_memory(vm, parse_quantity(str(memory)), int(overcommit["memory"]), dedicated)

    def _set_memory(self, vm: Json, limit: Quantity, overcommit: int, dedicated: bool) -> None:
        domain = _domain(vm)
        requested = Quantity(limit.value * 100 // overcommit // _MIB * _MIB, limit.form)
        hotplug = notes(vm).get(HOTPLUG) == "true"
        memory = domain.get("memory") or {}
        guest = parse_quantity(str(memory["guest"])) if hotplug and memory.get("guest") else limit
        guest = Quantity(guest.value - self._reserved(vm, limit), guest.form)
        if guest.value < _LEAST_MEMORY:
            raise unchangeable(
                f"guest memory is under the minimum requirement (10 Mi), original: {limit.value}, final: {guest.value}"
            )
        devices = domain.get("devices") or {}
        if dedicated:
            requested = limit
        elif devices.get("hostDevices") or devices.get("gpus"):
            requested = guest
        _requests(domain)["memory"] = str(requested)
        if not hotplug or not domain.get("memory"):
            domain["memory"] = {**memory, "guest": str(guest)}
        if not hotplug:
            cpu = domain.setdefault("cpu", {})
            cpu["maxSockets"] = cpu.get("sockets") or 1

    def _reserved(self, vm: Json, limit: Quantity) -> int:
        """For QEMU, out of the VM's memory: what the VM says, or 100 Mi where no ratio is set."""
        if text := notes(vm).get(RESERVED_MEMORY):
            try:
                reserved = parse_quantity(text).value
            except QuantityError:
                raise unchangeable(f"annotation {text} can't be converted to memory unit") from None
            if reserved >= limit.value:
                raise unchangeable(
                    f"reservedMemory can't be equal or greater than limits.memory  {reserved} {limit.value}"
                )
            return reserved
        return 0 if self._core.setting("additional-guest-memory-overhead-ratio") else _QEMU_MEMORY

    # -- placement ---------------------------------------------------------------------------------------------------

    def _set_affinity(self, vm: Json) -> None:
        """A VM runs where its networks are. Terms that an earlier pass added are worked out again."""
        spec = vm["spec"]["template"]["spec"]
        affinity: dict[str, Any] = {**(spec.get("affinity") or {})}
        node = {**(affinity.get("nodeAffinity") or {})}
        field = "requiredDuringSchedulingIgnoredDuringExecution"
        terms = _without_networks((node.get(field) or {}).get("nodeSelectorTerms") or [])
        for wanted in self._required(vm):
            terms = terms or [{"matchExpressions": []}]
            for term in terms:
                if wanted not in term["matchExpressions"]:
                    term["matchExpressions"].append(wanted)
        node.pop(field, None)
        if terms:
            node[field] = {"nodeSelectorTerms": terms}
        affinity.pop("nodeAffinity", None)
        if node:
            affinity["nodeAffinity"] = node
        spec["affinity"] = affinity

    def _required(self, vm: Json) -> list[Json]:
        found: list[Json] = []
        for network in vm["spec"]["template"]["spec"].get("networks") or ():
            named = (network.get("multus") or {}).get("networkName", "")
            if named and (cluster_network := self._cluster_network(vm, named)):
                wanted = {"key": f"{NETWORK_GROUP}/{cluster_network}", "operator": "In", "values": ["true"]}
                if wanted not in found:
                    found.append(wanted)
        if (_domain(vm).get("cpu") or {}).get("dedicatedCpuPlacement"):
            found.append({"key": "cpumanager", "operator": "In", "values": ["true"]})
        return found

    def _cluster_network(self, vm: Json, named: str) -> str:
        if named.count("/") > 1:
            raise unchangeable(f"invalid network name {named}")
        key = named if "/" in named else f"{vm['metadata'].get('namespace', '')}/{named}"
        found = self._core.mirror.get(NAD, key)
        if found is None:
            raise unchangeable(str(not_found(NAD.group, NAD.plural, key.rpartition("/")[2])))
        return labels(found).get(f"{NETWORK_GROUP}/clusternetwork", "")

    # -- the rest ----------------------------------------------------------------------------------------------------

    def _set_grace(self, vm: Json) -> None:
        spec = vm["spec"]["template"]["spec"]
        value = self._core.setting("default-vm-termination-grace-period-seconds")
        if spec.get("terminationGracePeriodSeconds") is None and value:
            spec["terminationGracePeriodSeconds"] = int(value)

    def _set_macs(self, vm: Json) -> None:
        try:
            known = orjson.loads(notes(vm).get(MAC_ADDRESSES) or "{}")
        except orjson.JSONDecodeError:
            known = {}
        for interface in (_domain(vm).get("devices") or {}).get("interfaces") or ():
            if not interface.get("macAddress") and interface.get("name") not in known:
                interface["macAddress"] = self._mac()

    def _mac(self) -> str:
        """Locally administered, for one receiver."""
        while True:
            octets = bytearray(self._core.rng.randbytes(6))
            octets[0] = (octets[0] | 0x02) & 0xFE
            made = ":".join(f"{octet:02x}" for octet in octets)
            if not self._core.mirror.by(VM, BY_MAC, made):
                return made


def _domain(vm: Json) -> Json:
    domain: Json = vm["spec"]["template"]["spec"].setdefault("domain", {})
    return domain


def _requests(domain: Json) -> Json:
    requests: Json = domain.setdefault("resources", {}).setdefault("requests", {})
    return requests


def _milli(amount: int) -> str:
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def _set_cpu(vm: Json) -> None:
    cpu = _domain(vm).setdefault("cpu", {})
    for field in ("cores", "sockets", "threads"):
        if not cpu.get(field):
            cpu[field] = 1


def _asks_otherwise(old: Json, new: Json) -> bool:
    """Whether something changed that the requests are worked out from."""
    before, after = _domain(old), _domain(new)
    limits = [(each.get("resources") or {}).get("limits") or {} for each in (before, after)]
    for name in ("cpu", "memory"):
        value = limits[1].get(name)
        if value and (name not in limits[0] or parse_quantity(str(value)) != parse_quantity(str(limits[0][name]))):
            return True
    dedicated = [bool((each.get("cpu") or {}).get("dedicatedCpuPlacement")) for each in (before, after)]
    return notes(old).get(RESERVED_MEMORY) != notes(new).get(RESERVED_MEMORY) or dedicated[0] != dedicated[1]


def _without_networks(terms: list[Json]) -> list[Json]:
    kept = []
    for term in terms:
        expressions = [
            each
            for each in term.get("matchExpressions") or ()
            if not each["key"].startswith(NETWORK_GROUP) and each["key"] != "cpumanager"
        ]
        if expressions:
            kept.append({**term, "matchExpressions": expressions})
    return kept
