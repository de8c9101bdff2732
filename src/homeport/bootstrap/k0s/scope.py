"""One config of a k0s machine in work."""

from __future__ import annotations

from typing import Any, TypeVar

from homeport.api.k0s.v1beta2 import K0sControllerConfig, K0sWorkerConfig
from homeport.bootstrap.scope import BootstrapScope
from homeport.capi.name import Condition, Reason
from homeport.machinery import condition

C = TypeVar("C", K0sWorkerConfig, K0sControllerConfig)


class K0sScope(BootstrapScope[C]):
    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """What the loop ended with. Once the data are there, waiting is for the Node or for a timer."""
        held = self.object.status
        generation = self.object.metadata.generation
        before = _said(held.conditions)
        if self.created:
            status, reason, message = "True", Reason.AVAILABLE, ""
        for each in (Condition.DATA_SECRET_AVAILABLE, Condition.READY):
            held.conditions = condition.put(
                held.conditions, each, status, reason, message, now=now, generation=generation
            )
        return _said(held.conditions) != before


def _said(conditions: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(each["type"], each["status"], each["reason"], each["message"]) for each in conditions]
