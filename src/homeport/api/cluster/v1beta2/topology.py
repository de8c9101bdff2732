"""What a Cluster made from a ClusterClass asks for."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from homeport.api.cluster.v1beta2.machine import MachineReadinessGate
from homeport.api.cluster.v1beta2.machinehealthcheck import (
    MachineHealthCheckRemediationTemplateReference,
)
from homeport.api.cluster.v1beta2.reference import MachineTaint, TemplateMeta
from homeport.api.cluster.v1beta2.shape import DeletionTimeouts, HealthChecks, RemediationTrigger, RollingUpdateLimits
from homeport.api.field import Count, IntOrString, Name, Namespace, Raw, Time
from homeport.api.meta import Model
from homeport.api.schema import Enum, ListType, Mark, Pattern, Required, Size


class ClusterClassRef(Model):
    """The ClusterClass that a Cluster is made by."""

    name: Required[Name] = ""
    namespace: Namespace = ""


class ControlPlaneTopologyMachineDeletionSpec(DeletionTimeouts):
    """How long the steps of a deletion may take."""


class ControlPlaneTopologyHealthCheckChecks(HealthChecks):
    """What makes a Machine unhealthy."""


class ControlPlaneTopologyHealthCheckRemediationTriggerIf(RemediationTrigger):
    """Between which numbers of unhealthy Machines any are replaced."""


class ControlPlaneTopologyHealthCheckRemediation(Model):
    """When and how unhealthy Machines are replaced."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    template_ref: MachineHealthCheckRemediationTemplateReference | None = None
    trigger_if: ControlPlaneTopologyHealthCheckRemediationTriggerIf = msgspec.field(
        default_factory=ControlPlaneTopologyHealthCheckRemediationTriggerIf
    )


class ControlPlaneTopologyHealthCheck(Model):
    """When Machines count as unhealthy, and what happens then."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    checks: ControlPlaneTopologyHealthCheckChecks = msgspec.field(default_factory=ControlPlaneTopologyHealthCheckChecks)
    enabled: bool | None = None
    remediation: ControlPlaneTopologyHealthCheckRemediation = msgspec.field(
        default_factory=ControlPlaneTopologyHealthCheckRemediation
    )


class ControlPlaneTopologyRolloutSpec(Model):
    """When and how Machines are replaced."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    after: Time | None = None


class ClusterVariable(Model):
    """The value of a variable."""

    name: Required[Annotated[str, Size(1, 256)]] = ""
    value: Required[Raw] = None


class ControlPlaneVariables(Model):
    """Values of variables for the control plane alone."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    overrides: Annotated[list[ClusterVariable], Size(1, 1000), ListType("map", ("name",))] = []


class ControlPlaneTopology(Model):
    """The control plane that a Cluster asks for."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

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


class MachineDeploymentTopologyMachineDeletionSpec(Model):
    """How long the steps of a deletion may take."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    node_deletion_timeout_seconds: Count | None = None
    node_drain_timeout_seconds: Count | None = None
    node_volume_detach_timeout_seconds: Count | None = None
    order: Annotated[str, Enum(("Random", "Newest", "Oldest"))] = ""


class MachineDeploymentTopologyHealthCheckChecks(HealthChecks):
    """What makes a Machine unhealthy."""


class MachineDeploymentTopologyHealthCheckRemediationTriggerIf(RemediationTrigger):
    """Between which numbers of unhealthy Machines any are replaced."""


class MachineDeploymentTopologyHealthCheckRemediation(Model):
    """When and how unhealthy Machines are replaced."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    max_in_flight: IntOrString | None = None
    template_ref: MachineHealthCheckRemediationTemplateReference | None = None
    trigger_if: MachineDeploymentTopologyHealthCheckRemediationTriggerIf = msgspec.field(
        default_factory=MachineDeploymentTopologyHealthCheckRemediationTriggerIf
    )


class MachineDeploymentTopologyHealthCheck(Model):
    """When Machines count as unhealthy, and what happens then."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    checks: MachineDeploymentTopologyHealthCheckChecks = msgspec.field(
        default_factory=MachineDeploymentTopologyHealthCheckChecks
    )
    enabled: bool | None = None
    remediation: MachineDeploymentTopologyHealthCheckRemediation = msgspec.field(
        default_factory=MachineDeploymentTopologyHealthCheckRemediation
    )


class MachineDeploymentTopologyRolloutStrategyRollingUpdate(RollingUpdateLimits):
    """How many Machines may be missing or surplus meanwhile."""


class MachineDeploymentTopologyRolloutStrategy(Model):
    """How Machines are replaced."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    rolling_update: MachineDeploymentTopologyRolloutStrategyRollingUpdate = msgspec.field(
        default_factory=MachineDeploymentTopologyRolloutStrategyRollingUpdate
    )
    type: Required[Annotated[str, Enum(("RollingUpdate", "OnDelete"))]] = ""


class MachineDeploymentTopologyRolloutSpec(Model):
    """When and how Machines are replaced."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    after: Time | None = None
    strategy: MachineDeploymentTopologyRolloutStrategy = msgspec.field(
        default_factory=MachineDeploymentTopologyRolloutStrategy
    )


class MachineDeploymentVariables(Model):
    """Values of variables for this group of workers alone."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    overrides: Annotated[list[ClusterVariable], Size(1, 1000), ListType("map", ("name",))] = []


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


class MachinePoolVariables(Model):
    """Values of variables for this pool alone."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    overrides: Annotated[list[ClusterVariable], Size(1, 1000), ListType("map", ("name",))] = []


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


class WorkersTopology(Model):
    """Workers that a Cluster asks for."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    machine_deployments: Annotated[list[MachineDeploymentTopology], Size(1, 2000), ListType("map", ("name",))] = []
    machine_pools: Annotated[list[MachinePoolTopology], Size(1, 2000), ListType("map", ("name",))] = []


class Topology(Model):
    """The class of a Cluster, its version, and what it asks of the class."""

    class_ref: Required[ClusterClassRef | None] = None
    control_plane: ControlPlaneTopology = msgspec.field(default_factory=ControlPlaneTopology)
    variables: Annotated[list[ClusterVariable], Size(1, 1000), ListType("map", ("name",))] = []
    version: Required[Annotated[str, Size(1, 256)]] = ""
    workers: WorkersTopology = msgspec.field(default_factory=WorkersTopology)
