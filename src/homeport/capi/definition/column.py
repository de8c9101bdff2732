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
PHASE = Column("Phase", ".status.phase")
AVAILABLE = _condition("Available", "Available")
VERSION = Column("Version", ".spec.version")
TEMPLATE_VERSION = Column("Version", ".spec.template.spec.version")
TOPOLOGY_VERSION = Column("Version", ".spec.topology.version")
OWNING_CLASS = Column("ClusterClass", '.metadata.ownerReferences[?(@.kind=="ClusterClass")].name')
POOL = (Column("Pool Name", ".spec.poolRef.name"), Column("Pool Kind", ".spec.poolRef.kind"), AGE)
ADDRESS = (Column("Address", ".spec.address"), *POOL)
READY = Column("Ready", ".status.ready", "boolean")  # of infrastructure
INFRA_MACHINE = (
    CLUSTER_LABEL,
    Column("Address", ".status.addresses[0].address"),
    READY,
    Column("ProviderID", ".spec.providerID"),
    Column("FailureDomain", ".status.failureDomain", wide=True),
    AGE,
)
DRAIN_RULE = (Column("Behavior", ".spec.drain.behavior"), Column("Order", ".spec.drain.order"), AGE)


def _count(name: str, path: str, *, wide: bool = False) -> Column:
    return Column(name, path, "integer", wide)


REPLICAS = (
    _count("Desired", ".spec.replicas"),
    _count("Current", ".status.replicas"),
    _count("Ready", ".status.readyReplicas"),
    _count("Available", ".status.availableReplicas"),
    _count("Up-to-date", ".status.upToDateReplicas"),
)
WIDE_DESIRED = _count("Desired", ".spec.replicas", wide=True)
OLD_REPLICAS = (
    WIDE_DESIRED,
    _count("Replicas", ".status.replicas"),
    _count("Ready", ".status.readyReplicas"),
    _count("Updated", ".status.updatedReplicas"),
    _count("Unavailable", ".status.unavailableReplicas"),
)


def _cluster_replicas(prefix: str, path: str) -> tuple[Column, ...]:
    return (
        _count(f"{prefix} Desired", f"{path}.desiredReplicas"),
        _count(f"{prefix} Current", f"{path}.replicas", wide=True),
        _count(f"{prefix} Ready", f"{path}.readyReplicas", wide=True),
        _count(f"{prefix} Available", f"{path}.availableReplicas"),
        _count(f"{prefix} Up-to-date", f"{path}.upToDateReplicas"),
    )


