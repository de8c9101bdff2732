"""A VirtualMachine and its instance, as the infrastructure cluster reports them, in the terms of a provider."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Unstructured
from homeport.capi.cloud import Address
from homeport.capi.family import Family, canonical, in_order, reachable
from homeport.infra.error import Exhausted
from homeport.infra.machine.driver import CREATING
from homeport.infra.protocol import Power
from homeport.machinery import condition
from homeport.runtime.outcome import Wait

HARVESTER = "harvester://"
KUBEVIRT = "kubevirt://"
_QUOTA = "harvesterhci.io/insufficient-resource-quota"
_ENDED = ("Succeeded", "Failed")
PROVISIONED, STOPPED = "VMProvisioned", "VMStopped"
_FAILED_VOLUMES = {"Failed": "DVFailed", "Pending": "DVPending"}


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is of a machine. `vmi` is None while it does not run."""

    vm: Unstructured
    vmi: Unstructured | None = None


def machine_of(vm: Unstructured, vmi: Unstructured | None) -> Machine:
    """An instance of an older VM of the same name, which has not gone yet, is not this one's."""
    owners = {each.get("uid") for each in vmi.metadata.get("ownerReferences") or ()} if vmi is not None else set()
    return Machine(vm, vmi if vm.uid in owners else None)


def vm_id(provider_id: str) -> str:
    """The VM's UID in a provider id; '' where it has none, as in those of upstream (`kubevirt://<name>`)."""
    candidate = provider_id.rpartition("/")[2]
    try:
        uuid.UUID(candidate)
    except ValueError:
        return ""
    return candidate


def power_of(machine: Machine) -> Power:
    if machine.vmi is None:
        return "off" if _stays_off(machine.vm) else "changing"
    match phase_of(machine.vmi):
        case "Running":
            return "on"
        case "Unknown":
            return "unknown"
        case phase if phase in _ENDED:
            return "off" if _stays_off(machine.vm, phase) else "changing"
        case _:
            return "changing"


def phase_of(vmi: Mapping[str, Any]) -> str:
    return str((vmi.get("status") or {}).get("phase") or "")


def _stays_off(vm: Unstructured, phase: str = "") -> bool:
    """Whether KubeVirt leaves it off. Of strategies that start it again, it is only a matter of time."""
    strategy = run_strategy(vm)
    if strategy in ("Halted", "Once"):
        return strategy == "Halted" or bool(phase)
    if strategy == "Manual":
        return str((vm.get("status") or {}).get("printableStatus") or "") == "Stopped"
    return strategy == "RerunOnFailure" and phase == "Succeeded"


def run_strategy(vm: Mapping[str, Any]) -> str:
    spec = vm.get("spec") or {}
    if "running" in spec and "runStrategy" not in spec:
        return "Always" if spec["running"] else "Halted"
    return str(spec.get("runStrategy") or "Always")


# -- addresses -------------------------------------------------------------------------------------------------------


def addresses_of(machine: Machine, *, virtual: str, first: Family) -> list[str]:
    """Of the networks in the VM's spec, in their order: what else the guest reports is internal to it."""
    if machine.vmi is None:
        return []
    reported: dict[str, list[str]] = {}
    for each in (machine.vmi.get("status") or {}).get("interfaces") or ():
        reported.setdefault(str(each.get("name") or ""), []).extend(_addresses(each))
    named = [str(each.get("name")) for each in _inner(machine.vmi).get("networks") or ()]
    found = [text for name in named or [each for each in reported if each] for text in reported.get(name, ())]
    own = [each for each in reachable(found) if canonical(each) != canonical(virtual)]
    return in_order(own, first)


def _addresses(interface: Mapping[str, Any]) -> Iterator[str]:
    listed = [str(each) for each in interface.get("ipAddresses") or ()]
    one = str(interface.get("ipAddress") or "")
    for each in dict.fromkeys([one, *listed]):
        if each:
            yield each.partition("/")[0]


