"""MachineDeployment: MachineSets that are rolled over when their template changes."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2.machine import MachineTemplateSpec
from homeport.api.cluster.v1beta2.reference import MachineNamingSpec, StatusVersion
from homeport.api.cluster.v1beta2.shape import RollingUpdateLimits
from homeport.api.field import Conditions, IntOrString, LabelSelector, NonEmpty, OldCondition, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, ListType, Range, Required, Size


class MachineDeploymentDeletionSpec(NonEmpty):
    """Which Machines go first when there are too many."""

    order: Annotated[str, Enum(("Random", "Newest", "Oldest"))] = ""


class MachineDeploymentRemediationSpec(NonEmpty):
    """How many unhealthy Machines are replaced at a time."""

    max_in_flight: IntOrString | None = None


class MachineDeploymentRolloutStrategyRollingUpdate(RollingUpdateLimits):
    """How many Machines may be missing or surplus meanwhile."""


class MachineDeploymentRolloutStrategy(NonEmpty):
    """How Machines are replaced."""

    rolling_update: MachineDeploymentRolloutStrategyRollingUpdate = msgspec.field(
        default_factory=MachineDeploymentRolloutStrategyRollingUpdate
    )
    type: Required[Annotated[str, Enum(("RollingUpdate", "OnDelete"))]] = ""


class MachineDeploymentRolloutSpec(NonEmpty):
    """When and how Machines are replaced."""

    after: Time | None = None
    strategy: MachineDeploymentRolloutStrategy = msgspec.field(default_factory=MachineDeploymentRolloutStrategy)


class MachineDeploymentSpec(Model):
    """Desired state of a MachineDeployment."""

    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""
    deletion: MachineDeploymentDeletionSpec = msgspec.field(default_factory=MachineDeploymentDeletionSpec)
    machine_naming: MachineNamingSpec = msgspec.field(default_factory=MachineNamingSpec)
    paused: bool | None = None
    remediation: MachineDeploymentRemediationSpec = msgspec.field(default_factory=MachineDeploymentRemediationSpec)
    replicas: int | None = None
    rollout: MachineDeploymentRolloutSpec = msgspec.field(default_factory=MachineDeploymentRolloutSpec)
    selector: Required[LabelSelector] = {}
    template: Required[MachineTemplateSpec] = msgspec.field(default_factory=MachineTemplateSpec)


class MachineDeploymentV1Beta1DeprecatedStatus(Model):
    """What v1beta1 reported; nobody reads it any more."""

    available_replicas: int = 0
    conditions: list[OldCondition] = []
    ready_replicas: int = 0
    unavailable_replicas: int = 0
    updated_replicas: int = 0


class MachineDeploymentDeprecatedStatus(Model):
    """Status of older versions of the API."""

    v1beta1: MachineDeploymentV1Beta1DeprecatedStatus = msgspec.field(
        default_factory=MachineDeploymentV1Beta1DeprecatedStatus
    )


class MachineDeploymentStatus(NonEmpty):
    """What a MachineDeployment is."""

    available_replicas: int | None = None
    conditions: Conditions = []
    deprecated: MachineDeploymentDeprecatedStatus = msgspec.field(default_factory=MachineDeploymentDeprecatedStatus)
    observed_generation: Annotated[int, Range(1), Format("int64")] = 0
    phase: Annotated[str, Enum(("ScalingUp", "ScalingDown", "Running", "Failed", "Unknown"))] = ""
    ready_replicas: int | None = None
    replicas: int | None = None
    selector: Annotated[str, Size(1, 4096)] = ""
    up_to_date_replicas: int | None = None
    versions: Annotated[list[StatusVersion], Size(1, 100), ListType("map", ("version",))] = []


@resource("cluster.x-k8s.io", "v1beta2", "MachineDeployment", "machinedeployments")
class MachineDeployment(Object):
    """A MachineDeployment keeps a number of equal Machines, and replaces them gradually when their template changes."""

    spec: Required[MachineDeploymentSpec] = msgspec.field(default_factory=MachineDeploymentSpec)
    status: MachineDeploymentStatus = msgspec.field(default_factory=MachineDeploymentStatus)
