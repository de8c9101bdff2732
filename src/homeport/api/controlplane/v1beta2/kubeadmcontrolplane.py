"""KubeadmControlPlane: control-plane Machines run by kubeadm."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.bootstrap.v1beta2.kubeadmconfig import KubeadmConfigSpec
from homeport.api.cluster.v1beta2.machine import MachineReadinessGate
from homeport.api.cluster.v1beta2.reference import ContractRef, MachineTaint, StatusVersion, TemplateMeta
from homeport.api.cluster.v1beta2.shape import DeletionTimeouts
from homeport.api.field import Conditions, Count, IntOrString, NonEmpty, OldCondition, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, ListType, Range, Required, Size


class MachineNamingSpec(NonEmpty):
    """How Machines are named."""

    template: Annotated[str, Size(1, 256)] = ""


class KubeadmControlPlaneMachineTemplateDeletionSpec(DeletionTimeouts):
    """How long the steps of a deletion may take."""


class KubeadmControlPlaneMachineTemplateSpec(Model):
    """Infrastructure, gates, taints and deletion of control-plane Machines."""

    deletion: KubeadmControlPlaneMachineTemplateDeletionSpec = msgspec.field(
        default_factory=KubeadmControlPlaneMachineTemplateDeletionSpec
    )
    infrastructure_ref: Required[ContractRef | None] = None
    readiness_gates: Annotated[list[MachineReadinessGate], Size(1, 32), ListType("map", ("conditionType",))] = []
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []


class KubeadmControlPlaneMachineTemplate(Model):
    """What the control plane's Machines are made by."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: Required[KubeadmControlPlaneMachineTemplateSpec] = msgspec.field(
        default_factory=KubeadmControlPlaneMachineTemplateSpec
    )


class KubeadmControlPlaneRemediationSpec(NonEmpty):
    """How often and how fast unhealthy Machines are replaced."""

    max_retry: int | None = None
    min_healthy_period_seconds: Count | None = None
    retry_period_seconds: Count | None = None


class KubeadmControlPlaneRolloutBeforeSpec(NonEmpty):
    """What makes Machines be replaced early."""

    certificates_expiry_days: Annotated[int, Range(7)] = 0


class KubeadmControlPlaneRolloutStrategyRollingUpdate(NonEmpty):
    """How many more Machines there may be while they are replaced."""

    max_surge: IntOrString | None = None


class KubeadmControlPlaneRolloutStrategy(NonEmpty):
    """How Machines are replaced."""

    rolling_update: KubeadmControlPlaneRolloutStrategyRollingUpdate = msgspec.field(
        default_factory=KubeadmControlPlaneRolloutStrategyRollingUpdate
    )
    type: Required[Annotated[str, Enum(("RollingUpdate",))]] = ""


class KubeadmControlPlaneRolloutSpec(NonEmpty):
    """When and how Machines are replaced."""

    after: Time | None = None
    before: KubeadmControlPlaneRolloutBeforeSpec = msgspec.field(default_factory=KubeadmControlPlaneRolloutBeforeSpec)
    strategy: KubeadmControlPlaneRolloutStrategy = msgspec.field(default_factory=KubeadmControlPlaneRolloutStrategy)


class KubeadmControlPlaneSpec(Model):
    """Desired state of a control plane."""

    kubeadm_config_spec: KubeadmConfigSpec = msgspec.field(default_factory=KubeadmConfigSpec)
    machine_naming: MachineNamingSpec = msgspec.field(default_factory=MachineNamingSpec)
    machine_template: Required[KubeadmControlPlaneMachineTemplate] = msgspec.field(
        default_factory=KubeadmControlPlaneMachineTemplate
    )
    remediation: KubeadmControlPlaneRemediationSpec = msgspec.field(default_factory=KubeadmControlPlaneRemediationSpec)
    replicas: int | None = None
    rollout: KubeadmControlPlaneRolloutSpec = msgspec.field(default_factory=KubeadmControlPlaneRolloutSpec)
    version: Required[Annotated[str, Size(1, 256)]] = ""


class KubeadmControlPlaneV1Beta1DeprecatedStatus(Model):
    """What v1beta1 reported; nobody reads it any more."""

    conditions: list[OldCondition] = []
    failure_message: Annotated[str, Size(1, 10240)] | None = None
    failure_reason: str = ""
    ready_replicas: int = 0
    unavailable_replicas: int = 0
    updated_replicas: int = 0


class KubeadmControlPlaneDeprecatedStatus(Model):
    """Status of older versions of the API."""

    v1beta1: KubeadmControlPlaneV1Beta1DeprecatedStatus = msgspec.field(
        default_factory=KubeadmControlPlaneV1Beta1DeprecatedStatus
    )


class KubeadmControlPlaneInitializationStatus(NonEmpty):
    """Whether the control plane took requests once."""

    control_plane_initialized: bool | None = None


class LastRemediationStatus(Model):
    """The last replacement of an unhealthy Machine."""

    machine: Required[Annotated[str, Size(1, 253)]] = ""
    retry_count: Required[Count | None] = None
    time: Required[Time | None] = None


class KubeadmControlPlaneStatus(NonEmpty):
    """What a control plane is."""

    available_replicas: int | None = None
    conditions: Conditions = []
    deprecated: KubeadmControlPlaneDeprecatedStatus = msgspec.field(default_factory=KubeadmControlPlaneDeprecatedStatus)
    initialization: KubeadmControlPlaneInitializationStatus = msgspec.field(
        default_factory=KubeadmControlPlaneInitializationStatus
    )
    last_remediation: LastRemediationStatus = msgspec.field(default_factory=LastRemediationStatus)
    observed_generation: Annotated[int, Range(1), Format("int64")] = 0
    ready_replicas: int | None = None
    replicas: int | None = None
    selector: Annotated[str, Size(1, 4096)] = ""
    up_to_date_replicas: int | None = None
    version: Annotated[str, Size(1, 256)] = ""
    versions: Annotated[list[StatusVersion], Size(1, 100), ListType("map", ("version",))] = []


@resource("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane", "kubeadmcontrolplanes")
class KubeadmControlPlane(Object):
    """A KubeadmControlPlane is a control plane of Machines that kubeadm sets up."""

    spec: Required[KubeadmControlPlaneSpec] = msgspec.field(default_factory=KubeadmControlPlaneSpec)
    status: KubeadmControlPlaneStatus = msgspec.field(default_factory=KubeadmControlPlaneStatus)
