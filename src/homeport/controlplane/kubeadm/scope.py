"""One KubeadmControlPlane in work, with everything that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Unstructured
from homeport.capi.remote.pki import Certificates
from homeport.capi.remote.workload import Remote
from homeport.client.protocol import Key
from homeport.controlplane.kubeadm.health import Seen
from homeport.controlplane.kubeadm.status import Findings
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
    def __init__(self, kcp: KubeadmControlPlane, cluster: Cluster, now: float) -> None:
        super().__init__(kcp)
        self.cluster = cluster
        self.now = now
        self.findings = Findings(now=now, cluster=cluster.metadata.name)
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
    def cluster_key(self) -> Key:
        return key_of(self.cluster)
