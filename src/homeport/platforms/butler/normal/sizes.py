"""Sizes of machines: quantities, MiB and GiB as whole numbers."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.butler.v1alpha1.part import ExtraDisk
from homeport.machinery.quantity import QuantityError, parse_quantity
from homeport.platforms.butler.normal.outcome import Reading

MIB = 2**20
GIB = 2**30
MIN_MEMORY = 2**30
MIN_DISK = 10 * 2**30
# No hypervisor that is supported has larger machines: what is above is a slip, or meant to harm.
MAX_CPU = 512
MAX_MEMORY = 16 * 2**40
MAX_DISK = 64 * 2**40
MAX_POOL = 1000  # machines of one pool
MAX_NODES = 5000  # of one cluster, as Kubernetes supports

# Built-in sizes of workers, as the guides have them.
WORKER_CPU = 4
WORKER_MEMORY = "8Gi"
WORKER_DISK = "40Gi"


def amount(text: str | int) -> object:
    """For comparing two spellings: equal amounts are equal, and what is no quantity is only equal to itself."""
    try:
        return parse_quantity(text)
    except QuantityError:
        return text


def either_amount(reading: Reading, *spellings: tuple[str, str | int]) -> str | int:
    """A quantity that has several spellings; '' if none is given."""
    return reading.either(*spellings, same=amount) or ""


def read_bytes(reading: Reading, path: str, text: str | int, least: int, most: int) -> int:
    """A number of bytes; 0 with a fault."""
    try:
        found = parse_quantity(text).value
    except QuantityError:
        reading.fault(path, f'"{text}" is not a quantity: write for example 16Gi')
        return 0
    if found < least:
        hint = f": did you mean {text}Gi?" if str(text).isdigit() and int(text) < 4096 else ""
        reading.fault(path, f"{text} is below the minimum of {least // GIB}Gi{hint}")
        return 0
    if found > most:
        reading.fault(path, f"{text} is above the maximum of {most // 2**40}Ti")
        return 0
    return found


def memory_mib(reading: Reading, path: str, text: str | int) -> int:
    return -(-read_bytes(reading, path, text, MIN_MEMORY, MAX_MEMORY) // MIB)


def disk_gib(reading: Reading, path: str, text: str | int) -> int:
    return -(-read_bytes(reading, path, text, MIN_DISK, MAX_DISK) // GIB)


def check_extra_disks(reading: Reading, path: str, disks: Sequence[ExtraDisk]) -> None:
    for index, each in enumerate(disks):
        if each.size_gb * GIB > MAX_DISK:
            reading.fault(f"{path}[{index}].sizeGB", f"{each.size_gb} is above the maximum of {MAX_DISK // GIB}")


def check_most(reading: Reading, path: str, number: int, most: int, what: str) -> None:
    if number > most:
        reading.fault(path, f"{number} is above the maximum of {most} {what}")


def from_mib(number: int | None) -> str | int:
    return "" if number is None else f"{number}Mi"


def from_gib(number: int | None) -> str | int:
    return "" if number is None else f"{number}Gi"
