"""What a machine made from a template would have, in the template's status: autoscalers start from nothing by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from homeport.api.meta import Object
from homeport.infra.reconciler import edited
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler


class CapacityReconciler(ObjectReconciler[Object, Scope[Object]]):
    condition = ""

    def __init__(
        self, manager: Manager, kind: type[Object], capacity: Callable[[Any], Mapping[str, Any]], provider: str
    ) -> None:
        self.controller_name = f"{provider}machinetemplate"
        self.kind = kind
        self.field_manager = f"homeport-{provider}"
        super().__init__(manager)
        self._capacity = capacity

    def predicate(self, old: Object | None, new: Object | None) -> bool:
        return edited(old, new)

    def load(self, obj: Object) -> Scope[Object] | None:
        return None if obj.metadata.deletion_timestamp else Scope(obj)

    def phases(self, scope: Scope[Object]) -> Sequence[Phase[Scope[Object]]]:
        return [self._publish]

    async def _publish(self, scope: Scope[Object]) -> Wait | None:
        status: Any = getattr(scope.object, "status", None)
        status.capacity = dict(self._capacity(scope.object))
        return None
