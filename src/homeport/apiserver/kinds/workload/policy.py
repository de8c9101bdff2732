"""PodDisruptionBudget, PriorityClass and Lease."""

from __future__ import annotations

from homeport.apiserver.kinds.check import (
    Struct,
    at_most_all,
    forbidden,
    immutable,
    invalid,
    label_selector,
    not_negative,
    one_of,
    share,
    unsupported,
)
from homeport.apiserver.kinds.strategy import Plain, WithStatus
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


class PodDisruptionBudget(WithStatus):
    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj.get("spec") or {}
        causes: list[Cause] = []
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if least is not None and most is not None:
            shown = Struct(
                MinAvailable=least,
                Selector=spec.get("selector"),
                MaxUnavailable=most,
                UnhealthyPodEvictionPolicy=spec.get("unhealthyPodEvictionPolicy"),
            )
            causes.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
        for field, value in (("minAvailable", least), ("maxUnavailable", most)):
            causes += share(f"spec.{field}", value)
            causes += at_most_all(f"spec.{field}", value)
        causes += label_selector("spec.selector", spec.get("selector"))
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
            choices = ("AlwaysAllow", "IfHealthyBudget")
            causes.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, choices))
        return causes


class PriorityClass(Plain):
    def default(self, obj: Json) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes: list[Cause] = []
        name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
        if name.startswith("system-"):
            known = SYSTEM_PRIORITIES.get(name)
            if known is None or known != value:
                wrong = "is not a known system priority class" if known is None else f"value must be {known}"
                detail = "priority class names with 'system-' prefix are reserved for system use only. error: "
                causes.append(forbidden("metadata.name", f"{detail}{name} {wrong}"))
        elif value > HIGHEST_USER_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            causes.append(forbidden("value", detail))
        causes += one_of("preemptionPolicy", obj["preemptionPolicy"], ("PreemptLowerPriority", "Never"))
        if old is not None:
            if value != old.get("value", 0):
                causes.append(forbidden("value", "may not be changed in an update."))
            causes += immutable("preemptionPolicy", obj["preemptionPolicy"], old.get("preemptionPolicy"))
        return causes


class Lease(Plain):
    def begin(self, obj: Json) -> None:
        self._drop_coordination(obj)

    def prepare_update(self, obj: Json, old: Json) -> None:
        self._drop_coordination(obj)

    def _drop_coordination(self, obj: Json) -> None:
        """Fields of a feature that is off by default: accepted and forgotten."""
        for field in ("strategy", "preferredHolder"):
            (obj.get("spec") or {}).pop(field, None)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj.get("spec") or {}
        causes: list[Cause] = []
        seconds = spec.get("leaseDurationSeconds")
        if seconds is not None and seconds <= 0:
            causes.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        causes += not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))
        return causes
