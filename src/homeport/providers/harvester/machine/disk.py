"""Volumes that a template names, and sizes of disks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured
from homeport.machinery.quantity import parse_quantity
from homeport.providers.harvester.infracluster.resource import (
    CLAIM_TEMPLATES,
)

Json = dict[str, Any]


def prefix_data_volumes(spec: Json, name: str, own: Mapping[str, str]) -> None:
    """A template is for many machines: each gets volumes of its own."""
    renamed = {}
    for each in spec.get("dataVolumeTemplates") or ():
        meta = each.setdefault("metadata", {})
        before = str(meta.get("name") or "")
        renamed[before] = meta["name"] = f"{name}-{before}"
        meta["labels"] = {**(meta.get("labels") or {}), **own}
    for volume in ((spec.get("template") or {}).get("spec") or {}).get("volumes") or ():
        for source, field_ in (("dataVolume", "name"), ("persistentVolumeClaim", "claimName")):
            used = volume.get(source) or {}
            if used.get(field_) in renamed:
                used[field_] = renamed[used[field_]]


def claim_templates(metadata: Mapping[str, Any], key: Key, inner: Json, own: Mapping[str, str]) -> list[Json]:
    """Those that the user wrote into Harvester's annotation, one of each for this machine."""
    text = (metadata.get("annotations") or {}).get(CLAIM_TEMPLATES)
    claims: list[Json] = parse_claim_templates(text) if text else []
    renamed = {}
    for each in claims:
        meta = each.setdefault("metadata", {})
        before = meta["name"]
        renamed[before] = meta["name"] = f"{key.name}-{before}"
        meta["labels"] = {**(meta.get("labels") or {}), **own}
    for volume in inner.get("volumes") or ():
        used = volume.get("persistentVolumeClaim") or {}
        if used.get("claimName") in renamed:
            used["claimName"] = renamed[used["claimName"]]
    return claims


def parse_claim_templates(text: str) -> list[Json]:
    where = f"virtualMachineTemplate.metadata.annotations[{CLAIM_TEMPLATES}]"
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Misconfigured(f"{where}: is not valid JSON: {error}") from None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Misconfigured(f"{where}: must be a list of PersistentVolumeClaims")
    for number, each in enumerate(found):
        if not (each.get("metadata") or {}).get("name"):
            raise Misconfigured(f"{where}: entry {number} has no metadata.name")
    return found


def size_of(text: str | int, where: str) -> int:
    try:
        size = int(parse_quantity(text).amount)
    except ValueError:
        raise Misconfigured(f"{where}: {text!r} is not a valid quantity: expected for example 40Gi") from None
    if size <= 0:
        raise Misconfigured(f"{where}: must be more than zero")
    return size
