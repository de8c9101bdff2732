"""A Machine in work."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.capi.name import Condition
from homeport.client.protocol import Key
from homeport.core.machine.observed import Observed
from homeport.core.machine.status import report
from homeport.core.related import Related
from homeport.core.scope import ComputedScope
from homeport.runtime.outcome import Wait
from homeport.runtime.pace import status_changed

_AWAITED = (
    Condition.READY,
    Condition.AVAILABLE,
    Condition.UP_TO_DATE,
    Condition.NODE_HEALTHY,
    Condition.DELETING,
    Condition.PAUSED,
)


class MachineScope(ComputedScope[Machine]):
    def __init__(self, machine: Machine, cluster: Cluster | None) -> None:
        super().__init__(machine)
        self.seen = Observed(
            cluster=cluster,
            bootstrap=Related(machine.spec.bootstrap.config_ref),
            infrastructure=Related(machine.spec.infrastructure_ref),
        )

    @property
    def cluster_key(self) -> Key:
        return Key(self.object.metadata.namespace, self.object.spec.cluster_name)

    @property
    def urgent(self) -> bool:
        """The Machine's owner counts Nodes and readiness; providers wait only for fields of the spec."""
        before, after = self.read.status, self.object.status
        return (
            before.node_ref != after.node_ref
            or before.deletion != after.deletion
            or status_changed(before.conditions, after.conditions, _AWAITED)
        )

    def note_trouble(self, reason: str, message: str) -> None:
        self.seen.trouble = (reason, message)

    def compute(self, now: float) -> Wait | None:
        return report(self.object, self.seen, now)
