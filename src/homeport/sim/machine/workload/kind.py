"""Where the kinds are served that a workload cluster's own machinery reads and writes."""

from __future__ import annotations

from typing import Any, Final

from homeport.api.meta import Resource

Json = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"

NODE: Final = Resource("", "v1", "Node", "nodes", namespaced=False)
POD: Final = Resource("", "v1", "Pod", "pods")
SECRET: Final = Resource("", "v1", "Secret", "secrets")
CONFIG_MAP: Final = Resource("", "v1", "ConfigMap", "configmaps")
SERVICE: Final = Resource("", "v1", "Service", "services")
SERVICE_ACCOUNT: Final = Resource("", "v1", "ServiceAccount", "serviceaccounts")
NAMESPACE: Final = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
LEASE: Final = Resource("coordination.k8s.io", "v1", "Lease", "leases")
DEPLOYMENT: Final = Resource("apps", "v1", "Deployment", "deployments")
REPLICA_SET: Final = Resource("apps", "v1", "ReplicaSet", "replicasets")
DAEMON_SET: Final = Resource("apps", "v1", "DaemonSet", "daemonsets")
STATEFUL_SET: Final = Resource("apps", "v1", "StatefulSet", "statefulsets")
BUDGET: Final = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
ATTACHMENT: Final = Resource("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False)
CLAIM: Final = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
VOLUME: Final = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
STORAGE_CLASS: Final = Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
REQUEST: Final = Resource(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)
ROLE: Final = Resource(_RBAC, "v1", "Role", "roles")
ROLE_BINDING: Final = Resource(_RBAC, "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE: Final = Resource(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING: Final = Resource(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
