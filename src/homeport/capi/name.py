"""Every name that Cluster API objects agree on: labels, annotations, finalizers, taints, conditions and reasons."""

from __future__ import annotations

import base64
import re

GROUP = "cluster.x-k8s.io"
BOOTSTRAP_GROUP = "bootstrap.cluster.x-k8s.io"
CONTROL_PLANE_GROUP = "controlplane.cluster.x-k8s.io"
INFRASTRUCTURE_GROUP = "infrastructure.cluster.x-k8s.io"

TEMPLATE_SUFFIX = "Template"

# -- labels ----------------------------------------------------------------------------------------------------------

CLUSTER_NAME_LABEL = "cluster.x-k8s.io/cluster-name"
CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane"
CONTROL_PLANE_NAME_LABEL = "cluster.x-k8s.io/control-plane-name"
DEPLOYMENT_NAME_LABEL = "cluster.x-k8s.io/deployment-name"
SET_NAME_LABEL = "cluster.x-k8s.io/set-name"
POOL_NAME_LABEL = "cluster.x-k8s.io/pool-name"
TEMPLATE_HASH_LABEL = "machine-template-hash"
PROVIDER_LABEL = "cluster.x-k8s.io/provider"
INTERRUPTIBLE_LABEL = "cluster.x-k8s.io/interruptible"
POD_DRAIN_LABEL = "cluster.x-k8s.io/drain"
TOPOLOGY_OWNED_LABEL = "topology.cluster.x-k8s.io/owned"
TOPOLOGY_DEPLOYMENT_NAME_LABEL = "topology.cluster.x-k8s.io/deployment-name"
CONTRACT_LABEL_PREFIX = "cluster.x-k8s.io/"  # + contract, on CRDs: the versions that follow it, joined by _
CLUSTERCTL_LABEL = "clusterctl.cluster.x-k8s.io"  # on CRDs: clusterctl looks at objects of these
CLUSTERCTL_CORE_LABEL = "clusterctl.cluster.x-k8s.io/core"
MOVE_LABEL = "clusterctl.cluster.x-k8s.io/move"
MOVE_HIERARCHY_LABEL = "clusterctl.cluster.x-k8s.io/move-hierarchy"
# On objects that every plane creates for itself: they do not move, and the target must have them.
STAYS_LABEL = "move.homeport.dev/stays"

# Labels and annotations of Machines that are for their Nodes.
NODE_ROLE_PREFIX = "node-role.kubernetes.io"
NODE_RESTRICTION_DOMAIN = "node-restriction.kubernetes.io"
MANAGED_NODE_DOMAIN = "node.cluster.x-k8s.io"

# -- annotations -----------------------------------------------------------------------------------------------------

PAUSED = "cluster.x-k8s.io/paused"
MANAGED_BY = "cluster.x-k8s.io/managed-by"
DELETE_MACHINE = "cluster.x-k8s.io/delete-machine"
SKIP_REMEDIATION = "cluster.x-k8s.io/skip-remediation"
REMEDIATE_MACHINE = "cluster.x-k8s.io/remediate-machine"
DISABLE_MACHINE_CREATE = "cluster.x-k8s.io/disable-machine-create"
EXCLUDE_NODE_DRAINING = "machine.cluster.x-k8s.io/exclude-node-draining"
EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
CERTIFICATES_EXPIRY = "machine.cluster.x-k8s.io/certificates-expiry"
PRE_DRAIN_HOOK_PREFIX = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
PRE_TERMINATE_HOOK_PREFIX = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
BEFORE_UPGRADE_HOOK_PREFIX = "before-upgrade.hook.cluster.cluster.x-k8s.io"
SKIP_PREFLIGHT_CHECKS = "machineset.cluster.x-k8s.io/skip-preflight-checks"
AUTOSCALER_MIN_SIZE = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
AUTOSCALER_MAX_SIZE = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
CLONED_FROM_NAME = "cluster.x-k8s.io/cloned-from-name"
CLONED_FROM_GROUPKIND = "cluster.x-k8s.io/cloned-from-groupkind"
REVISION = "machinedeployment.clusters.x-k8s.io/revision"
DESIRED_REPLICAS = "machinedeployment.clusters.x-k8s.io/desired-replicas"
MAX_REPLICAS = "machinedeployment.clusters.x-k8s.io/max-replicas"
OK_TO_DELETE = "runtime.cluster.x-k8s.io/ok-to-delete"
CONVERSION_DATA = "cluster.x-k8s.io/conversion-data"
BLOCK_MOVE = "clusterctl.cluster.x-k8s.io/block-move"
DELETE_FOR_MOVE = "clusterctl.cluster.x-k8s.io/delete-for-move"

