"""Columns that kubectl prints of each kind and version."""

from __future__ import annotations

from typing import Any, NamedTuple

_WIDE = 10


class Column(NamedTuple):
    name: str
    path: str
    type: str = "string"
    wide: bool = False  # only with -o wide

    def render(self) -> dict[str, Any]:
        shown = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**shown, "priority": _WIDE} if self.wide else shown


def _condition(name: str, type_: str, *, wide: bool = False) -> Column:
    return Column(name, f'.status.conditions[?(@.type=="{type_}")].status', wide=wide)


AGE = Column("Age", ".metadata.creationTimestamp", "date")
PAUSED = _condition("Paused", "Paused", wide=True)
CLUSTER = Column("Cluster", ".spec.clusterName")
CLUSTER_LABEL = Column("Cluster", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']")

# (kind, version) > columns
COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("Provider", "v1alpha3"): (
        AGE,
        Column("Type", ".type"),
        Column("Provider", ".providerName"),
        Column("Version", ".version"),
    ),
    ("ClusterResourceSetBinding", "v1beta1"): (AGE,),
    ("ClusterResourceSetBinding", "v1beta2"): (
        CLUSTER,
        AGE,
    ),
    ("ClusterResourceSet", "v1beta1"): (AGE,),
    ("ClusterResourceSet", "v1beta2"): (
        _condition("Applied", "ResourcesApplied"),
        PAUSED,
        AGE,
    ),
    ("KubeadmConfig", "v1beta1"): (
        CLUSTER_LABEL,
        AGE,
    ),
    ("KubeadmConfig", "v1beta2"): (
        CLUSTER_LABEL,
        PAUSED,
        Column("Data secret created", ".status.initialization.dataSecretCreated"),
        AGE,
    ),
    ("KubeadmConfigTemplate", "v1beta1"): (AGE,),
    ("KubeadmConfigTemplate", "v1beta2"): (
        Column("ClusterClass", '.metadata.ownerReferences[?(@.kind=="ClusterClass")].name'),
        Column("Cluster", '.metadata.ownerReferences[?(@.kind=="Cluster")].name'),
        AGE,
    ),
    ("ClusterClass", "v1beta1"): (AGE,),
    ("ClusterClass", "v1beta2"): (
        PAUSED,
        _condition("Variables Ready", "VariablesReady"),
        AGE,
    ),
    ("Cluster", "v1beta1"): (
        Column("ClusterClass", ".spec.topology.class"),
        Column("Phase", ".status.phase"),
        AGE,
        Column("Version", ".spec.topology.version"),
    ),
    ("Cluster", "v1beta2"): (
        Column("ClusterClass", ".spec.topology.classRef.name"),
        _condition("Available", "Available"),
        Column("CP Desired", ".status.controlPlane.desiredReplicas", "integer"),
        Column("CP Current", ".status.controlPlane.replicas", "integer", wide=True),
        Column("CP Ready", ".status.controlPlane.readyReplicas", "integer", wide=True),
        Column("CP Available", ".status.controlPlane.availableReplicas", "integer"),
        Column("CP Up-to-date", ".status.controlPlane.upToDateReplicas", "integer"),
        Column("W Desired", ".status.workers.desiredReplicas", "integer"),
        Column("W Current", ".status.workers.replicas", "integer", wide=True),
        Column("W Ready", ".status.workers.readyReplicas", "integer", wide=True),
        Column("W Available", ".status.workers.availableReplicas", "integer"),
        Column("W Up-to-date", ".status.workers.upToDateReplicas", "integer"),
        PAUSED,
        Column("Phase", ".status.phase"),
        AGE,
        Column("Version", ".spec.topology.version"),
    ),
    ("MachineDeployment", "v1beta1"): (
        CLUSTER,
        Column("Desired", ".spec.replicas", "integer", wide=True),
        Column("Replicas", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Updated", ".status.updatedReplicas", "integer"),
        Column("Unavailable", ".status.unavailableReplicas", "integer"),
        Column("Phase", ".status.phase"),
        AGE,
        Column("Version", ".spec.template.spec.version"),
    ),
    ("MachineDeployment", "v1beta2"): (
        CLUSTER,
        _condition("Available", "Available"),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Up-to-date", ".status.upToDateReplicas", "integer"),
        PAUSED,
        Column("Phase", ".status.phase"),
        AGE,
        Column("Version", ".spec.template.spec.version"),
    ),
    ("MachineDrainRule", "v1beta1"): (
        Column("Behavior", ".spec.drain.behavior"),
        Column("Order", ".spec.drain.order"),
        AGE,
    ),
    ("MachineDrainRule", "v1beta2"): (
        Column("Behavior", ".spec.drain.behavior"),
        Column("Order", ".spec.drain.order"),
        AGE,
    ),
    ("MachineHealthCheck", "v1beta1"): (
        CLUSTER,
        Column("ExpectedMachines", ".status.expectedMachines", "integer"),
        Column("MaxUnhealthy", ".spec.maxUnhealthy"),
        Column("CurrentHealthy", ".status.currentHealthy", "integer"),
        AGE,
    ),
    ("MachineHealthCheck", "v1beta2"): (
        CLUSTER,
        Column("Replicas", ".status.expectedMachines", "integer"),
        Column("Healthy", ".status.currentHealthy", "integer"),
        PAUSED,
        AGE,
    ),
    ("MachinePool", "v1beta1"): (
        CLUSTER,
        Column("Desired", ".spec.replicas", "integer", wide=True),
        Column("Replicas", ".status.replicas"),
        Column("Phase", ".status.phase"),
        AGE,
        Column("Version", ".spec.template.spec.version"),
    ),
    ("MachinePool", "v1beta2"): (
        CLUSTER,
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Up-to-date", ".status.upToDateReplicas", "integer"),
        PAUSED,
        Column("Phase", ".status.phase"),
        AGE,
        Column("Version", ".spec.template.spec.version"),
    ),
    ("Machine", "v1beta1"): (
        CLUSTER,
        Column("NodeName", ".status.nodeRef.name"),
        Column("ProviderID", ".spec.providerID"),
        Column("Phase", ".status.phase"),
        AGE,
        Column("Version", ".spec.version"),
    ),
    ("Machine", "v1beta2"): (
        CLUSTER,
        Column("Node Name", ".status.nodeRef.name"),
        Column("Provider ID", ".spec.providerID", wide=True),
        Column("Failure domain", ".status.failureDomain"),
        _condition("Ready", "Ready"),
        _condition("Available", "Available"),
        _condition("Up-to-date", "UpToDate"),
        Column("Internal-IP", '.status.addresses[?(@.type=="InternalIP")].address', wide=True),
        Column("External-IP", '.status.addresses[?(@.type=="ExternalIP")].address', wide=True),
        Column("OS-Image", ".status.nodeInfo.osImage", wide=True),
        PAUSED,
        Column("Phase", ".status.phase"),
        AGE,
        Column("Version", ".spec.version"),
    ),
    ("MachineSet", "v1beta1"): (
        CLUSTER,
        Column("Desired", ".spec.replicas", "integer", wide=True),
        Column("Replicas", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        AGE,
        Column("Version", ".spec.template.spec.version"),
    ),
    ("MachineSet", "v1beta2"): (
        CLUSTER,
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Up-to-date", ".status.upToDateReplicas", "integer"),
        PAUSED,
        AGE,
        Column("Version", ".spec.template.spec.version"),
    ),
    ("KubeadmControlPlane", "v1beta1"): (
        CLUSTER_LABEL,
        Column("Initialized", ".status.initialized", "boolean"),
        Column("API Server Available", ".status.ready", "boolean"),
        Column("Desired", ".spec.replicas", "integer", wide=True),
        Column("Replicas", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Updated", ".status.updatedReplicas", "integer"),
        Column("Unavailable", ".status.unavailableReplicas", "integer"),
        AGE,
        Column("Version", ".spec.version"),
    ),
    ("KubeadmControlPlane", "v1beta2"): (
        CLUSTER_LABEL,
        _condition("Available", "Available"),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Up-to-date", ".status.upToDateReplicas", "integer"),
        PAUSED,
        Column("Initialized", ".status.initialization.controlPlaneInitialized", "boolean"),
        AGE,
        Column("Version", ".spec.version"),
    ),
    ("KubeadmControlPlaneTemplate", "v1beta1"): (AGE,),
    ("KubeadmControlPlaneTemplate", "v1beta2"): (
        Column("ClusterClass", '.metadata.ownerReferences[?(@.kind=="ClusterClass")].name'),
        AGE,
    ),
    ("IPAddressClaim", "v1alpha1"): (
        Column("Pool Name", ".spec.poolRef.name"),
        Column("Pool Kind", ".spec.poolRef.kind"),
        AGE,
    ),
    ("IPAddressClaim", "v1beta1"): (
        Column("Pool Name", ".spec.poolRef.name"),
        Column("Pool Kind", ".spec.poolRef.kind"),
        AGE,
    ),
    ("IPAddressClaim", "v1beta2"): (
        Column("Pool Name", ".spec.poolRef.name"),
        Column("Pool Kind", ".spec.poolRef.kind"),
        AGE,
    ),
    ("IPAddress", "v1alpha1"): (
        Column("Address", ".spec.address"),
        Column("Pool Name", ".spec.poolRef.name"),
        Column("Pool Kind", ".spec.poolRef.kind"),
        AGE,
    ),
    ("IPAddress", "v1beta1"): (
        Column("Address", ".spec.address"),
        Column("Pool Name", ".spec.poolRef.name"),
        Column("Pool Kind", ".spec.poolRef.kind"),
        AGE,
    ),
    ("IPAddress", "v1beta2"): (
        Column("Address", ".spec.address"),
        Column("Pool Name", ".spec.poolRef.name"),
        Column("Pool Kind", ".spec.poolRef.kind"),
        AGE,
    ),
    ("ExtensionConfig", "v1alpha1"): (AGE,),
    ("ExtensionConfig", "v1beta2"): (
        PAUSED,
        _condition("Discovered", "Discovered"),
        AGE,
    ),
}
