"""One K0sControlPlane in work, with everything that belongs to it."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0s.v1beta2 import K0sControllerConfig, K0sControlPlane
from homeport.controlplane.k0s.child import Seen
from homeport.controlplane.k0s.status import Findings, fill
from homeport.controlplane.scope import OwnedMachine, PlaneScope
from homeport.machinery import condition

Owned = OwnedMachine[K0sControllerConfig]


class K0sPlaneScope(PlaneScope[K0sControlPlane, K0sControllerConfig]):
    def __init__(self, plane: K0sControlPlane, cluster: Cluster | None, now: float) -> None:
        super().__init__(plane, cluster, now)
        self.findings = Findings(now=now, cluster="" if cluster is None else cluster.metadata.name)
        self.findings.initialized = bool(plane.status.initialization.control_plane_initialized)
        self.seen = Seen(down="the workload cluster has not been checked yet")

    @property
    def plane(self) -> K0sControlPlane:
        return self.object

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """Computes the whole status from what this loop found."""
        before = _said(self)
        self.findings.outcome = (status, reason, message)
        fill(self.plane, self.findings)
        return _said(self) != before


def _said(scope: K0sPlaneScope) -> list[tuple[str, str, str]]:
    return [(each["type"], each["status"], each.get("message", "")) for each in scope.plane.status.conditions]
