"""Fields of control planes that kubeadm makes."""

from __future__ import annotations

from collections.abc import Mapping

_AFTER = (
    "Time in RFC 3339 format, for example 2026-05-01T02:00:00Z. Once it has passed, all Machines created before it are "
    "replaced one at a time."
)

FIELDS: Mapping[str, str] = {
    "KubeadmControlPlane.spec": "Desired state of the control plane: version, number of Machines, and how they are made.",
    "KubeadmControlPlane.status": "Observed state of the control plane: how many Machines are ready, and conditions.",
    "KubeadmControlPlaneTemplate.spec": "Template for the control planes of a ClusterClass.",
    "KubeadmControlPlaneTemplateSpec.template": "The KubeadmControlPlane to create for each Cluster of the class.",
    "KubeadmControlPlaneTemplateResource.spec": "Desired state of each control plane. Replicas, version and infrastructure "
    "come from the Cluster and its class.",
    "replicas": "Number of control plane Machines, odd unless etcd is external, for example 3. Default: 1.",
    "KubeadmControlPlaneStatus.replicas": "Number of control plane Machines that exist, deleting ones included.",
    "version": "Kubernetes version of the control plane, for example v1.32.4. Change it to upgrade.",
    "KubeadmControlPlaneStatus.version": "Lowest Kubernetes version that a Machine of the control plane runs.",
    "versions": "Kubernetes versions that Machines of the control plane run, with the number of Machines of each.",
    "kubeadmConfigSpec": "Settings of kubeadm and of the hosts that it runs on. A change replaces Machines one at a time.",
    "machineTemplate": "How the Machines of the control plane are created.",
    "KubeadmControlPlaneMachineTemplate.infrastructureRef": "Template of the virtual machines, for example a "
    "NutanixMachineTemplate. Point it at a new template to change Machines.",
    "KubeadmControlPlaneMachineTemplateSpec.infrastructureRef": "Template of the virtual machines, for example a "
    "NutanixMachineTemplate of the same namespace. Point it at a new template to change Machines.",
    "KubeadmControlPlaneMachineTemplate.spec": "Infrastructure, readiness gates, taints and deletion of the Machines.",
    "KubeadmControlPlaneTemplateMachineTemplate.spec": "Deletion and taints of the Machines.",
    "machineNaming": "How Machines of the control plane are named. Default: the control plane's name and a random suffix.",
    "machineNamingStrategy": "How Machines of the control plane are named. Default: the control plane's name and a random "
    "suffix.",
    "template": "Go template of the names. It must contain {{ .random }}, and may contain {{ .cluster.name }} and "
    "{{ .kubeadmControlPlane.name }}.",
    "taints": "Taints that the Nodes of the control plane get, in addition to those that kubeadm sets.",
    "deletion": "How long each step of deleting a Machine may take.",
    "readinessGates": "Conditions of a Machine that must be True before it counts as ready, in addition to its own.",
    "nodeDrainTimeout": "How long draining a Node may take, for example 5m. 0 or left out: no limit.",
    "nodeVolumeDetachTimeout": "How long detaching the volumes of a Node may take, for example 5m. 0 or left out: no limit.",
    "nodeDeletionTimeout": "How long deleting the Node object may take, for example 10s. 0: no limit. Default: 10s.",
    "nodeDrainTimeoutSeconds": "Seconds that draining a Node may take. 0 or left out: no limit.",
    "nodeVolumeDetachTimeoutSeconds": "Seconds that detaching the volumes of a Node may take. 0 or left out: no limit.",
    "nodeDeletionTimeoutSeconds": "Seconds that deleting the Node object may take. 0: no limit. Default: 10.",
    "rollout": "When and how Machines are replaced.",
    "rolloutAfter": _AFTER,
    "KubeadmControlPlaneRolloutSpec.after": _AFTER,
    "rolloutBefore": "Replaces Machines before something of them expires.",
    "KubeadmControlPlaneRolloutSpec.before": "Replaces Machines before something of them expires.",
    "certificatesExpiryDays": "Replaces a Machine when its certificates expire within this number of days, at least 7, for "
    "example 21.",
    "rolloutStrategy": "How Machines are replaced. Default: RollingUpdate with a surge of 1.",
    "strategy": "How Machines are replaced. Default: RollingUpdate with a surge of 1.",
    "type": "Type of the rollout. RollingUpdate, the only one, replaces Machines one at a time.",
    "rollingUpdate": "How many Machines may exist beyond the desired number while they are replaced.",
    "maxSurge": "Number of extra Machines during a rollout. 1 creates a new Machine first, 0 deletes an old one first and "
    "needs at least 3 replicas. Default: 1.",
    "remediation": "How often, and how soon after each other, unhealthy Machines are replaced.",
    "remediationStrategy": "How often, and how soon after each other, unhealthy Machines are replaced.",
    "maxRetry": "How often the replacement of a Machine that failed again is repeated. Default: no limit.",
    "retryPeriod": "Time to wait before the replacement of a Machine is repeated, for example 10m. Default: 0s.",
    "retryPeriodSeconds": "Seconds to wait before the replacement of a Machine is repeated. Default: 0.",
    "minHealthyPeriod": "Time that a replacement must have stayed healthy for its next failure to count as a new problem, "
    "for example 2h. Default: 1h.",
    "minHealthyPeriodSeconds": "Seconds that a replacement must have stayed healthy for its next failure to count as a new "
    "problem. Default: 3600.",
    "lastRemediation": "Last replacement of an unhealthy Machine.",
    "LastRemediationStatus.machine": "Name of the Machine that was replaced.",
    "LastRemediationStatus.retryCount": "Number of times that the replacement was repeated.",
    "LastRemediationStatus.time": "Time at which the replacement started, in RFC 3339 format.",
    "LastRemediationStatus.timestamp": "Time at which the replacement started, in RFC 3339 format.",
    "initialization": "Milestones of the control plane that, once reached, stay reached.",
    "controlPlaneInitialized": "True from the moment that the control plane first answered requests.",
    "initialized": "True from the moment that the control plane first answered requests.",
    "KubeadmControlPlaneStatus.ready": "True when the API server of the control plane answers requests.",
    "KubeadmControlPlaneV1Beta1DeprecatedStatus.ready": "True when the API server of the control plane answers requests.",
    "selector": "Label selector of the Machines in string form. The scale subresource reads it.",
    "readyReplicas": "Number of Machines that are ready.",
    "availableReplicas": "Number of Machines that are available.",
    "upToDateReplicas": "Number of Machines that match the current spec.",
    "updatedReplicas": "Number of Machines that match the current spec.",
    "unavailableReplicas": "Number of Machines that are missing or not available.",
}  # fmt: skip
