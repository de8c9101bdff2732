"""What values must be that a JSON schema does not tell: hosts, labels, networks, sizes, shares. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_network

from homeport.capi.family import is_host
from homeport.machinery.quantity import compare
from homeport.machinery.schema.name import label_key, label_value
from homeport.platforms.k0rdent.cluster.reading import FLOORS, Reading

_SHARE = re.compile(r"\d{1,9}|(100|\d{1,2})%")


def check_host(reading: Reading, path: str) -> None:
    found = reading.at(path, "")
    if found and not is_host(found):
        reading.fault(path, f"{found!r} is not an IP address or host name")


def check_sizes(reading: Reading, roles: Iterable[str]) -> None:
    """Also those that another value replaces: they count as soon as that one is removed."""
    for path in (f"{role}.{name}" for role in ("machineDefaults", *roles) for name in FLOORS):
        found = reading.at(path, "")
        try:
            if found:
                compare(found, "0")
        except ValueError:
            reading.fault(path, f"{found!r} is not a valid quantity: expected for example 4Gi")


def check_labels(reading: Reading, path: str) -> None:
    for key, value in (reading.at(path) or {}).items():
        for why in label_key(key)[:1]:
            reading.fault(f"{path}.{key}", f"is not a valid key of a label: {why}")
        for why in label_value(value or "")[:1]:
            reading.fault(f"{path}.{key}", f"{value!r} is not a valid value of a label: {why}")


def check_overlap(reading: Reading, networks: Mapping[str, Iterable[str]]) -> None:
    """`networks`: by the path that they are written at. Pods and Services can't share addresses."""
    (_, first), (path, second) = networks.items()
    for one in first:
        for other in second:
            if _overlap(one, other):
                reading.fault(path, f"{other} overlaps with {one}, the network of the Pods")


def _overlap(one: str, other: str) -> bool:
    try:
        left, right = ip_network(one), ip_network(other)
    except ValueError:  # reported before
        return False
    return left.version == right.version and left.overlaps(right)


def check_share(reading: Reading, path: str) -> None:
    found = reading.at(path, "")
    if found and _SHARE.fullmatch(found) is None:
        reading.fault(path, f"{found!r} is not a number or percentage: expected for example 2 or 40%")
