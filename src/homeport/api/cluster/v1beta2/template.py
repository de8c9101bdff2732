"""Classes of Machines in a ClusterClass."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2.machine import MachineReadinessGate
from homeport.api.cluster.v1beta2.machinehealthcheck import (
    MachineHealthCheckRemediationTemplateReference,
)
from homeport.api.cluster.v1beta2.reference import MachineTaint, TemplateMeta
from homeport.api.cluster.v1beta2.shape import (
    DeletionTimeouts,
    HealthChecks,
    RemediationTrigger,
    RollingUpdateLimits,
    TemplateReference,
)
from homeport.api.field import Count, IntOrString, NonEmpty
from homeport.api.meta import Model
from homeport.api.schema import Enum, ListType, Required, Size


class ControlPlaneClassMachineDeletionSpec(DeletionTimeouts):
    """How long the steps of a deletion may take."""


class ControlPlaneClassHealthCheckChecks(HealthChecks):
    """Conditions and timeouts that make a Machine unhealthy."""


class ControlPlaneClassHealthCheckRemediationTriggerIf(RemediationTrigger):
    """Between which numbers of unhealthy Machines any are replaced."""


class ControlPlaneClassHealthCheckRemediation(NonEmpty):
    """When and how unhealthy Machines are replaced."""

    template_ref: MachineHealthCheckRemediationTemplateReference | None = None
    trigger_if: ControlPlaneClassHealthCheckRemediationTriggerIf = msgspec.field(
        default_factory=ControlPlaneClassHealthCheckRemediationTriggerIf
    )


class ControlPlaneClassHealthCheck(NonEmpty):
    """When Machines count as unhealthy, and what happens then."""

    checks: ControlPlaneClassHealthCheckChecks = msgspec.field(default_factory=ControlPlaneClassHealthCheckChecks)
    remediation: ControlPlaneClassHealthCheckRemediation = msgspec.field(
        default_factory=ControlPlaneClassHealthCheckRemediation
    )


class ClusterClassTemplateReference(TemplateReference):
    """A template of any group, in the namespace of the class."""


class ControlPlaneClassMachineInfrastructureTemplate(Model):
    """The template of infrastructure."""

    template_ref: Required[ClusterClassTemplateReference | None] = None


class ControlPlaneClassNamingSpec(NonEmpty):
    """How objects are named."""

    template: Annotated[str, Size(1, 1024)] = ""


class MachineDeploymentClassBootstrapTemplate(Model):
    """The template of bootstrap configs."""

    template_ref: Required[ClusterClassTemplateReference | None] = None


class MachineDeploymentClassMachineDeletionSpec(DeletionTimeouts):
    """How long the steps of a deletion may take, and which Machines are deleted first."""

    order: Annotated[str, Enum(("Random", "Newest", "Oldest"))] = ""


class MachineDeploymentClassHealthCheckChecks(HealthChecks):
    """Conditions and timeouts that make a Machine unhealthy."""


class MachineDeploymentClassHealthCheckRemediationTriggerIf(RemediationTrigger):
    """Between which numbers of unhealthy Machines any are replaced."""


class MachineDeploymentClassHealthCheckRemediation(NonEmpty):
    """When and how unhealthy Machines are replaced."""

    max_in_flight: IntOrString | None = None
    template_ref: MachineHealthCheckRemediationTemplateReference | None = None
    trigger_if: MachineDeploymentClassHealthCheckRemediationTriggerIf = msgspec.field(
        default_factory=MachineDeploymentClassHealthCheckRemediationTriggerIf
    )


class MachineDeploymentClassHealthCheck(NonEmpty):
    """When Machines count as unhealthy, and what happens then."""

    checks: MachineDeploymentClassHealthCheckChecks = msgspec.field(
        default_factory=MachineDeploymentClassHealthCheckChecks
    )
    remediation: MachineDeploymentClassHealthCheckRemediation = msgspec.field(
        default_factory=MachineDeploymentClassHealthCheckRemediation
    )


class MachineDeploymentClassInfrastructureTemplate(Model):
    """The template of infrastructure."""

    template_ref: Required[ClusterClassTemplateReference | None] = None


class MachineDeploymentClassNamingSpec(NonEmpty):
    """How objects are named."""

    template: Annotated[str, Size(1, 1024)] = ""


class MachineDeploymentClassRolloutStrategyRollingUpdate(RollingUpdateLimits):
    """How many Machines may be missing or surplus meanwhile."""


class MachineDeploymentClassRolloutStrategy(NonEmpty):
    """How Machines are replaced."""

    rolling_update: MachineDeploymentClassRolloutStrategyRollingUpdate = msgspec.field(
        default_factory=MachineDeploymentClassRolloutStrategyRollingUpdate
    )
    type: Required[Annotated[str, Enum(("RollingUpdate", "OnDelete"))]] = ""


class MachineDeploymentClassRolloutSpec(NonEmpty):
    """When and how Machines are replaced."""

    strategy: MachineDeploymentClassRolloutStrategy = msgspec.field(
        default_factory=MachineDeploymentClassRolloutStrategy
    )


class MachineDeploymentClass(Model):
    """A class of worker Machines."""

    bootstrap: Required[MachineDeploymentClassBootstrapTemplate] = msgspec.field(
        default_factory=MachineDeploymentClassBootstrapTemplate
    )
    class_: Required[Annotated[str, Size(1, 256)]] = ""
    deletion: MachineDeploymentClassMachineDeletionSpec = msgspec.field(
        default_factory=MachineDeploymentClassMachineDeletionSpec
    )
    failure_domain: Annotated[str, Size(1, 256)] = ""
    health_check: MachineDeploymentClassHealthCheck = msgspec.field(default_factory=MachineDeploymentClassHealthCheck)
    infrastructure: Required[MachineDeploymentClassInfrastructureTemplate] = msgspec.field(
        default_factory=MachineDeploymentClassInfrastructureTemplate
    )
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    min_ready_seconds: Count | None = None
    naming: MachineDeploymentClassNamingSpec = msgspec.field(default_factory=MachineDeploymentClassNamingSpec)
    readiness_gates: Annotated[list[MachineReadinessGate], Size(1, 32), ListType("map", ("conditionType",))] = []
    rollout: MachineDeploymentClassRolloutSpec = msgspec.field(default_factory=MachineDeploymentClassRolloutSpec)
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []


class MachinePoolClassBootstrapTemplate(Model):
    """The template of bootstrap configs."""

    template_ref: Required[ClusterClassTemplateReference | None] = None


class MachinePoolClassMachineDeletionSpec(DeletionTimeouts):
    """How long the steps of a deletion may take."""


class MachinePoolClassInfrastructureTemplate(Model):
    """The template of infrastructure."""

    template_ref: Required[ClusterClassTemplateReference | None] = None


class MachinePoolClassNamingSpec(NonEmpty):
    """How objects are named."""

    template: Annotated[str, Size(1, 1024)] = ""


class MachinePoolClass(Model):
    """A class of worker pools."""

    bootstrap: Required[MachinePoolClassBootstrapTemplate] = msgspec.field(
        default_factory=MachinePoolClassBootstrapTemplate
    )
    class_: Required[Annotated[str, Size(1, 256)]] = ""
    deletion: MachinePoolClassMachineDeletionSpec = msgspec.field(default_factory=MachinePoolClassMachineDeletionSpec)
    failure_domains: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100), ListType("atomic")] = []
    infrastructure: Required[MachinePoolClassInfrastructureTemplate] = msgspec.field(
        default_factory=MachinePoolClassInfrastructureTemplate
    )
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    min_ready_seconds: Count | None = None
    naming: MachinePoolClassNamingSpec = msgspec.field(default_factory=MachinePoolClassNamingSpec)
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
