"""Checks of what machines print on their consoles while they start."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.api.meta import Unstructured
from homeport.app.doctor.diagnosis import Diagnosis
from homeport.app.doctor.fact import Facts
from homeport.capi.object.joined import has_joined
from homeport.capi.object.summary import conditions_of
from homeport.client.protocol import Key
from homeport.infra.machine.console import read_sign
from homeport.machinery import condition
from homeport.runtime.clock import parse_time

_SILENT_SECONDS = 5.0  # firmware prints something at once
_BOOT_SECONDS = 60.0  # so long a host that is busy may take to start a VM
_ADDRESS_SECONDS = 180.0  # a slow host, a large image and DHCP together
_ADDRESSES = frozenset({"VMAddressesAssigned", "Ready"})  # repeat what the condition of the VM says


def console(facts: Facts) -> Iterator[Diagnosis]:
    """Machines that did not become Nodes, and say why."""
    for machine in facts.of_kind("Machine"):
        key = Key(machine.namespace, machine.name)
        sign = None if _joined(machine) else read_sign(facts.consoles.get(key, ()))
        if sign is not None:
            cure = facts.commands.run("console", machine.name, "-n", machine.namespace)
            yield Diagnosis(sign.cause, "guest", "Machine", str(key), sign.message, cure)


def silent(facts: Facts) -> Iterator[Diagnosis]:
    """A VM that is on, has not joined, and has printed nothing since."""
    for machine in facts.of_kind("Machine"):
        key = Key(machine.namespace, machine.name)
        seconds = _provisioned_seconds(facts, machine)
        if _joined(machine) or key not in facts.consoles or facts.consoles[key] or seconds <= _SILENT_SECONDS:
            continue
        late = seconds > _BOOT_SECONDS
        text = "its VM runs, but prints nothing on its console: the image may not boot, or has no serial console"
        cure = facts.commands.run("console", machine.name, "-n", machine.namespace)
        early = "" if late else ". It may only be too early"
        yield Diagnosis("GuestSilent", "guest", "Machine", str(key), f"{text}{early}", cure, serious=late)


def no_address(facts: Facts) -> Iterator[Diagnosis]:
    """A VM that runs and has no address: soon it will have one, or it never gets one."""
    for each in facts.problems():
        if each.reason == "WaitingForAddress" and not each.borrowed and each.condition not in _ADDRESSES:
            late = each.seconds > _ADDRESS_SECONDS
            cure = facts.commands.run("console", each.object.name, "-n", each.object.namespace)
            text = each.message if late else f"{each.message}. It may only be too early"
            yield Diagnosis("GuestHasNoAddress", "guest", each.kind, each.key, text, cure, serious=late)


def _provisioned_seconds(facts: Facts, machine: Unstructured) -> float:
    """How long its VM has been on; 0 if it is not."""
    found = condition.find(conditions_of(machine), "InfrastructureReady") or {}
    since = str(found.get("lastTransitionTime") or "")
    return facts.now - parse_time(since) if found.get("status") == "True" and since else 0.0


def _joined(machine: Unstructured) -> bool:
    return has_joined((machine.get("status") or {}).get("nodeRef"), conditions_of(machine))


CHECKS = (console, silent, no_address)
