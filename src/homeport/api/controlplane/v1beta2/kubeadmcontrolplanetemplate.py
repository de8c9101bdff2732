"""KubeadmControlPlaneTemplate: what control planes of a ClusterClass are made by."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.bootstrap.v1beta2.kubeadmconfig import KubeadmConfigSpec
from homeport.api.cluster.v1beta2.reference import MachineTaint, TemplateMeta
from homeport.api.cluster.v1beta2.shape import DeletionTimeouts
from homeport.api.controlplane.v1beta2.kubeadmcontrolplane import (
    KubeadmControlPlaneRemediationSpec,
    KubeadmControlPlaneRolloutSpec,
    MachineNamingSpec,
)
from homeport.api.field import NonEmpty
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import ListType, Required, Size


class KubeadmControlPlaneTemplateMachineTemplateDeletionSpec(DeletionTimeouts):
    """How long the steps of a deletion may take."""


class KubeadmControlPlaneTemplateMachineTemplateSpec(NonEmpty):
    """Deletion and taints of such Machines."""

    deletion: KubeadmControlPlaneTemplateMachineTemplateDeletionSpec = msgspec.field(
        default_factory=KubeadmControlPlaneTemplateMachineTemplateDeletionSpec
    )
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []


class KubeadmControlPlaneTemplateMachineTemplate(NonEmpty):
    """What Machines of such control planes are made by."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: KubeadmControlPlaneTemplateMachineTemplateSpec = msgspec.field(
        default_factory=KubeadmControlPlaneTemplateMachineTemplateSpec
    )


class KubeadmControlPlaneTemplateResourceSpec(NonEmpty):
    """Desired state of such a control plane; replicas, version and infrastructure come from the Cluster."""

    kubeadm_config_spec: KubeadmConfigSpec = msgspec.field(default_factory=KubeadmConfigSpec)
    machine_naming: MachineNamingSpec = msgspec.field(default_factory=MachineNamingSpec)
    machine_template: KubeadmControlPlaneTemplateMachineTemplate = msgspec.field(
        default_factory=KubeadmControlPlaneTemplateMachineTemplate
    )
    remediation: KubeadmControlPlaneRemediationSpec = msgspec.field(default_factory=KubeadmControlPlaneRemediationSpec)
    rollout: KubeadmControlPlaneRolloutSpec = msgspec.field(default_factory=KubeadmControlPlaneRolloutSpec)


class KubeadmControlPlaneTemplateResource(NonEmpty):
    """The control plane to make."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: KubeadmControlPlaneTemplateResourceSpec = msgspec.field(
        default_factory=KubeadmControlPlaneTemplateResourceSpec
    )


class KubeadmControlPlaneTemplateSpec(Model):
    """Holds the template."""

    template: Required[KubeadmControlPlaneTemplateResource] = msgspec.field(
        default_factory=KubeadmControlPlaneTemplateResource
    )


@resource("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlaneTemplate", "kubeadmcontrolplanetemplates")
class KubeadmControlPlaneTemplate(Object):
    """A KubeadmControlPlaneTemplate is the template of the control planes of a ClusterClass."""

    spec: KubeadmControlPlaneTemplateSpec = msgspec.field(default_factory=KubeadmControlPlaneTemplateSpec)