# On Nodes.
NODE_CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
NODE_CLUSTER_NAMESPACE = "cluster.x-k8s.io/cluster-namespace"
NODE_MACHINE = "cluster.x-k8s.io/machine"
NODE_OWNER_KIND = "cluster.x-k8s.io/owner-kind"
NODE_OWNER_NAME = "cluster.x-k8s.io/owner-name"
LABELS_FROM_MACHINE = "cluster.x-k8s.io/labels-from-machine"
ANNOTATIONS_FROM_MACHINE = "cluster.x-k8s.io/annotations-from-machine"
TAINTS_FROM_MACHINE = "cluster.x-k8s.io/taints-from-machine"

# Managed topologies.
TOPOLOGY_DRY_RUN = "topology.cluster.x-k8s.io/dry-run"
TOPOLOGY_DEFER_UPGRADE = "topology.cluster.x-k8s.io/defer-upgrade"
TOPOLOGY_HOLD_UPGRADE_SEQUENCE = "topology.cluster.x-k8s.io/hold-upgrade-sequence"
TOPOLOGY_UPGRADE_CONCURRENCY = "topology.cluster.x-k8s.io/upgrade-concurrency"
TOPOLOGY_CLONE_NAME = "topology.homeport.dev/clone-name"
TOPOLOGY_UNSAFE_CLASS_NAME = "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check"
TOPOLOGY_UNSAFE_VERSION = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check"

# Updates in place.
UPDATE_IN_PROGRESS = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"

# KubeadmControlPlane.
SKIP_COREDNS = "controlplane.cluster.x-k8s.io/skip-coredns"
SKIP_KUBE_PROXY = "controlplane.cluster.x-k8s.io/skip-kube-proxy"
REMEDIATION_IN_PROGRESS = "controlplane.cluster.x-k8s.io/remediation-in-progress"
REMEDIATION_FOR = "controlplane.cluster.x-k8s.io/remediation-for"
PRE_TERMINATE_KCP_CLEANUP = PRE_TERMINATE_HOOK_PREFIX + "/kcp-cleanup"

# -- finalizers ------------------------------------------------------------------------------------------------------

CLUSTER_FINALIZER = "cluster.cluster.x-k8s.io"
MACHINE_FINALIZER = "machine.cluster.x-k8s.io"
SET_FINALIZER = "cluster.x-k8s.io/machineset"
DEPLOYMENT_FINALIZER = "cluster.x-k8s.io/machinedeployment"
KUBEADM_CONTROL_PLANE_FINALIZER = "kubeadm.controlplane.cluster.x-k8s.io"
RESOURCE_SET_FINALIZER = "addons.cluster.x-k8s.io"

# -- secrets and taints ----------------------------------------------------------------------------------------------

SECRET_TYPE = "cluster.x-k8s.io/secret"  # noqa: S105
RESOURCE_SET_SECRET_TYPE = "addons.cluster.x-k8s.io/resource-set"  # noqa: S105
KUBECONFIG_SUFFIX = "-kubeconfig"
SECRET_VALUE = "value"  # where a kubeconfig or bootstrap data stands in its Secret  # noqa: S105

UNINITIALIZED_TAINT = {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}
OUTDATED_REVISION_TAINT = {"key": "node.cluster.x-k8s.io/outdated-revision", "effect": "PreferNoSchedule"}

