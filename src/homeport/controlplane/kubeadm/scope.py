"""One KubeadmControlPlane in work, with everything that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Unstructured
from homeport.capi.name import Condition
from homeport.capi.remote.pki import Certificates
from homeport.capi.remote.workload import Remote
from homeport.client.protocol import Key
from homeport.controlplane.kubeadm.health import Seen
from homeport.controlplane.kubeadm.status import Findings, fill, weight
from homeport.machinery import condition
from homeport.runtime.cache import key_of
from homeport.runtime.reconciler import Scope


@dataclass(slots=True)
class Owned:
    """A Machine with what was made for it."""

    machine: Machine
    config: KubeadmConfig | None = None
    infrastructure: Unstructured | None = None

    @property
    def name(self) -> str:
        return self.machine.metadata.name


class ControlPlaneScope(Scope[KubeadmControlPlane]):
    def __init__(self, kcp: KubeadmControlPlane, cluster: Cluster | None, now: float) -> None:
        super().__init__(kcp)
        self.found_cluster = cluster  # None: no Cluster has adopted it yet, or its Cluster was removed by force
        self.now = now
        self.findings = Findings(now=now, cluster="" if cluster is None else cluster.metadata.name)
        self.findings.initialized = bool(kcp.status.initialization.control_plane_initialized)
        self.owned: list[Owned] = []
        self.certificates: Certificates = {}
        self.remote: Remote | None = None
        self.seen = Seen(down="the workload cluster has not been checked yet")
        self.unreadable = ""  # which objects exist and can't be read
        self.gone: frozenset[int] = frozenset()  # IDs of etcd members whose machine is proven to be gone
        self.dropped: set[str] = set()  # Machines that are no longer to be remediated

    @property
    def kcp(self) -> KubeadmControlPlane:
        return self.object

    @property
    def cluster(self) -> Cluster:
        """For phases of a control plane that has a Cluster."""
        assert self.found_cluster is not None
        return self.found_cluster

    @property
    def cluster_key(self) -> Key:
        return key_of(self.cluster)

    @property
    def urgent(self) -> bool:
        """While Machines come up, what is reported of them changes many times a second: only what lasts is written."""
        if self.deleting or self.found_cluster is None:
            return True
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
