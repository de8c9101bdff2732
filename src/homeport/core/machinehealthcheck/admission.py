"""What a MachineHealthCheck may say, and what is filled in when it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.cluster.v1beta2 import MachineHealthCheck
from homeport.capi import name
from homeport.client.errors import Cause
from homeport.core.machinehealthcheck.budget import parse_range
from homeport.core.machinehealthcheck.check import DEFAULT_STARTUP_SECONDS
from homeport.core.machineset.admission import cluster_causes
from homeport.core.machineset.share import share_trouble
from homeport.machinery.selector import SelectorError, from_label_selector
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]

_SHORTEST_SECONDS = 30
# What health checks say themselves, and what follows from it: to go by these would go round in circles.
_OWN = (
    name.Condition.READY,
    name.Condition.AVAILABLE,
    name.Condition.HEALTH_CHECK_SUCCEEDED,
    name.Condition.OWNER_REMEDIATED,
    name.Condition.EXTERNALLY_REMEDIATED,
)


def register(hooks: Hooks) -> None:
    hooks.add(MachineHealthCheck, default=default, validate=validate)


def default(check: Json, old: Json | None) -> None:
    metadata, spec = check["metadata"], check["spec"]
    labels = metadata["labels"] = metadata.get("labels") or {}
    labels[name.CLUSTER_NAME_LABEL] = str(spec.get("clusterName", ""))
    checks = spec["checks"] = spec.get("checks") or {}
    if checks.get("nodeStartupTimeoutSeconds") is None:
        checks["nodeStartupTimeoutSeconds"] = DEFAULT_STARTUP_SECONDS


def validate(check: Json, old: Json | None) -> list[Cause]:
    spec = check.get("spec") or {}
    return [
        *_selector(spec),
        *cluster_causes(spec, old),
        *_checks(spec.get("checks") or {}),
        *_trigger((spec.get("remediation") or {}).get("triggerIf") or {}),
    ]


def _selector(spec: Json) -> Iterator[Cause]:
    given = spec.get("selector") or {}
    try:
        selector = from_label_selector(given)
    except SelectorError as error:
        yield Cause.invalid("spec.selector", error)
        return
    if selector.empty:
        yield Cause.required("spec.selector", "select the Machines to check")
    other = (given.get("matchLabels") or {}).get(name.CLUSTER_NAME_LABEL)
    if other is not None and other != spec.get("clusterName"):
        yield Cause.invalid(
            "spec.selector", f'"{other}": Machines of another Cluster than spec.clusterName can\'t be checked'
        )


def _checks(checks: Json) -> Iterator[Cause]:
    seconds = checks.get("nodeStartupTimeoutSeconds")
    if isinstance(seconds, int) and 0 < seconds < _SHORTEST_SECONDS:
        yield Cause.invalid(
            "spec.checks.nodeStartupTimeoutSeconds",
            f"{seconds}: must be at least {_SHORTEST_SECONDS}, or 0 for no limit",
        )
    for i, each in enumerate(checks.get("unhealthyMachineConditions") or ()):
        if each.get("type") in _OWN:
            yield Cause.invalid(
                f"spec.checks.unhealthyMachineConditions[{i}].type",
                f'"{each["type"]}": this condition depends on health checks and can\'t be used here',
            )


def _trigger(trigger: Json) -> Iterator[Cause]:
    path = "spec.remediation.triggerIf"
    limit = trigger.get("unhealthyLessThanOrEqualTo")
    wrong = share_trouble(limit) if limit is not None else ""
    if wrong:
        yield Cause.invalid(f"{path}.unhealthyLessThanOrEqualTo", f'"{limit}": {wrong}')
    text = trigger.get("unhealthyInRange")
    if text:
        try:
            parse_range(text)
        except ValueError as error:
            yield Cause.invalid(f"{path}.unhealthyInRange", error)
