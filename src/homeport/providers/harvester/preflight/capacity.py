"""Room on the hosts: what they have, less what the Pods of running VMs and everything else request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from homeport.api.kubevirt.v1alpha1 import MachineSpec
from homeport.api.meta import Unstructured
from homeport.infra.error import Denied, Misconfigured
from homeport.infra.preflight.check import CAPACITY
from homeport.infra.preflight.plan import MachinePlan
from homeport.infra.protocol import Check
from homeport.machinery.quantity import parse_quantity
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.resource import NODE, POD
from homeport.providers.harvester.machine.disk import size_of
from homeport.providers.harvester.machine.plan import capacity_of
from homeport.runtime.cache import labels_of

_SCHEDULABLE = "kubevirt.io/schedulable"
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Room:
    """CPUs and bytes of memory."""

    cpu: Decimal = Decimal(0)
    memory: int = 0


async def check(session: HarvesterSession, plans: Sequence[MachinePlan]) -> list[Check]:
    """Of accounts that may not see hosts or Pods, nothing is known: VMs that find no room report it themselves."""
    wanted = [(plan, await _request(session, plan.template)) for plan in plans if plan.template is not None]
    if not any(room.memory or room.cpu for _, room in wanted):
        return [Check(CAPACITY, True)]
    try:
        free = await free_room(session)
    except Denied:
        return [Check(CAPACITY, True)]
    return [*_check_total(session, wanted, free), *_check_largest(wanted, free)] or [Check(CAPACITY, True)]


def _check_total(
    session: HarvesterSession, wanted: Sequence[tuple[MachinePlan, Room]], free: Mapping[str, Room]
) -> list[Check]:
    memory = sum(room.memory * plan.count for plan, room in wanted)
    cpu = sum((room.cpu * plan.count for plan, room in wanted), Decimal(0))
    there = Room(sum((each.cpu for each in free.values()), Decimal(0)), sum(each.memory for each in free.values()))
    if memory <= there.memory and cpu <= there.cpu:
        return []
    text = (
        f"the {len(free)} hosts of {session.access.server} have {there.memory >> 30} GiB of memory and {there.cpu:.1f} "
        f"CPUs left, but the machines of this cluster request {memory >> 30} GiB and {cpu:.1f} CPUs: stop VMs, add "
        "hosts, or use smaller or fewer machines"
    )
    return [Check(CAPACITY, False, "InsufficientCapacity", text)]


def _check_largest(wanted: Sequence[tuple[MachinePlan, Room]], free: Mapping[str, Room]) -> list[Check]:
    for plan, room in wanted:
        if plan.count and not any(room.memory <= host.memory and room.cpu <= host.cpu for host in free.values()):
            most = max((host.memory for host in free.values()), default=0)
            text = (
                f"{plan.owner}: a machine requests {room.memory >> 30} GiB of memory and {room.cpu:.1f} CPUs, and no "
                f"host has that much left (at most {most >> 30} GiB): use smaller machines"
            )
            return [Check(CAPACITY, False, "InsufficientCapacity", text)]
    return []


async def _request(session: HarvesterSession, template: Any) -> Room:
    """What a VM of this template requests. Harvester divides what it has by the overcommit ratios."""
    shares = await _overcommit(session)
    spec: MachineSpec = template.spec.template.spec
    inner = (spec.virtual_machine_template.spec.get("template") or {}).get("spec") or {}
    if ((inner.get("domain") or {}).get("cpu") or {}).get("dedicatedCpuPlacement"):
        shares = {}
    has = capacity_of(template)
    try:
        memory = size_of(has.get("memory") or "1", "memory")
        cpu = parse_quantity(has.get("cpu") or "0").amount
    except (Misconfigured, ValueError):
        return Room()
    return Room(cpu * 100 / shares.get("cpu", 100), memory * 100 // shares.get("memory", 100))


async def _overcommit(session: HarvesterSession) -> dict[str, int]:
    if not session.harvester:
        return {}
    try:
        found = json.loads(await session.setting("overcommit-config") or "{}")
        return {str(name): int(share) for name, share in found.items() if int(share) > 0}
    except Denied:
        return {"cpu": 1000, "memory": 150}  # Harvester's defaults
    except (ValueError, TypeError, AttributeError):
        return {}


async def free_room(session: HarvesterSession) -> dict[str, Room]:
    """By host. Raises Denied for accounts that may not see hosts or Pods."""
    taken_cpu: Counter[str] = Counter()
    taken_memory: Counter[str] = Counter()
    nodes = [each for each in await session.list(NODE) if _takes_vms(each)]
    for pod in await session.list(POD):
        node = str((pod.get("spec") or {}).get("nodeName") or "")
        if node and (pod.get("status") or {}).get("phase") not in _ENDED:
            cpu, memory = _requests(pod)
            taken_cpu[node] += int(cpu * 1000)
            taken_memory[node] += memory
    free = {}
    for each in nodes:
        has = (each.get("status") or {}).get("allocatable") or {}
        cpu = parse_quantity(has.get("cpu") or "0").amount - Decimal(taken_cpu[each.name]) / 1000
        memory = int(parse_quantity(has.get("memory") or "0").amount) - taken_memory[each.name]
        free[each.name] = Room(max(cpu, Decimal(0)), max(memory, 0))
    return free


async def total_memory(session: HarvesterSession) -> int:
    """Bytes, of all hosts that take VMs."""
    nodes = [each for each in await session.list(NODE) if _takes_vms(each)]
    held = [((each.get("status") or {}).get("allocatable") or {}).get("memory") or "0" for each in nodes]
    return sum(int(parse_quantity(each).amount) for each in held)


def _takes_vms(node: Unstructured) -> bool:
    return not (node.get("spec") or {}).get("unschedulable") and labels_of(node).get(_SCHEDULABLE) != "false"


def _requests(pod: Unstructured) -> tuple[Decimal, int]:
    cpu, memory = Decimal(0), 0
    for container in (pod.get("spec") or {}).get("containers") or ():
        asked = (container.get("resources") or {}).get("requests") or {}
        cpu += parse_quantity(asked.get("cpu") or "0").amount
        memory += int(parse_quantity(asked.get("memory") or "0").amount)
    return cpu, memory
