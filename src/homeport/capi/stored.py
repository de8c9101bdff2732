"""Reports on objects of kinds that Homeport does not act on, so that nobody waits for something to happen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler

REASON = "NotActedOn"


class StoredReconciler(ObjectReconciler[Any, Scope[Any]]):
    workers = 1

    def __init__(self, manager: Manager, kind: type[Any], advice: str, *, platform: str, field_manager: str) -> None:
        self.kind = kind
        self.controller_name = f"{platform}-{kind.__resource__.kind.lower()}"
        self.field_manager = field_manager
        self._advice = advice
        super().__init__(manager)

    def load(self, obj: Any) -> Scope[Any] | None:
        return None if obj.metadata.deletion_timestamp else Scope(obj)

    def phases(self, scope: Scope[Any]) -> Sequence[Phase[Scope[Any]]]:
        return [self._report_stored]

    async def _report_stored(self, scope: Scope[Any]) -> Wait | None:
        if hasattr(scope.object.status, "observed_generation"):
            scope.object.status.observed_generation = scope.object.metadata.generation
        name = self.kind.__resource__.kind
        return Wait(REASON, f"Homeport stores {name} objects and does not act on them: {self._advice}", quiet=True)


def install_stored(manager: Manager, advice: Mapping[type[Any], str], *, platform: str, field_manager: str) -> None:
    """`advice`: by kind, what to do instead."""
    for kind, text in advice.items():
        made = StoredReconciler(manager, kind, text, platform=platform, field_manager=field_manager)
        manager.add(made.controller)
