"""One TenantCluster in work: its objects as the caches have them, and what was found out about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Unstructured
from homeport.api.steward.controlplane import StewardControlPlane
from homeport.capi.name import PAUSED
from homeport.capi.object.paused import has_annotation
from homeport.machinery import condition
from homeport.machinery.address import AddressSet
from homeport.machinery.condition import Status
from homeport.platforms.butler.normal.lookup import Found
from homeport.platforms.butler.normal.tenant import TenantModel
from homeport.platforms.butler.tenant import state
from homeport.platforms.butler.tenant.blueprint import AddonRequest, Blueprint
from homeport.platforms.butler.tenant.provider import Provider
from homeport.platforms.butler.tenant.state import Finding, put_finding
from homeport.runtime.reconciler import Scope


@dataclass(frozen=True, slots=True)
class Children:
    """The objects of a tenant cluster that are watched."""

    namespace: Unstructured | None = None
    cluster: Cluster | None = None
    control_plane: StewardControlPlane | KubeadmControlPlane | None = None
    deployments: Sequence[MachineDeployment] = field(default=())
    addons: Sequence[ClusterAddon] = field(default=())
    namesakes: Sequence[Cluster] = field(default=())  # Clusters of an earlier TenantCluster with the same name

    @property
    def version(self) -> str:
        """That all of the control plane serves; '' while it does not, or it is changing."""
        found = self.control_plane
        if isinstance(found, KubeadmControlPlane):
            versions = [each.version for each in found.status.versions]
            return versions[0] if len(versions) == 1 else ""
        return found.status.version if found is not None else ""


class TenantScope(Scope[TenantCluster]):
    def __init__(self, obj: TenantCluster, namespace: str, children: Children) -> None:
        super().__init__(obj)
        self.namespace = namespace
        self.children = children
        self.chosen = Found(None)  # the ProviderConfig that is meant
        self.model: TenantModel | None = None
        self.provider: Provider | None = None
        self.provider_state = Finding(state.PROVIDER)
        self.addresses = AddressSet()  # of load balancers in the cluster
        self.endpoint = ""  # of the API server; '': the plane's load balancer chooses it
        self.images: dict[str, str] = {}  # by group of workers
        self.addons: tuple[AddonRequest, ...] = ()
        self.blueprint: Blueprint | None = None
        self.failed = False  # the user has to change something
        self._before = obj.status.phase

    @property
    def observed_only(self) -> bool:
        return self.model is not None and self.model.mode != "Active"

    def note(self, finding: Finding, now: str) -> None:
        """A condition besides Ready."""
        put_finding(self.object, finding, now)

    def note_paused(self, now: str) -> None:
        held, annotated = self.object.status, has_annotation(self.object)
        paused = self.object.spec.paused or annotated
        text = "spec.paused is true: the Cluster is not reconciled" if paused else ""
        if annotated:
            text = f"the annotation {PAUSED} is set: neither the TenantCluster nor its objects are reconciled"
        status: Status = "True" if paused else "False"
        held.conditions = condition.put(
            held.conditions,
            "Paused",
            status,
            "Paused" if paused else "NotPaused",
            text,
            now=now,
            generation=self.object.metadata.generation,
        )

    def report(self, kind: str, status: Status, reason: str, message: str, now: str) -> bool | None:
        """The phase follows from the conditions."""
        changed = super().report(kind, status, reason, message, now)
        held = self.object.status
        held.observed_generation = self.object.metadata.generation
        true = {each["type"]: each["status"] == "True" for each in held.conditions}
        phase = state.phase_of(
            true,
            deleting=self.deleting,
            failed=self.failed,
            created=self.children.cluster is not None,
            before=self._before,
        )
        if phase != held.phase:
            held.phase, held.last_transition_time = phase, now
        return changed
