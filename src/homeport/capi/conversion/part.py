"""Rules that several kinds share: status, timeouts of deletions, health checks, rollouts, specs of Machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.capi.conversion.codec import CONTRACT_REF, DURATION, TEMPLATE_REF, TIMEOUTS, Context
from homeport.capi.conversion.rule import ABSENT, Custom, Move, Rule, find, put, take

FAILURE = ("failureReason", "failureMessage")


def status(
    conditions: Mapping[str, str] = {}, *, retired: tuple[str, ...] = (), promoted: tuple[str, ...] = ()
) -> list[Rule]:
    """Conditions and counters of the old kind retire, so that those of the new kind may take their place.

    `conditions`: types of the old kind, and that of the new kind which says the same.
    """
    old = [Move(f"status.{name}", f"status.deprecated.v1beta1.{name}") for name in ("conditions", *retired)]
    new = [Move(f"status.v1beta2.{name}", f"status.{name}") for name in ("conditions", *promoted)]
    return [_conditions(conditions), *old, *new]


def _conditions(types: Mapping[str, str]) -> Rule:
    """Conditions of the old kind, for clients that go by them, where nobody wrote any."""

    def drop(obj: dict[str, Any], _: Context) -> None:
        if find(obj, "status.conditions") == _old_conditions(obj, types):
            take(obj, "status.conditions")

    def derive(obj: dict[str, Any], _: Context) -> None:
        made = _old_conditions(obj, types)
        if made and find(obj, "status.conditions") in (ABSENT, None, []):
            put(obj, "status.conditions", made)

    return Custom(drop, derive)


def _old_conditions(obj: dict[str, Any], types: Mapping[str, str]) -> list[dict[str, Any]]:
    found = find(obj, "status.v1beta2.conditions")
    new = {each.get("type"): each for each in found if isinstance(each, dict)} if isinstance(found, list) else {}
    return [_old_condition(kind, new[source]) for kind, source in types.items() if source in new]


def _old_condition(kind: str, new: Mapping[str, Any]) -> dict[str, Any]:
    """Of the old kind a condition that is True says no more, and one that is False says how bad that is."""
    made = {"type": kind, "status": new.get("status"), "lastTransitionTime": new.get("lastTransitionTime")}
    if new.get("status") == "True":
        return made
    said = {name: new[name] for name in ("reason", "message") if new.get(name)}
    return made | said | ({"severity": "Info"} if new.get("status") == "False" else {})


def counters(*names: str) -> Rule:
    """Counters of the old kind, for clients that go by them, where nobody wrote any. Before `status` in a list."""

    def keep(_: dict[str, Any], __: Context) -> None:
        return

    def derive(obj: dict[str, Any], _: Context) -> None:
        for name in names:
            value = _derived(obj, name)
            if value and not isinstance(find(obj, f"status.{name}"), int):
                put(obj, f"status.{name}", value)

    return Custom(keep, derive)


def _derived(obj: dict[str, Any], name: str) -> int | None:
    """From the new ones, which on the way down stand under `v1beta2` already."""
    replicas = find(obj, "status.replicas")
    if name == "fullyLabeledReplicas":
        return replicas if isinstance(replicas, int) else None
    source = {"updatedReplicas": "upToDateReplicas", "unavailableReplicas": "availableReplicas"}.get(name, name)
    value = find(obj, f"status.v1beta2.{source}")
    if not isinstance(value, int):
        return None
    if name != "unavailableReplicas":
        return value
    return max(0, replicas - value) if isinstance(replicas, int) else None


def deletion(target: str = "deletion") -> list[Rule]:
    return [
        Move(f"node{step}Timeout", f"{target}.node{step}TimeoutSeconds", DURATION)
        for step in ("Drain", "VolumeDetach", "Deletion")
    ]


def health_check(old: str = "", new: str = "") -> list[Rule]:
    trigger = f"{new}remediation.triggerIf"
    return [
        Move(f"{old}nodeStartupTimeout", f"{new}checks.nodeStartupTimeoutSeconds", DURATION),
        Move(f"{old}unhealthyConditions", f"{new}checks.unhealthyNodeConditions", TIMEOUTS),
        Move(f"{old}unhealthyMachineConditions", f"{new}checks.unhealthyMachineConditions", TIMEOUTS),
        Move(f"{old}maxUnhealthy", f"{trigger}.unhealthyLessThanOrEqualTo"),
        Move(f"{old}unhealthyRange", f"{trigger}.unhealthyInRange"),
        Move(f"{old}remediationTemplate", f"{new}remediation.templateRef", TEMPLATE_REF),
    ]


def rollout(max_in_flight: str) -> list[Rule]:
    """Of MachineDeployments and what stands for them in classes and topologies."""
    return [
        Move("strategy.type", "rollout.strategy.type"),
        Move("strategy.rollingUpdate.deletePolicy", "deletion.order"),
        Move("strategy.rollingUpdate", "rollout.strategy.rollingUpdate"),
        Move("strategy.remediation.maxInFlight", max_in_flight),
    ]


MACHINE_SPEC: list[Rule] = [
    Move("bootstrap.configRef", "bootstrap.configRef", CONTRACT_REF),
    Move("infrastructureRef", "infrastructureRef", CONTRACT_REF),
    *deletion(),
]