# (kind, version) > columns
COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("Provider", "v1alpha3"): (
        AGE,
        Column("Type", ".type"),
        Column("Provider", ".providerName"),
        Column("Version", ".version"),
    ),
    ("ClusterResourceSetBinding", "v1beta1"): (AGE,),
    ("ClusterResourceSetBinding", "v1beta2"): (CLUSTER, AGE),
    ("ClusterResourceSet", "v1beta1"): (AGE,),
    ("ClusterResourceSet", "v1beta2"): (_condition("Applied", "ResourcesApplied"), PAUSED, AGE),
    ("KubeadmConfig", "v1beta1"): (CLUSTER_LABEL, AGE),
    ("KubeadmConfig", "v1beta2"): (
        CLUSTER_LABEL,
        PAUSED,
        Column("Data secret created", ".status.initialization.dataSecretCreated"),
        AGE,
    ),
    ("KubeadmConfigTemplate", "v1beta1"): (AGE,),
    ("KubeadmConfigTemplate", "v1beta2"): (
        OWNING_CLASS,
        Column("Cluster", '.metadata.ownerReferences[?(@.kind=="Cluster")].name'),
        AGE,
    ),
    ("ClusterClass", "v1beta1"): (AGE,),
    ("ClusterClass", "v1beta2"): (PAUSED, _condition("Variables Ready", "VariablesReady"), AGE),
    ("Cluster", "v1beta1"): (Column("ClusterClass", ".spec.topology.class"), PHASE, AGE, TOPOLOGY_VERSION),
    ("Cluster", "v1beta2"): (
        Column("ClusterClass", ".spec.topology.classRef.name"),
        AVAILABLE,
        *_cluster_replicas("CP", ".status.controlPlane"),
        *_cluster_replicas("W", ".status.workers"),
        PAUSED,
        PHASE,
        AGE,
        TOPOLOGY_VERSION,
    ),
    ("MachineDeployment", "v1beta1"): (CLUSTER, *OLD_REPLICAS, PHASE, AGE, TEMPLATE_VERSION),
    ("MachineDeployment", "v1beta2"): (CLUSTER, AVAILABLE, *REPLICAS, PAUSED, PHASE, AGE, TEMPLATE_VERSION),
    ("MachineDrainRule", "v1beta1"): DRAIN_RULE,
    ("MachineDrainRule", "v1beta2"): DRAIN_RULE,
    ("MachineHealthCheck", "v1beta1"): (
        CLUSTER,
        _count("ExpectedMachines", ".status.expectedMachines"),
        Column("MaxUnhealthy", ".spec.maxUnhealthy"),
        _count("CurrentHealthy", ".status.currentHealthy"),
        AGE,
    ),
    ("MachineHealthCheck", "v1beta2"): (
        CLUSTER,
        _count("Replicas", ".status.expectedMachines"),
        _count("Healthy", ".status.currentHealthy"),
        PAUSED,
        AGE,
    ),
    ("MachinePool", "v1beta1"): (
        CLUSTER,
        WIDE_DESIRED,
        Column("Replicas", ".status.replicas"),
        PHASE,
        AGE,
        TEMPLATE_VERSION,
    ),
    ("MachinePool", "v1beta2"): (CLUSTER, *REPLICAS, PAUSED, PHASE, AGE, TEMPLATE_VERSION),
    ("Machine", "v1beta1"): (
        CLUSTER,
        Column("NodeName", ".status.nodeRef.name"),
        Column("ProviderID", ".spec.providerID"),
        PHASE,
        AGE,
        VERSION,
    ),
    ("Machine", "v1beta2"): (
        CLUSTER,
        Column("Node Name", ".status.nodeRef.name"),
        Column("Provider ID", ".spec.providerID", wide=True),
        Column("Failure domain", ".status.failureDomain"),
        _condition("Ready", "Ready"),
        AVAILABLE,
        _condition("Up-to-date", "UpToDate"),
        Column("Internal-IP", '.status.addresses[?(@.type=="InternalIP")].address', wide=True),
        Column("External-IP", '.status.addresses[?(@.type=="ExternalIP")].address', wide=True),
        Column("OS-Image", ".status.nodeInfo.osImage", wide=True),
        PAUSED,
        PHASE,
        AGE,
        VERSION,
    ),
    ("MachineSet", "v1beta1"): (
        CLUSTER,
        WIDE_DESIRED,
        _count("Replicas", ".status.replicas"),
        _count("Ready", ".status.readyReplicas"),
        _count("Available", ".status.availableReplicas"),
        AGE,
        TEMPLATE_VERSION,
    ),
    ("MachineSet", "v1beta2"): (CLUSTER, *REPLICAS, PAUSED, AGE, TEMPLATE_VERSION),
    ("KubeadmControlPlane", "v1beta1"): (
        CLUSTER_LABEL,
        Column("Initialized", ".status.initialized", "boolean"),
        Column("API Server Available", ".status.ready", "boolean"),
        *OLD_REPLICAS,
        AGE,
        VERSION,
    ),
    ("KubeadmControlPlane", "v1beta2"): (
        CLUSTER_LABEL,
        AVAILABLE,
        *REPLICAS,
        PAUSED,
        Column("Initialized", ".status.initialization.controlPlaneInitialized", "boolean"),
        AGE,
        VERSION,
    ),
    ("KubeadmControlPlaneTemplate", "v1beta1"): (AGE,),
    ("KubeadmControlPlaneTemplate", "v1beta2"): (OWNING_CLASS, AGE),
    ("IPAddressClaim", "v1alpha1"): POOL,
    ("IPAddressClaim", "v1beta1"): POOL,
    ("IPAddressClaim", "v1beta2"): POOL,
    ("IPAddress", "v1alpha1"): ADDRESS,
    ("IPAddress", "v1beta1"): ADDRESS,
    ("IPAddress", "v1beta2"): ADDRESS,
    ("ExtensionConfig", "v1alpha1"): (AGE,),
    ("ExtensionConfig", "v1beta2"): (PAUSED, _condition("Discovered", "Discovered"), AGE),
}
