"""MachineDeployment: MachineSets that are rolled over when their template changes."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta1.machine import MachineTemplateSpec
from homeport.api.cluster.v1beta1.reference import MachineNamingStrategy, ReplicaStatus
from homeport.api.cluster.v1beta2.reference import StatusVersion
from homeport.api.field import IntOrString, LabelSelector, Long, OldCondition, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Required, Size


class RemediationStrategy(Model):
    """How often and how fast unhealthy Machines are replaced."""

    max_in_flight: IntOrString | None = None


class MachineRollingUpdateDeployment(Model):
    """How many Machines may be missing or surplus meanwhile."""

    delete_policy: Annotated[str, Enum(("Random", "Newest", "Oldest"))] | None = None
    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class MachineDeploymentStrategy(Model):
    """How Machines are replaced."""

    remediation: RemediationStrategy | None = None
    rolling_update: MachineRollingUpdateDeployment | None = None
    type: Annotated[str, Enum(("RollingUpdate", "OnDelete"))] = ""


class MachineDeploymentSpec(Model):
    """Desired state of a MachineDeployment."""

    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""
    machine_naming_strategy: MachineNamingStrategy | None = None
    min_ready_seconds: int | None = None
    paused: bool = False
    progress_deadline_seconds: int | None = None
    replicas: int | None = None
    revision_history_limit: int | None = None
    rollout_after: Time | None = None
    selector: Required[LabelSelector] = {}
    strategy: MachineDeploymentStrategy | None = None
    template: Required[MachineTemplateSpec] = msgspec.field(default_factory=MachineTemplateSpec)


class MachineDeploymentV1Beta2Status(ReplicaStatus):
    """Status in the manner of v1beta2."""


class MachineDeploymentStatus(Model):
    """What a MachineDeployment is."""

    available_replicas: int = 0
    conditions: list[OldCondition] = []
    observed_generation: Long = 0
    phase: Annotated[str, Enum(("ScalingUp", "ScalingDown", "Running", "Failed", "Unknown"))] = ""
    ready_replicas: int = 0
    replicas: int = 0
    selector: Annotated[str, Size(1, 4096)] = ""
    unavailable_replicas: int = 0
    updated_replicas: int = 0
    v1beta2: MachineDeploymentV1Beta2Status | None = None
    versions: Annotated[list[StatusVersion], Size(1, 100), ListType("map", ("version",))] = []


@resource("cluster.x-k8s.io", "v1beta1", "MachineDeployment", "machinedeployments")
class MachineDeployment(Object):
    """A MachineDeployment keeps a number of equal Machines, and replaces them gradually when their template changes."""

    spec: MachineDeploymentSpec = msgspec.field(default_factory=MachineDeploymentSpec)
    status: MachineDeploymentStatus = msgspec.field(default_factory=MachineDeploymentStatus)
