"""One ClusterBootstrap in work: its objects as the caches have them, and what was found out about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import ClusterBootstrap, MachineRequest
from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.remote.workload import Remote
from homeport.client.protocol import Key
from homeport.machinery.condition import Status
from homeport.machinery.talos.bundle import Bundle
from homeport.platforms.butler.bootstrap import state
from homeport.platforms.butler.bootstrap.name import ETCD_ANNOTATION, PIVOT_ANNOTATION
from homeport.platforms.butler.bootstrap.plan import MachinePlan
from homeport.platforms.butler.normal.bootstrap import BootstrapModel
from homeport.platforms.butler.tenant.provider import Provider
from homeport.platforms.butler.tenant.state import Finding, put_finding
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Scope


@dataclass(frozen=True, slots=True)
class Children:
    """The objects of a management cluster that are watched, and are its own."""

    machines: Mapping[str, MachineRequest] = field(default_factory=dict)  # by name
    cluster: Cluster | None = None
    addons: Sequence[ClusterAddon] = field(default=())


class BootstrapScope(Scope[ClusterBootstrap]):
    # Set by the first phases, in this order.
    model: BootstrapModel
    provider: Provider
    bundle: Bundle

    def __init__(self, obj: ClusterBootstrap, children: Children) -> None:
        super().__init__(obj)
        self.children = children
        self.failed = False  # the user has to change something
        self.image = ""  # that the machines boot from
        self.endpoint = ""  # host of the API server
        self.remote: Remote | None = None
        self._before = obj.status.phase
        self._cluster = children.cluster
        self.plans: Sequence[MachinePlan] = ()

    # -- what earlier phases found ---------------------------------------------------------------------------------

    @property
    def cluster(self) -> Cluster:
        assert self._cluster is not None
        return self._cluster

    @cluster.setter
    def cluster(self, found: Cluster) -> None:
        self._cluster = found

    @property
    def cluster_key(self) -> Key:
        return Key(self.key.namespace, self.model.name)

    @property
    def control_planes(self) -> list[MachinePlan]:
        return [each for each in self.plans if each.control_plane]

    # -- marks -----------------------------------------------------------------------------------------------------

    @property
    def etcd_mark(self) -> str:
        """Name and UID of the machine on which etcd was started; '' while it was not."""
        return self.object.metadata.annotations.get(ETCD_ANNOTATION, "")

    @property
    def initialized(self) -> bool:
        """Whether the API server of the cluster has answered before."""
        return self._cluster is not None and bool(self._cluster.status.initialization.control_plane_initialized)

    @property
    def pivoting(self) -> bool:
        return PIVOT_ANNOTATION in self.object.metadata.annotations

    # -- reporting -------------------------------------------------------------------------------------------------

    def note(self, finding: Finding, now: str) -> Wait | None:
        """A condition besides Ready. Gives what is waited for while it is not True."""
        put_finding(self.object, finding, now)
        return None if finding.good else Wait(finding.reason, finding.message)

    def report(self, kind: str, status: Status, reason: str, message: str, now: str) -> bool | None:
        """The phase follows from the conditions."""
        changed = super().report(kind, status, reason, message, now)
        held = self.object.status
        held.observed_generation = self.object.metadata.generation
        true = {each["type"]: each["status"] == "True" for each in held.conditions}
        held.phase = state.phase_of(
            true, deleting=self.deleting, failed=self.failed, pivoting=self.pivoting, before=self._before
        )
        held.failure_reason, held.failure_message = (reason, message) if held.phase == state.FAILED else ("", "")
        return changed