# -- conditions ------------------------------------------------------------------------------------------------------


class Condition:
    """Types of conditions, of all kinds."""

    AVAILABLE = "Available"
    READY = "Ready"
    UP_TO_DATE = "UpToDate"
    BOOTSTRAP_CONFIG_READY = "BootstrapConfigReady"
    INFRASTRUCTURE_READY = "InfrastructureReady"
    INFRASTRUCTURE_REACHABLE = "InfrastructureReachable"
    NO_ORPHANED_MACHINES = "NoOrphanedMachines"
    REFERENCES_RESOLVED = "ReferencesResolved"
    MACHINES_READY = "MachinesReady"
    MACHINES_UP_TO_DATE = "MachinesUpToDate"
    ROLLING_OUT = "RollingOut"
    SCALING_UP = "ScalingUp"
    SCALING_DOWN = "ScalingDown"
    REMEDIATING = "Remediating"
    UPDATING = "Updating"
    DELETING = "Deleting"
    PAUSED = "Paused"

    # Cluster
    TOPOLOGY_RECONCILED = "TopologyReconciled"
    CONTROL_PLANE_INITIALIZED = "ControlPlaneInitialized"
    CONTROL_PLANE_AVAILABLE = "ControlPlaneAvailable"
    CONTROL_PLANE_SCALING = "ControlPlaneScaling"  # of a hosted control plane
    CONTROL_PLANE_MACHINES_READY = "ControlPlaneMachinesReady"
    CONTROL_PLANE_MACHINES_UP_TO_DATE = "ControlPlaneMachinesUpToDate"
    WORKERS_AVAILABLE = "WorkersAvailable"
    WORKER_MACHINES_READY = "WorkerMachinesReady"
    WORKER_MACHINES_UP_TO_DATE = "WorkerMachinesUpToDate"
    REMOTE_CONNECTION_PROBE = "RemoteConnectionProbe"
    NETWORK_PLUGIN_READY = "NetworkPluginReady"
    NETWORKS_DISJOINT = "NetworksDisjoint"
    CONTROL_PLANE_ENDPOINT_FREE = "ControlPlaneEndpointFree"
    VARIABLES_READY = "VariablesReady"
    REF_VERSIONS_UP_TO_DATE = "RefVersionsUpToDate"

    # Machine
    NODE_READY = "NodeReady"
    NODE_HEALTHY = "NodeHealthy"
    CONTROLLER_HEALTHY = "ControllerHealthy"  # of a control plane Machine that has no Node
    HEALTH_CHECK_SUCCEEDED = "HealthCheckSucceeded"
    OWNER_REMEDIATED = "OwnerRemediated"
    EXTERNALLY_REMEDIATED = "ExternallyRemediated"
    REMEDIATION_ALLOWED = "RemediationAllowed"

    # ClusterResourceSet
    RESOURCES_APPLIED = "ResourcesApplied"

    # KubeadmConfig and KubeadmControlPlane
    CERTIFICATES_AVAILABLE = "CertificatesAvailable"
    DATA_SECRET_AVAILABLE = "DataSecretAvailable"  # noqa: S105
    INITIALIZED = "Initialized"
    ETCD_CLUSTER_HEALTHY = "EtcdClusterHealthy"
    CONTROL_PLANE_COMPONENTS_HEALTHY = "ControlPlaneComponentsHealthy"
    API_SERVER_POD_HEALTHY = "APIServerPodHealthy"
    CONTROLLER_MANAGER_POD_HEALTHY = "ControllerManagerPodHealthy"
    SCHEDULER_POD_HEALTHY = "SchedulerPodHealthy"
    ETCD_POD_HEALTHY = "EtcdPodHealthy"
    ETCD_MEMBER_HEALTHY = "EtcdMemberHealthy"
    NODE_KUBEADM_LABELS_AND_TAINTS_SET = "NodeKubeadmLabelsAndTaintsSet"


