"""A Cluster in work."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Cluster, ClusterStatus
from homeport.capi.name import Condition
from homeport.core.cluster.observed import Observed
from homeport.core.cluster.status import report
from homeport.core.related import Related
from homeport.core.scope import ComputedScope
from homeport.machinery import condition
from homeport.runtime.outcome import Wait
from homeport.runtime.pace import status_changed

_AWAITED = (Condition.AVAILABLE, Condition.CONTROL_PLANE_INITIALIZED, Condition.DELETING, Condition.PAUSED)
_PASSING = (Condition.ROLLING_OUT, Condition.REMEDIATING)  # True for some seconds, perhaps, and people wait for that


class ClusterScope(ComputedScope[Cluster]):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.seen = Observed(
            infrastructure=Related(cluster.spec.infrastructure_ref),
            control_plane=Related(cluster.spec.control_plane_ref),
        )

    @property
    def urgent(self) -> bool:
        """Providers wait for flags and failure domains; people for the rest of these."""
        before, after = self.read.status, self.object.status
        return (
            before.initialization != after.initialization
            or before.failure_domains != after.failure_domains
            or (before.phase != after.phase and after.phase not in ("Pending", "Provisioning"))
            or status_changed(before.conditions, after.conditions, _AWAITED)
            or _passing(before) != _passing(after)
            or (_complete(after) and not _complete(before))
        )

    def note_trouble(self, reason: str, message: str) -> None:
        self.seen.trouble = (reason, message)

    def compute(self, now: float) -> Wait | None:
        return report(self.object, self.seen, now)


def _passing(status: ClusterStatus) -> list[str]:
    return [each for each in _PASSING if condition.is_true(status.conditions, each)]


def _complete(status: ClusterStatus) -> bool:
    """All machines that are wanted are there: the end of what people wait for."""
    plane, workers = status.control_plane, status.workers
    return (
        bool(plane.desired_replicas)
        and plane.available_replicas == plane.desired_replicas
        and workers.available_replicas == workers.desired_replicas
    )
