"""A Cluster in work."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, ClusterStatus
from homeport.capi.name import Condition
from homeport.core.cluster.observed import Observed
from homeport.core.cluster.status import report
from homeport.core.pace import PacedScope, status_changed
from homeport.core.related import Related
from homeport.runtime.clock import parse_time
from homeport.runtime.outcome import Wait

_AWAITED = (Condition.AVAILABLE, Condition.CONTROL_PLANE_INITIALIZED, Condition.DELETING, Condition.PAUSED)


class ClusterScope(PacedScope[Cluster]):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._before = cluster.status
        self.seen = Observed(
            infrastructure=Related(cluster.spec.infrastructure_ref),
            control_plane=Related(cluster.spec.control_plane_ref),
        )
        self.timer: Wait | None = None  # when the status changes by the passing of time alone
        self.released = False  # nothing is left, not even an object to report on

    @property
    def urgent(self) -> bool:
        """Providers wait for flags and failure domains; people for the rest of these."""
        before, after = self._before, self.object.status
        return (
            before.initialization != after.initialization
            or before.failure_domains != after.failure_domains
            or (before.phase != after.phase and after.phase not in ("Pending", "Provisioning"))
            or status_changed(before.conditions, after.conditions, _AWAITED)
            or (_complete(after) and not _complete(before))
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


def _complete(status: ClusterStatus) -> bool:
    """All machines that are wanted are there: the end of what people wait for."""
    plane, workers = status.control_plane, status.workers
    return (
        bool(plane.desired_replicas)
        and plane.available_replicas == plane.desired_replicas
        and workers.available_replicas == workers.desired_replicas
    )


def _said(cluster: Cluster) -> list[tuple[Any, ...]]:
    return [(c["type"], c["status"], c["reason"], c["message"]) for c in cluster.status.conditions]
