"""KubeadmControlPlaneTemplate: what control planes of a ClusterClass are made by."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.bootstrap.v1beta1.kubeadmconfig import KubeadmConfigSpec
from homeport.api.cluster.v1beta1.reference import TemplateMeta
from homeport.api.cluster.v1beta2.reference import MachineTaint
from homeport.api.controlplane.v1beta1.kubeadmcontrolplane import (
    MachineNamingStrategy,
    RemediationStrategy,
    RolloutBefore,
    RolloutStrategy,
)
from homeport.api.field import Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Default, ListType, Required, Size


class KubeadmControlPlaneTemplateMachineTemplate(Model):
    """What Machines of such control planes are made by."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    node_deletion_timeout: str | None = None
    node_drain_timeout: str | None = None
    node_volume_detach_timeout: str | None = None
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []


class KubeadmControlPlaneTemplateResourceSpec(Model):
    """Desired state of such a control plane; replicas, version and infrastructure come from the Cluster."""

    kubeadm_config_spec: Required[KubeadmConfigSpec] = msgspec.field(default_factory=KubeadmConfigSpec)
    machine_naming_strategy: MachineNamingStrategy | None = None
    machine_template: KubeadmControlPlaneTemplateMachineTemplate | None = None
    remediation_strategy: RemediationStrategy | None = None
    rollout_after: Time | None = None
    rollout_before: RolloutBefore | None = None
    rollout_strategy: (
        Annotated[RolloutStrategy, Default({"rollingUpdate": {"maxSurge": 1}, "type": "RollingUpdate"})] | None
    ) = None


class KubeadmControlPlaneTemplateResource(Model):
    """The control plane to make."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: Required[KubeadmControlPlaneTemplateResourceSpec] = msgspec.field(
        default_factory=KubeadmControlPlaneTemplateResourceSpec
    )


class KubeadmControlPlaneTemplateSpec(Model):
    """Holds the template."""

    template: Required[KubeadmControlPlaneTemplateResource] = msgspec.field(
        default_factory=KubeadmControlPlaneTemplateResource
    )


@resource("controlplane.cluster.x-k8s.io", "v1beta1", "KubeadmControlPlaneTemplate", "kubeadmcontrolplanetemplates")
class KubeadmControlPlaneTemplate(Object):
    """A KubeadmControlPlaneTemplate is the template of the control planes of a ClusterClass."""

    spec: KubeadmControlPlaneTemplateSpec = msgspec.field(default_factory=KubeadmControlPlaneTemplateSpec)
