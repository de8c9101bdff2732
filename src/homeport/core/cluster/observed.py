"""What one loop has seen of a Cluster: all that its status is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from homeport.api.cluster.v1beta2 import Cluster, ClusterClass, Machine, MachineDeployment, MachinePool, MachineSet
from homeport.capi.name import CONTROL_PLANE_LABEL, POOL_NAME_LABEL, Condition
from homeport.capi.object.cause import Part
from homeport.capi.object.ownership import is_owned_by
from homeport.core.machine.observed import Connection
from homeport.core.related import Related
from homeport.machinery.condition import find, is_true
from homeport.runtime.outcome import Wait


@dataclass(slots=True)
class Descendants:
    """Everything that belongs to a Cluster beside its two references."""

    machines: Sequence[Machine] = ()
    sets: Sequence[MachineSet] = ()
    deployments: Sequence[MachineDeployment] = ()
    pools: Sequence[MachinePool] = ()

    @property
    def control_plane(self) -> list[Machine]:
        return [m for m in self.machines if CONTROL_PLANE_LABEL in m.metadata.labels]

    @property
    def workers(self) -> list[Machine]:
        return [m for m in self.machines if CONTROL_PLANE_LABEL not in m.metadata.labels]

    @property
    def plain_workers(self) -> list[Machine]:
        """Without those of pools, which tell about themselves."""
        return [m for m in self.workers if POOL_NAME_LABEL not in m.metadata.labels]

    def alone(self, cluster: Cluster) -> tuple[list[MachineSet], list[Machine]]:
        """MachineSets and worker Machines that belong to nobody but the Cluster."""
        return (
            [s for s in self.sets if is_owned_by(s, cluster)],
            [m for m in self.plain_workers if is_owned_by(m, cluster)],
        )


@dataclass(frozen=True, slots=True)
class RefusedEndpoint:
    """An endpoint that a provider's object offers, and that the Cluster can't have."""

    source: Related
    message: str


@dataclass(slots=True)
class Observed:
    infrastructure: Related = field(default_factory=Related)
    control_plane: Related = field(default_factory=Related)
    cluster_class: ClusterClass | None = None
    descendants: Descendants = field(default_factory=Descendants)
    connection: Connection = field(default_factory=Connection)
    parts: Sequence[Part] = ()  # what may hold it up, the most important first
    deletion: Wait | None = None  # the step of deletion that is waited for
    refused: RefusedEndpoint | None = None
    trouble: tuple[str, str] | None = None  # (reason, message) of an error that ended the loop


def unhealthy(machine: Machine) -> bool:
    found = find(machine.status.conditions, Condition.HEALTH_CHECK_SUCCEEDED)
    return found is not None and found["status"] == "False"


def to_be_remediated(machine: Machine) -> bool:
    found = find(machine.status.conditions, Condition.OWNER_REMEDIATED)
    return unhealthy(machine) and found is not None and found["status"] == "False"


def counted(machines: Sequence[Machine], kind: str) -> int:
    return sum(is_true(m.status.conditions, kind) for m in machines)
