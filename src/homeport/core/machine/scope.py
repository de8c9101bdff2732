"""A Machine in work."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.capi.name import Condition
from homeport.client.protocol import Key
from homeport.core.machine.observed import Observed
from homeport.core.machine.status import report
from homeport.core.pace import PacedScope, status_changed
from homeport.core.related import Related
from homeport.runtime.clock import parse_time
from homeport.runtime.outcome import Wait

_AWAITED = (
    Condition.READY,
    Condition.AVAILABLE,
    Condition.UP_TO_DATE,
    Condition.NODE_HEALTHY,
    Condition.DELETING,
    Condition.PAUSED,
)


class MachineScope(PacedScope[Machine]):
    def __init__(self, machine: Machine, cluster: Cluster | None) -> None:
        super().__init__(machine)
        self._before = machine.status
        self.seen = Observed(
            cluster=cluster,
            bootstrap=Related(machine.spec.bootstrap.config_ref),
            infrastructure=Related(machine.spec.infrastructure_ref),
        )
        self.timer: Wait | None = None  # when the status changes by the passing of time alone
        self.released = False  # nothing is left, not even an object to report on

    @property
    def cluster_key(self) -> Key:
        return Key(self.object.metadata.namespace, self.object.spec.cluster_name)

    @property
    def urgent(self) -> bool:
        """Whoever made it counts Nodes and readiness; what providers wait for stands in the spec."""
        before, after = self._before, self.object.status
        return (
            before.node_ref != after.node_ref
            or before.deletion != after.deletion
            or status_changed(before.conditions, after.conditions, _AWAITED)
        )

    def status_patch(self) -> dict[str, Any]:
        return {} if self.released else super().status_patch()

    def report(self, kind: str, status: Any, reason: str, message: str, now: str) -> bool | None:
        """Every outcome ends here: the whole status is computed anew from what this loop has seen."""
        before = _said(self.object)
        if reason == "ReconcileError":
            self.seen.trouble = (reason, message)
        self.timer = report(self.object, self.seen, parse_time(now))
        return before != _said(self.object)


def _said(machine: Machine) -> list[tuple[Any, ...]]:
    return [(c["type"], c["status"], c["reason"], c["message"]) for c in machine.status.conditions]
