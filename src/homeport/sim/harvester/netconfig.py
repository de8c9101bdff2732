"""Network data of cloud-init, in version 1 or 2: which addresses a guest gives itself."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_interface
from typing import Any

from homeport.sim.machine import yaml


def static_addresses(raw: bytes, macs: Sequence[str]) -> dict[str, list[str]]:
    """By MAC. An entry that names no MAC is for the interface at its place; one without addresses asks DHCP."""
    try:
        document = yaml.load(raw.decode("utf-8", "replace")) if raw.strip() else {}
    except yaml.YAMLError:
        return {}
    if isinstance(document, dict) and isinstance(document.get("network"), dict):
        document = document["network"]
    if not isinstance(document, dict):
        return {}
    entries = _version2(document) if "ethernets" in document else _version1(document)
    found: dict[str, list[str]] = {}
    for number, (mac, addresses) in enumerate(entries):
        at = mac or (macs[number] if number < len(macs) else "")
        if at and addresses:
            found.setdefault(at, []).extend(addresses)
    return found


def _version2(document: dict[str, Any]) -> list[tuple[str, list[str]]]:
    found = []
    for entry in (document.get("ethernets") or {}).values():
        entry = entry if isinstance(entry, dict) else {}
        mac = str((entry.get("match") or {}).get("macaddress") or "").lower()
        addresses = [each if isinstance(each, str) else next(iter(each), "") for each in entry.get("addresses") or ()]
        found.append((mac, _bare(addresses)))
    return found


def _version1(document: dict[str, Any]) -> list[tuple[str, list[str]]]:
    found = []
    for entry in document.get("config") or ():
        if not isinstance(entry, dict) or entry.get("type") != "physical":
            continue
        addresses = [str(each.get("address", "")) for each in entry.get("subnets") or () if isinstance(each, dict)]
        found.append((str(entry.get("mac_address") or "").lower(), _bare(addresses)))
    return found


def _bare(addresses: Sequence[str]) -> list[str]:
    found = []
    for each in addresses:
        try:
            found.append(str(ip_interface(each).ip))
        except ValueError:
            continue  # the guest can't use it either
    return found
