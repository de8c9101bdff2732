"""What control plane and workers may say of their machines, in a class and in a Cluster made from it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from homeport.capi import name
from homeport.client.errors import Cause
from homeport.core.machine.admission import taint_causes
from homeport.core.machinehealthcheck.budget import parse_range
from homeport.core.machineset.share import rolling_causes, share_causes
from homeport.machinery.schema.name import label_key, label_value

Json = dict[str, Any]

_SHORTEST_SECONDS = 30
WORKERS = ("machineDeployments", "machinePools")  # the lists under `workers`, in a class and in a topology
AUTOSCALED = (name.AUTOSCALER_MIN_SIZE, name.AUTOSCALER_MAX_SIZE)


def part_causes(part: Json, path: str, *, worker: bool) -> Iterator[Cause]:
    """Metadata, taints, rollout and health check of one part."""
    yield from _metadata(part.get("metadata") or {}, f"{path}.metadata")
    yield from taint_causes(part, path, worker=worker)
    strategy = ((part.get("rollout") or {}).get("strategy")) or {}
    yield from rolling_causes(strategy.get("rollingUpdate") or {}, f"{path}.rollout.strategy.rollingUpdate")
    if has_check(part):
        yield from _check(part["healthCheck"], f"{path}.healthCheck")


def has_check(part: Mapping[str, Any]) -> bool:
    """A health check is defined here: to switch it on or off is not enough."""
    held = part.get("healthCheck") or {}
    return bool(held.get("checks") or held.get("remediation"))


def is_autoscaled(part: Mapping[str, Any]) -> bool:
    """Somebody else counts its replicas."""
    annotations = (part.get("metadata") or {}).get("annotations") or {}
    return any(key in annotations for key in AUTOSCALED)


def _metadata(metadata: Json, path: str) -> Iterator[Cause]:
    for key, value in (metadata.get("labels") or {}).items():
        for wrong in (*label_key(key), *label_value(value)):
            yield Cause.invalid(f"{path}.labels", f'"{key}": {wrong}')
    for key in metadata.get("annotations") or {}:
        for wrong in label_key(key.lower()):
            yield Cause.invalid(f"{path}.annotations", f'"{key}": {wrong}')


def _check(held: Json, path: str) -> Iterator[Cause]:
    seconds = (held.get("checks") or {}).get("nodeStartupTimeoutSeconds")
    if isinstance(seconds, int) and 0 < seconds < _SHORTEST_SECONDS:
        yield Cause.invalid(
            f"{path}.checks.nodeStartupTimeoutSeconds",
            f"{seconds}: must be at least {_SHORTEST_SECONDS}, or 0 for no limit",
        )
    remediation = held.get("remediation") or {}
    trigger = remediation.get("triggerIf") or {}
    yield from share_causes(remediation, f"{path}.remediation", "maxInFlight")
    yield from share_causes(trigger, f"{path}.remediation.triggerIf", "unhealthyLessThanOrEqualTo")
    if trigger.get("unhealthyInRange"):
        try:
            parse_range(trigger["unhealthyInRange"])
        except ValueError as error:
            where = f"{path}.remediation.triggerIf.unhealthyInRange"
            yield Cause.invalid(where, error)
