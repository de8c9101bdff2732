"""Conditions of cert-manager's kinds."""

from __future__ import annotations

from homeport.sim.machine.workload.kind import Json


def ready_condition(status: str, reason: str, message: str, obj: Json) -> Json:
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": obj["metadata"].get("generation", 1),
    }


def with_condition(obj: Json, condition: Json, now: str) -> list[Json]:
    """All conditions of the object with this one; its time stays as long as its status does."""
    known: list[Json] = (obj.get("status") or {}).get("conditions") or []
    before = next((each for each in known if each["type"] == condition["type"]), None)
    same = before is not None and before["status"] == condition["status"]
    moment = before.get("lastTransitionTime", now) if before is not None and same else now
    others = [each for each in known if each["type"] != condition["type"]]
    return [*others, {**condition, "lastTransitionTime": moment}]


def without(obj: Json, kind: str) -> Json:
    """The object's status without a condition of this type."""
    kept = [each for each in (obj.get("status") or {}).get("conditions") or () if each["type"] != kind]
    return {"status": {"conditions": kept}}
