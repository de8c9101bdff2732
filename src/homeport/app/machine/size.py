"""What machines ask of their provider, and what their Nodes have. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from homeport.machinery.quantity import parse_quantity

_GIB = 1024**3


class Size(msgspec.Struct, frozen=True, rename="camel"):
    """Of one machine, or the sum of several. Memory and disk in bytes; 0: unknown."""

    cpus: float = 0.0
    memory_bytes: int = 0
    disk_bytes: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.cpus + other.cpus, self.memory_bytes + other.memory_bytes, self.disk_bytes + other.disk_bytes)


def size_of(infra: Mapping[str, Any]) -> Size:
    """By the spec of a NutanixMachine or KubevirtMachine."""
    spec = infra.get("spec") or {}
    if infra.get("kind") == "NutanixMachine":
        cpus = int(spec.get("vcpuSockets") or 1) * int(spec.get("vcpusPerSocket") or 1)
        return Size(cpus, _bytes(spec.get("memorySize")), _bytes(spec.get("systemDiskSize")))
    template = (spec.get("virtualMachineTemplate") or {}).get("spec") or {}
    domain = ((template.get("template") or {}).get("spec") or {}).get("domain") or {}
    cores = domain.get("cpu") or {}
    limits = (domain.get("resources") or {}).get("limits") or (domain.get("resources") or {}).get("requests") or {}
    memory = (domain.get("memory") or {}).get("guest") or limits.get("memory")
    claims = [each.get("spec") or {} for each in template.get("dataVolumeTemplates") or ()]
    disks = [
        ((each.get("pvc") or each.get("storage") or {}).get("resources") or {}).get("requests") or {} for each in claims
    ]
    return Size(
        int(cores.get("cores") or 1) * int(cores.get("sockets") or 1) * int(cores.get("threads") or 1) if cores else 0,
        _bytes(memory),
        sum(_bytes(each.get("storage")) for each in disks),
    )


def total(sizes: Iterable[Size]) -> Size:
    return sum(sizes, Size())


def shown(count: int) -> str:
    return f"{count / _GIB:.0f}Gi" if count else "-"


def _bytes(quantity: object) -> int:
    if not quantity:
        return 0
    try:
        return parse_quantity(str(quantity)).value
    except ValueError:
        return 0
