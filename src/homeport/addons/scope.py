"""One ClusterAddon in work: its Cluster, and how its state is reported."""

from __future__ import annotations

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.remote.workload import Remote
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.runtime.reconciler import Scope

INSTALLED = "Installed"


class AddonScope(Scope[ClusterAddon]):
    def __init__(self, obj: ClusterAddon, cluster: Cluster | None) -> None:
        super().__init__(obj)
        self.cluster = cluster
        self.remote: Remote | None = None
        self.phase = ""  # while it is not Ready
        self.message = ""  # while it is

    @property
    def cluster_key(self) -> Key:
        return Key(self.object.metadata.namespace, self.object.spec.cluster_name)

    @property
    def cluster_leaves(self) -> bool:
        """Whether the Cluster is gone or being deleted."""
        return self.cluster is None or bool(self.cluster.metadata.deletion_timestamp)

    def pending(self) -> None:
        """What was installed and can't be looked at now is Degraded; what never was is Pending."""
        self.phase = "Degraded" if self.object.status.version or self.object.status.object_count else "Pending"

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        held = self.object.status
        held.observed_generation = self.object.metadata.generation
        held.phase = "Installed" if status == "True" else self.phase or "Pending"
        return super().report(kind, status, reason, message or self.message, now)

    def report_installed(self, status: condition.Status, reason: str, message: str, now: str) -> None:
        held = self.object.status
        held.conditions = condition.put(
            held.conditions, INSTALLED, status, reason, message, now=now, generation=self.object.metadata.generation
        )
