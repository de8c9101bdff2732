"""Scopes of kinds whose whole status is computed from what one reconcile observed."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

from homeport.api.meta import Object
from homeport.machinery import condition
from homeport.runtime.clock import parse_time
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Scope

O = TypeVar("O", bound=Object)


class ComputedScope(Scope[O]):
    @abstractmethod
    def compute(self, now: float) -> Wait | None:
        """Writes the whole status of the object. Returns when it changes by the passing of time alone."""

    @abstractmethod
    def note_trouble(self, reason: str, message: str) -> None:
        """The reconcile failed with an error: the status shows it."""

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """Called for every outcome."""
        before = self._conditions()
        if reason == "ReconcileError":
            self.note_trouble(reason, message)
        self.timer = self.compute(parse_time(now))
        return before != self._conditions()

    def _conditions(self) -> list[tuple[Any, ...]]:
        status: Any = self.object.status  # type: ignore[attr-defined]  # every kind here has one
        return [(each["type"], each["status"], each["reason"], each["message"]) for each in status.conditions]
