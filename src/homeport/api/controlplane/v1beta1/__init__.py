"""Types of controlplane.cluster.x-k8s.io, version v1beta1."""

from __future__ import annotations

from homeport.api.controlplane.v1beta1.kubeadmcontrolplane import (
    KubeadmControlPlane,
    KubeadmControlPlaneMachineTemplate,
    KubeadmControlPlaneSpec,
    KubeadmControlPlaneStatus,
    KubeadmControlPlaneV1Beta2Status,
    LastRemediationStatus,
    MachineNamingStrategy,
    RemediationStrategy,
    RollingUpdate,
    RolloutBefore,
    RolloutStrategy,
)
from homeport.api.controlplane.v1beta1.kubeadmcontrolplanetemplate import (
    KubeadmControlPlaneTemplate,
    KubeadmControlPlaneTemplateMachineTemplate,
    KubeadmControlPlaneTemplateResource,
    KubeadmControlPlaneTemplateResourceSpec,
    KubeadmControlPlaneTemplateSpec,
)

__all__ = [
    "KubeadmControlPlane",
    "KubeadmControlPlaneMachineTemplate",
    "KubeadmControlPlaneSpec",
    "KubeadmControlPlaneStatus",
    "KubeadmControlPlaneTemplate",
    "KubeadmControlPlaneTemplateMachineTemplate",
    "KubeadmControlPlaneTemplateResource",
    "KubeadmControlPlaneTemplateResourceSpec",
    "KubeadmControlPlaneTemplateSpec",
    "KubeadmControlPlaneV1Beta2Status",
    "LastRemediationStatus",
    "MachineNamingStrategy",
    "RemediationStrategy",
    "RollingUpdate",
    "RolloutBefore",
    "RolloutStrategy",
]
