"""One KubeadmControlPlane in work, with everything that belongs to it."""

from __future__ import annotations

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Unstructured
from homeport.capi.name import Condition
from homeport.controlplane.kubeadm.observe.health import Seen
from homeport.controlplane.kubeadm.status import Findings, fill, weight
from homeport.controlplane.scope import OwnedMachine, PlaneScope
from homeport.machinery import condition

Owned = OwnedMachine[KubeadmConfig]


class ControlPlaneScope(PlaneScope[KubeadmControlPlane, KubeadmConfig]):
    def __init__(self, kcp: KubeadmControlPlane, cluster: Cluster | None, now: float) -> None:
        super().__init__(kcp, cluster, now)
        self.findings = Findings(now=now, cluster="" if cluster is None else cluster.metadata.name)
        self.findings.initialized = bool(kcp.status.initialization.control_plane_initialized)
        self.seen = Seen(down="the workload cluster has not been checked yet")
        self.configuration: Unstructured | None = None  # ConfigMap kubeadm-config, if this loop has read it
        self.unreadable = ""  # which objects exist and can't be read
        self.gone: frozenset[int] = frozenset()  # IDs of etcd members whose machine is proven to be gone
        self.dropped: set[str] = set()  # Machines that are no longer to be remediated

    @property
    def kcp(self) -> KubeadmControlPlane:
        return self.object

    @property
    def urgent(self) -> bool:
        """While Machines come up, what is reported of them changes many times a second: only what lasts is written."""
        if self.deleting:
            return True
        if self.found_cluster is None:  # the Cluster that was created with it adopts it in a moment
            return bool(self.read.status.conditions)
        # Nothing was reported yet, and nothing has begun: that, too, often lasts no longer than a moment.
        waiting = not self.read.status.conditions and bool(self.findings.blocked)
        return not waiting and weight(self.read) != weight(self.kcp)

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """Computes the whole status from what this loop found. None: which error is news is decided by its text."""
        if self.found_cluster is None:
            return self._report_without_cluster(status, reason, message, now)
        if reason == "ReconcileError":
            self.findings.failed = message
        self.findings.machines = [each.machine for each in self.owned]
        fill(self.kcp, self.findings)
        return None

    def _report_without_cluster(self, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        if status == "True":
            return False
        if self.deleting:
            return super().report(Condition.DELETING, "True", reason, message, now)
        return super().report(Condition.AVAILABLE, "False", reason, message, now)
