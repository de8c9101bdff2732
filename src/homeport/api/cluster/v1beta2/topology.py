"""What a Cluster made from a ClusterClass asks for."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2.machine import MachineReadinessGate
from homeport.api.cluster.v1beta2.machinehealthcheck import (
    MachineHealthCheckRemediationTemplateReference,
)
from homeport.api.cluster.v1beta2.reference import MachineTaint, TemplateMeta
from homeport.api.cluster.v1beta2.shape import DeletionTimeouts, HealthChecks, RemediationTrigger, RollingUpdateLimits
from homeport.api.field import Count, IntOrString, Name, Namespace, NonEmpty, Raw, Time
from homeport.api.meta import Model
from homeport.api.schema import Enum, ListType, Pattern, Required, Size


class ClusterClassRef(Model):
    """The ClusterClass that a Cluster is made by."""

    name: Required[Name] = ""
    namespace: Namespace = ""


class ControlPlaneTopologyMachineDeletionSpec(DeletionTimeouts):
    """How long the steps of a deletion may take."""


class ControlPlaneTopologyHealthCheckChecks(HealthChecks):
    """Conditions and timeouts that make a Machine unhealthy."""


class ControlPlaneTopologyHealthCheckRemediationTriggerIf(RemediationTrigger):
    """Between which numbers of unhealthy Machines any are replaced."""


class ControlPlaneTopologyHealthCheckRemediation(NonEmpty):
    """When and how unhealthy Machines are replaced."""

    template_ref: MachineHealthCheckRemediationTemplateReference | None = None
    trigger_if: ControlPlaneTopologyHealthCheckRemediationTriggerIf = msgspec.field(
        default_factory=ControlPlaneTopologyHealthCheckRemediationTriggerIf
    )


class ControlPlaneTopologyHealthCheck(NonEmpty):
    """When Machines count as unhealthy, and what happens then."""

    checks: ControlPlaneTopologyHealthCheckChecks = msgspec.field(default_factory=ControlPlaneTopologyHealthCheckChecks)
    enabled: bool | None = None
    remediation: ControlPlaneTopologyHealthCheckRemediation = msgspec.field(
        default_factory=ControlPlaneTopologyHealthCheckRemediation
    )


class ControlPlaneTopologyRolloutSpec(NonEmpty):
    """When and how Machines are replaced."""

    after: Time | None = None


class ClusterVariable(Model):
    """The value of a variable."""

    name: Required[Annotated[str, Size(1, 256)]] = ""
    value: Required[Raw] = None


class VariableOverrides(NonEmpty):
    """Values of variables for a part of the Cluster."""

    overrides: Annotated[list[ClusterVariable], Size(1, 1000), ListType("map", ("name",))] = []


class ControlPlaneVariables(VariableOverrides):
    """Values of variables that apply only to the control plane, in overrides."""


class ControlPlaneTopology(NonEmpty):
    """The control plane that a Cluster asks for."""

    deletion: ControlPlaneTopologyMachineDeletionSpec = msgspec.field(
        default_factory=ControlPlaneTopologyMachineDeletionSpec
    )
    health_check: ControlPlaneTopologyHealthCheck = msgspec.field(default_factory=ControlPlaneTopologyHealthCheck)
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    readiness_gates: Annotated[list[MachineReadinessGate], Size(1, 32), ListType("map", ("conditionType",))] = []
    replicas: int | None = None
    rollout: ControlPlaneTopologyRolloutSpec = msgspec.field(default_factory=ControlPlaneTopologyRolloutSpec)
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
    variables: ControlPlaneVariables = msgspec.field(default_factory=ControlPlaneVariables)


class MachineDeploymentTopologyMachineDeletionSpec(DeletionTimeouts):
    """How long the steps of a deletion may take, and which Machines are deleted first."""

    order: Annotated[str, Enum(("Random", "Newest", "Oldest"))] = ""


class MachineDeploymentTopologyHealthCheckChecks(HealthChecks):
    """Conditions and timeouts that make a Machine unhealthy."""


class MachineDeploymentTopologyHealthCheckRemediationTriggerIf(RemediationTrigger):
    """Between which numbers of unhealthy Machines any are replaced."""


class MachineDeploymentTopologyHealthCheckRemediation(NonEmpty):
    """When and how unhealthy Machines are replaced."""

    max_in_flight: IntOrString | None = None
    template_ref: MachineHealthCheckRemediationTemplateReference | None = None
    trigger_if: MachineDeploymentTopologyHealthCheckRemediationTriggerIf = msgspec.field(
        default_factory=MachineDeploymentTopologyHealthCheckRemediationTriggerIf
    )


class MachineDeploymentTopologyHealthCheck(NonEmpty):
    """When Machines count as unhealthy, and what happens then."""

    checks: MachineDeploymentTopologyHealthCheckChecks = msgspec.field(
        default_factory=MachineDeploymentTopologyHealthCheckChecks
    )
    enabled: bool | None = None
    remediation: MachineDeploymentTopologyHealthCheckRemediation = msgspec.field(
        default_factory=MachineDeploymentTopologyHealthCheckRemediation
    )


class MachineDeploymentTopologyRolloutStrategyRollingUpdate(RollingUpdateLimits):
    """How many Machines may be missing or surplus meanwhile."""


class MachineDeploymentTopologyRolloutStrategy(NonEmpty):
    """How Machines are replaced."""

    rolling_update: MachineDeploymentTopologyRolloutStrategyRollingUpdate = msgspec.field(
        default_factory=MachineDeploymentTopologyRolloutStrategyRollingUpdate
    )
    type: Required[Annotated[str, Enum(("RollingUpdate", "OnDelete"))]] = ""


class MachineDeploymentTopologyRolloutSpec(NonEmpty):
    """When and how Machines are replaced."""

    after: Time | None = None
    strategy: MachineDeploymentTopologyRolloutStrategy = msgspec.field(
        default_factory=MachineDeploymentTopologyRolloutStrategy
    )


class MachineDeploymentVariables(VariableOverrides):
    """Values of variables that apply only to this group of workers, in overrides."""


class MachineDeploymentTopology(Model):
    """A group of workers that a Cluster asks for."""

    class_: Required[Annotated[str, Size(1, 256)]] = ""
    deletion: MachineDeploymentTopologyMachineDeletionSpec = msgspec.field(
        default_factory=MachineDeploymentTopologyMachineDeletionSpec
    )
    failure_domain: Annotated[str, Size(1, 256)] = ""
    health_check: MachineDeploymentTopologyHealthCheck = msgspec.field(
        default_factory=MachineDeploymentTopologyHealthCheck
    )
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    min_ready_seconds: Count | None = None
    name: Required[
        Annotated[str, Size(1, 63), Pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")]
    ] = ""
    readiness_gates: Annotated[list[MachineReadinessGate], Size(1, 32), ListType("map", ("conditionType",))] = []
    replicas: int | None = None
    rollout: MachineDeploymentTopologyRolloutSpec = msgspec.field(default_factory=MachineDeploymentTopologyRolloutSpec)
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
    variables: MachineDeploymentVariables = msgspec.field(default_factory=MachineDeploymentVariables)


class MachinePoolTopologyMachineDeletionSpec(DeletionTimeouts):
    """How long the steps of a deletion may take."""


class MachinePoolVariables(VariableOverrides):
    """Values of variables that apply only to this pool, in overrides."""


class MachinePoolTopology(Model):
    """A pool of workers that a Cluster asks for."""

    class_: Required[Annotated[str, Size(1, 256)]] = ""
    deletion: MachinePoolTopologyMachineDeletionSpec = msgspec.field(
        default_factory=MachinePoolTopologyMachineDeletionSpec
    )
    failure_domains: Annotated[list[Annotated[str, Size(1, 256)]], Size(1, 100), ListType("atomic")] = []
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    min_ready_seconds: Count | None = None
    name: Required[
        Annotated[str, Size(1, 63), Pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")]
    ] = ""
    replicas: int | None = None
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
    variables: MachinePoolVariables = msgspec.field(default_factory=MachinePoolVariables)


class WorkersTopology(NonEmpty):
    """Workers that a Cluster asks for."""

    machine_deployments: Annotated[list[MachineDeploymentTopology], Size(1, 2000), ListType("map", ("name",))] = []
    machine_pools: Annotated[list[MachinePoolTopology], Size(1, 2000), ListType("map", ("name",))] = []


class Topology(Model):
    """The class of a Cluster, its version, and what it asks of the class."""

    class_ref: Required[ClusterClassRef | None] = None
    control_plane: ControlPlaneTopology = msgspec.field(default_factory=ControlPlaneTopology)
    variables: Annotated[list[ClusterVariable], Size(1, 1000), ListType("map", ("name",))] = []
    version: Required[Annotated[str, Size(1, 256)]] = ""
    workers: WorkersTopology = msgspec.field(default_factory=WorkersTopology)