# These say that something is going on or wrong when they are True.
NEGATIVE = frozenset(
    {
        Condition.ROLLING_OUT,
        Condition.SCALING_UP,
        Condition.SCALING_DOWN,
        Condition.CONTROL_PLANE_SCALING,
        Condition.REMEDIATING,
        Condition.UPDATING,
        Condition.DELETING,
        Condition.PAUSED,
    }
)


class Reason:
    """Reasons of conditions, of all kinds."""

    AVAILABLE = "Available"
    NOT_AVAILABLE = "NotAvailable"
    AVAILABLE_UNKNOWN = "AvailableUnknown"
    READY = "Ready"
    NOT_READY = "NotReady"
    READY_UNKNOWN = "ReadyUnknown"
    UP_TO_DATE = "UpToDate"
    NOT_UP_TO_DATE = "NotUpToDate"
    UP_TO_DATE_UNKNOWN = "UpToDateUnknown"
    ROLLING_OUT = "RollingOut"
    NOT_ROLLING_OUT = "NotRollingOut"
    SCALING_UP = "ScalingUp"
    NOT_SCALING_UP = "NotScalingUp"
    SCALING_DOWN = "ScalingDown"
    NOT_SCALING_DOWN = "NotScalingDown"
    REMEDIATING = "Remediating"
    NOT_REMEDIATING = "NotRemediating"
    DELETING = "Deleting"
    NOT_DELETING = "NotDeleting"
    DELETION_COMPLETED = "DeletionCompleted"
    PAUSED = "Paused"
    NOT_PAUSED = "NotPaused"
    NO_REPLICAS = "NoReplicas"
    WAITING_FOR_REPLICAS_SET = "WaitingForReplicasSet"
    INTERNAL_ERROR = "InternalError"
    OWNED_BY_ANOTHER = "OwnedByAnother"
    OBJECT_DOES_NOT_EXIST = "ObjectDoesNotExist"
    OBJECT_DELETED = "ObjectDeleted"
    CONNECTION_DOWN = "ConnectionDown"
    INSPECTION_FAILED = "InspectionFailed"
    NOT_YET_REPORTED = "NotYetReported"
    NO_REASON_REPORTED = "NoReasonReported"
    NOT_PROVISIONED = "NotProvisioned"
    WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY = "WaitingForClusterInfrastructureReady"
    WAITING_FOR_CONTROL_PLANE_INITIALIZED = "WaitingForControlPlaneInitialized"
    WAITING_FOR_BOOTSTRAP_DATA = "WaitingForBootstrapData"

    # Cluster
    INITIALIZED = "Initialized"
    NOT_INITIALIZED = "NotInitialized"
    ENDPOINT_NOT_USABLE = "EndpointNotUsable"
    NO_WORKERS = "NoWorkers"
    PROBE_SUCCEEDED = "ProbeSucceeded"
    PROBE_FAILED = "ProbeFailed"
    NO_NETWORK_PLUGIN = "NoNetworkPlugin"
    WAITING_FOR_BEFORE_DELETE_HOOK = "WaitingForBeforeDeleteHook"
    WAITING_FOR_WORKERS_DELETION = "WaitingForWorkersDeletion"
    WAITING_FOR_CONTROL_PLANE_DELETION = "WaitingForControlPlaneDeletion"
    WAITING_FOR_INFRASTRUCTURE_DELETION = "WaitingForInfrastructureDeletion"
    RECONCILE_SUCCEEDED = "ReconcileSucceeded"
    RECONCILE_FAILED = "ReconcileFailed"
    CLUSTER_UPGRADING = "ClusterUpgrading"
    CLUSTER_CLASS_NOT_RECONCILED = "ClusterClassNotReconciled"
    MACHINE_DEPLOYMENTS_UPGRADE_DEFERRED = "MachineDeploymentsUpgradeDeferred"
    MACHINE_POOLS_CREATE_PENDING = "MachinePoolsCreatePending"
    VARIABLES_READY = "VariablesReady"
    VARIABLE_DISCOVERY_FAILED = "VariableDiscoveryFailed"
    REF_VERSIONS_UP_TO_DATE = "RefVersionsUpToDate"
    REF_VERSIONS_NOT_UP_TO_DATE = "RefVersionsNotUpToDate"
    TEMPLATES_NOT_USABLE = "TemplatesNotUsable"

    # Machine
    WAITING_FOR_MIN_READY_SECONDS = "WaitingForMinReadySeconds"
    UPDATING = "Updating"
    NOT_UPDATING = "NotUpdating"
    IN_PLACE_UPDATING = "InPlaceUpdating"
    DATA_SECRET_PROVIDED = "DataSecretProvided"  # noqa: S105
    NODE_READY = "NodeReady"
    NODE_NOT_READY = "NodeNotReady"
    NODE_READY_UNKNOWN = "NodeReadyUnknown"
    NODE_HEALTHY = "NodeHealthy"
    NODE_NOT_HEALTHY = "NodeNotHealthy"
    NODE_HEALTH_UNKNOWN = "NodeHealthyUnknown"
    NODE_DOES_NOT_EXIST = "NodeDoesNotExist"
    NODE_DELETED = "NodeDeleted"
    CONTROLLER_HEALTHY = "ControllerHealthy"
    CONTROLLER_NOT_HEALTHY = "ControllerNotHealthy"
    HEALTH_CHECK_SUCCEEDED = "HealthCheckSucceeded"
    UNHEALTHY_NODE = "UnhealthyNode"
    UNHEALTHY_MACHINE = "UnhealthyMachine"
    NODE_STARTUP_TIMEOUT = "NodeStartupTimeout"
    HAS_REMEDIATE_ANNOTATION = "HasRemediateAnnotation"
    WAITING_FOR_REMEDIATION = "WaitingForRemediation"
    REMEDIATION_TEMPLATE_NOT_FOUND = "RemediationTemplateNotFound"
    REMEDIATION_REQUEST_CREATION_FAILED = "RemediationRequestCreationFailed"
    REMEDIATION_ALLOWED = "RemediationAllowed"
    TOO_MANY_UNHEALTHY = "TooManyUnhealthy"
    CANNOT_BE_REMEDIATED = "CannotBeRemediated"
    REMEDIATION_DEFERRED = "RemediationDeferred"
    MACHINE_DELETING = "MachineDeleting"
    WAITING_FOR_PRE_DRAIN_HOOK = "WaitingForPreDrainHook"
    DRAINING_NODE = "DrainingNode"
    WAITING_FOR_VOLUME_DETACH = "WaitingForVolumeDetach"
    WAITING_FOR_PRE_TERMINATE_HOOK = "WaitingForPreTerminateHook"
    WAITING_FOR_BOOTSTRAP_DELETION = "WaitingForBootstrapDeletion"
    DELETING_NODE = "DeletingNode"

    # ClusterResourceSet
    APPLIED = "Applied"
    NOT_APPLIED = "NotApplied"
    WRONG_SECRET_TYPE = "WrongSecretType"  # noqa: S105

    # KubeadmControlPlane
    HEALTHY = "Healthy"
    NOT_HEALTHY = "NotHealthy"
    HEALTH_UNKNOWN = "HealthUnknown"
    WAITING_FOR_MACHINE_DELETION = "WaitingForMachineDeletion"
    POD_RUNNING = "Running"
    POD_PROVISIONING = "Provisioning"
    POD_DOES_NOT_EXIST = "DoesNotExist"
    POD_FAILED = "Failed"
    LABELS_AND_TAINTS_SET = "Set"
    LABELS_AND_TAINTS_NOT_SET = "NotSet"


# -- label values ----------------------------------------------------------------------------------------------------

_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def label_value(name: str) -> str:
    """`name`, or a hash where it can't be a label's value. The hash is the one that all of Cluster API uses."""
    if _LABEL_VALUE.fullmatch(name):
        return name
    digest = fnv32a(name.encode()).to_bytes(4, "big")
    return f"hash_{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}_z"


def fnv32a(data: bytes) -> int:
    """Fowler-Noll-Vo, variant 1a, 32 bits: Kubernetes makes short, stable names with it."""
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value