def reported_addresses(vmi: Mapping[str, Any]) -> list[str]:
    """Of all interfaces, those that are internal to the guest included."""
    interfaces = (vmi.get("status") or {}).get("interfaces") or ()
    return [text for each in interfaces for text in _addresses(each)]


def rendered(addresses: Sequence[str], name: str) -> tuple[Address, ...]:
    if not addresses:
        return ()
    return (
        *(Address("InternalIP", each) for each in addresses),
        Address("Hostname", name),
        Address("InternalDNS", name),
    )


def _inner(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = obj.get("spec") or {}
    return found


def network_names(vm: Mapping[str, Any]) -> list[str]:
    """Of the networks outside the Pod network, as `namespace/name`."""
    inner = ((vm.get("spec") or {}).get("template") or {}).get("spec") or {}
    found = [(each.get("multus") or {}).get("networkName") for each in inner.get("networks") or ()]
    return [str(each) for each in found if each]


def conditions_of(obj: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ((obj.get("status") or {}).get("conditions") or []) if obj is not None else []
    return found


# -- why it does not run ---------------------------------------------------------------------------------------------


def why_not_running(machine: Machine, volumes: Sequence[Unstructured]) -> Wait:
    """Raises Exhausted where there is no room. `volumes`: its DataVolumes."""
    vm, status = machine.vm, machine.vm.get("status") or {}
    name, shown = f"VM {vm.namespace}/{vm.name}", str(status.get("printableStatus") or "")
    quota = (vm.metadata.get("annotations") or {}).get(_QUOTA)
    if quota:
        raise Exhausted(f"{name} was stopped by a resource quota: {quota}")
    conditions = conditions_of(vm)
    if shown == "ErrorPvcNotFound":  # KubeVirt calls it unschedulable as well
        found = condition.find(conditions, "Synchronized") or condition.find(conditions_of(machine.vmi), "Synchronized")
        said = str((found or {}).get("message") or "")
        text = f"{name}: a PersistentVolumeClaim of it does not exist{f': {said}' if said else ''}"
        return Wait("VMNotReady", text, 30.0, warning=True)
    scheduled = condition.find(conditions, "PodScheduled")
    if shown == "ErrorUnschedulable" or (scheduled is not None and scheduled.get("reason") == "Unschedulable"):
        said = str((scheduled or {}).get("message") or "no host has room for it")
        raise Exhausted(f"{name} can't be placed on a host: {said}")
    for volume in volumes:
        wait = _volume_wait(name, volume)
        if wait is not None:
            return wait
    synchronized = condition.find(conditions_of(machine.vmi), "Synchronized")
    if synchronized is not None and synchronized.get("status") == "False":
        return Wait("VMNotReady", f"{name}: {synchronized.get('message') or 'not synchronized'}", 30.0, warning=True)
    failed = condition.find(conditions, "Failure")
    if failed is not None and failed.get("status") == "True":
        return Wait("VMNotReady", f"{name}: {failed.get('message') or shown}", 30.0, warning=True)
    if shown == "CrashLoopBackOff" or (machine.vmi is not None and phase_of(machine.vmi) in _ENDED):
        return Wait(STOPPED, f"{name} has stopped soon after its start: look at its console", after=30.0, warning=True)
    return Wait(CREATING, f"{name} is being created ({shown or 'no status yet'})", after=30.0)


def _volume_wait(name: str, volume: Unstructured) -> Wait | None:
    status = volume.get("status") or {}
    phase = str(status.get("phase") or "")
    if phase in ("Succeeded", ""):
        return None
    running = condition.find(status.get("conditions") or [], "Running") or {}
    said = str(running.get("message") or "")
    reason = (
        "DVImagePullFailed" if running.get("reason") == "ImagePullFailed" else _FAILED_VOLUMES.get(phase, "DVNotReady")
    )
    text = f"{name}: DataVolume {volume.name} is {phase}" + (f": {said}" if said else "")
    return Wait(reason, text, after=30.0, warning=reason in ("DVFailed", "DVImagePullFailed"))
