"""Fields of ClusterResourceSets."""

from __future__ import annotations

from collections.abc import Mapping

FIELDS: Mapping[str, str] = {
    "ClusterResourceSet.spec": "Manifests to apply, the Clusters that get them, and how often they are applied.",
    "ClusterResourceSet.status": "Progress of the set: whether everything was applied to all matching Clusters.",
    "ClusterResourceSetSpec.clusterSelector": "Clusters of the same namespace, by label, that get the resources. An empty "
    "selector is refused. It cannot be changed later.",
    "ClusterResourceSetSpec.resources": "ConfigMaps and Secrets of the same namespace that hold manifests as YAML or JSON. "
    "Secrets need the type addons.cluster.x-k8s.io/resource-set.",
    "ClusterResourceSetSpec.strategy": "How often resources are applied. ApplyOnce creates what is missing and never looks "
    "again, Reconcile applies every change. Default: ApplyOnce. It cannot be changed later.",
    "ResourceRef.kind": "Kind of the object that holds the manifests: ConfigMap or Secret.",
    "ResourceRef.name": "Name of the ConfigMap or Secret that holds the manifests.",
    "ClusterResourceSetBinding.spec": "Cluster of the binding, and the sets that were applied to it.",
    "ClusterResourceSetBindingSpec.bindings": "Sets that match the Cluster, with the state of each of their resources.",
    "ClusterResourceSetBindingSpec.clusterName": "Name of the Cluster that this binding records. It is the binding's own name.",
    "ResourceSetBinding.clusterResourceSetName": "Name of the ClusterResourceSet that the entry is about.",
    "ResourceSetBinding.resources": "State of each ConfigMap and Secret of the set in this Cluster.",
    "ResourceBinding.applied": "True when all manifests of the resource were applied to the Cluster.",
    "ResourceBinding.hash": "Hash of the content that was applied last. A different hash means a change to apply.",
    "ResourceBinding.kind": "Kind of the object that holds the manifests: ConfigMap or Secret.",
    "ResourceBinding.lastAppliedTime": "Time at which the resource was applied last, in RFC 3339 format.",
    "ResourceBinding.name": "Name of the ConfigMap or Secret that was applied.",
}  # fmt: skip
