"""The status of Deployments and sets: counts that are not negative and don't contradict each other."""

from __future__ import annotations

from homeport.apiserver.kinds.check import invalid, not_negative
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause


class Counts:
    """The status subresource of one kind. `parts` are of `replicas`; `ready` is what messages call readyReplicas."""

    def __init__(self, counts: tuple[str, ...], parts: tuple[str, ...] = (), ready: str = "") -> None:
        self._counts = counts
        self._parts = parts
        self._ready = ready

    def prepare(self, obj: Json, old: Json) -> None:
        """The registry holds everything but the status."""

    def validate(self, obj: Json, old: Json) -> list[Cause]:
        status = obj.get("status") or {}
        causes = [cause for name in self._counts for cause in not_negative(f"status.{name}", status.get(name))]
        total = status.get("replicas", 0)
        for name in self._parts:
            value = status.get(name, 0)
            if value > total:
                causes.append(invalid(f"status.{name}", value, "cannot be greater than status.replicas"))
        available = status.get("availableReplicas", 0)
        if self._ready and available > status.get("readyReplicas", 0):
            causes.append(invalid("status.availableReplicas", available, f"cannot be greater than {self._ready}"))
        return causes


DEPLOYMENT = Counts(
    (
        "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
        "unavailableReplicas", "terminatingReplicas", "collisionCount",
    ),
    ("updatedReplicas", "readyReplicas", "availableReplicas"),
    "readyReplicas",
)  # fmt: skip
REPLICA_SET = Counts(
    (
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
        "terminatingReplicas",
    ),
    ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    "readyReplicas",
)  # fmt: skip
STATEFUL_SET = Counts(
    (
        "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
        "collisionCount",
    ),
    ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    "status.readyReplicas",
)  # fmt: skip
DAEMON_SET = Counts(
    (
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
        "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
    )
)  # fmt: skip
