"""Types of controlplane.cluster.x-k8s.io, version v1beta2."""

from __future__ import annotations

from homeport.api.controlplane.v1beta2.kubeadmcontrolplane import (
    KubeadmControlPlane,
    KubeadmControlPlaneDeprecatedStatus,
    KubeadmControlPlaneInitializationStatus,
    KubeadmControlPlaneMachineTemplate,
    KubeadmControlPlaneMachineTemplateDeletionSpec,
    KubeadmControlPlaneMachineTemplateSpec,
    KubeadmControlPlaneRemediationSpec,
    KubeadmControlPlaneRolloutBeforeSpec,
    KubeadmControlPlaneRolloutSpec,
    KubeadmControlPlaneRolloutStrategy,
    KubeadmControlPlaneRolloutStrategyRollingUpdate,
    KubeadmControlPlaneSpec,
    KubeadmControlPlaneStatus,
    KubeadmControlPlaneV1Beta1DeprecatedStatus,
    LastRemediationStatus,
    MachineNamingSpec,
)
from homeport.api.controlplane.v1beta2.kubeadmcontrolplanetemplate import (
    KubeadmControlPlaneTemplate,
    KubeadmControlPlaneTemplateMachineTemplate,
    KubeadmControlPlaneTemplateMachineTemplateDeletionSpec,
    KubeadmControlPlaneTemplateMachineTemplateSpec,
    KubeadmControlPlaneTemplateResource,
    KubeadmControlPlaneTemplateResourceSpec,
    KubeadmControlPlaneTemplateSpec,
)

__all__ = [
    "KubeadmControlPlane",
    "KubeadmControlPlaneDeprecatedStatus",
    "KubeadmControlPlaneInitializationStatus",
    "KubeadmControlPlaneMachineTemplate",
    "KubeadmControlPlaneMachineTemplateDeletionSpec",
    "KubeadmControlPlaneMachineTemplateSpec",
    "KubeadmControlPlaneRemediationSpec",
    "KubeadmControlPlaneRolloutBeforeSpec",
    "KubeadmControlPlaneRolloutSpec",
    "KubeadmControlPlaneRolloutStrategy",
    "KubeadmControlPlaneRolloutStrategyRollingUpdate",
    "KubeadmControlPlaneSpec",
    "KubeadmControlPlaneStatus",
    "KubeadmControlPlaneTemplate",
    "KubeadmControlPlaneTemplateMachineTemplate",
    "KubeadmControlPlaneTemplateMachineTemplateDeletionSpec",
    "KubeadmControlPlaneTemplateMachineTemplateSpec",
    "KubeadmControlPlaneTemplateResource",
    "KubeadmControlPlaneTemplateResourceSpec",
    "KubeadmControlPlaneTemplateSpec",
    "KubeadmControlPlaneV1Beta1DeprecatedStatus",
    "LastRemediationStatus",
    "MachineNamingSpec",
]
