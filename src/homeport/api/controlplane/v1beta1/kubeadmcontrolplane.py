"""KubeadmControlPlane: control-plane Machines run by kubeadm."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.bootstrap.v1beta1.kubeadmconfig import KubeadmConfigSpec
from homeport.api.cluster.v1beta1.reference import ReplicaStatus, TemplateMeta
from homeport.api.cluster.v1beta2.machine import MachineReadinessGate
from homeport.api.cluster.v1beta2.reference import MachineTaint, StatusVersion
from homeport.api.core.v1 import ObjectReference
from homeport.api.field import IntOrString, Long, OldCondition, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Default, Enum, ListType, Required, Size


class MachineNamingStrategy(Model):
    """How Machines are named."""

    template: Annotated[str, Size(1, 256)] = ""


class KubeadmControlPlaneMachineTemplate(Model):
    """What the control plane's Machines are made by."""

    infrastructure_ref: Required[ObjectReference | None] = None
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    node_deletion_timeout: str | None = None
    node_drain_timeout: str | None = None
    node_volume_detach_timeout: str | None = None
    readiness_gates: Annotated[list[MachineReadinessGate], Size(None, 32), ListType("map", ("conditionType",))] = []
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []


class RemediationStrategy(Model):
    """How often and how fast unhealthy Machines are replaced."""

    max_retry: int | None = None
    min_healthy_period: str | None = None
    retry_period: str = ""


class RolloutBefore(Model):
    """What makes Machines be replaced early."""

    certificates_expiry_days: int | None = None


class RollingUpdate(Model):
    """How many more Machines there may be while they are replaced."""

    max_surge: IntOrString | None = None


class RolloutStrategy(Model):
    """How Machines are replaced."""

    rolling_update: RollingUpdate | None = None
    type: Annotated[str, Enum(("RollingUpdate",))] = ""


class KubeadmControlPlaneSpec(Model):
    """Desired state of a control plane."""

    kubeadm_config_spec: Required[KubeadmConfigSpec] = msgspec.field(default_factory=KubeadmConfigSpec)
    machine_naming_strategy: MachineNamingStrategy | None = None
    machine_template: Required[KubeadmControlPlaneMachineTemplate] = msgspec.field(
        default_factory=KubeadmControlPlaneMachineTemplate
    )
    remediation_strategy: RemediationStrategy | None = None
    replicas: int | None = None
    rollout_after: Time | None = None
    rollout_before: RolloutBefore | None = None
    rollout_strategy: (
        Annotated[RolloutStrategy, Default({"rollingUpdate": {"maxSurge": 1}, "type": "RollingUpdate"})] | None
    ) = None
    version: Required[Annotated[str, Size(1, 256)]] = ""


class LastRemediationStatus(Model):
    """The last replacement of an unhealthy Machine."""

    machine: Required[Annotated[str, Size(1, 253)]] = ""
    retry_count: Required[int] = 0
    timestamp: Required[Time | None] = None


class KubeadmControlPlaneV1Beta2Status(ReplicaStatus):
    """Status in the manner of v1beta2."""


class KubeadmControlPlaneStatus(Model):
    """What a control plane is."""

    conditions: list[OldCondition] = []
    failure_message: Annotated[str, Size(1, 10240)] | None = None
    failure_reason: str = ""
    initialized: bool = False
    last_remediation: LastRemediationStatus | None = None
    observed_generation: Long = 0
    ready: bool = False
    ready_replicas: int = 0
    replicas: int = 0
    selector: Annotated[str, Size(1, 4096)] = ""
    unavailable_replicas: int = 0
    updated_replicas: int = 0
    v1beta2: KubeadmControlPlaneV1Beta2Status | None = None
    version: Annotated[str, Size(1, 256)] | None = None
    versions: Annotated[list[StatusVersion], Size(1, 100), ListType("map", ("version",))] = []


@resource("controlplane.cluster.x-k8s.io", "v1beta1", "KubeadmControlPlane", "kubeadmcontrolplanes")
class KubeadmControlPlane(Object):
    """A KubeadmControlPlane is a control plane of Machines that kubeadm sets up."""

    spec: KubeadmControlPlaneSpec = msgspec.field(default_factory=KubeadmControlPlaneSpec)
    status: KubeadmControlPlaneStatus = msgspec.field(default_factory=KubeadmControlPlaneStatus)
