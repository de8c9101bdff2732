"""ClusterClass: a cluster to make others by."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2.cluster import ClusterAvailabilityGate
from homeport.api.cluster.v1beta2.machine import MachineReadinessGate
from homeport.api.cluster.v1beta2.patch import ClusterClassPatch
from homeport.api.cluster.v1beta2.reference import MachineTaint, TemplateMeta
from homeport.api.cluster.v1beta2.template import (
    ClusterClassTemplateReference,
    ControlPlaneClassHealthCheck,
    ControlPlaneClassMachineDeletionSpec,
    ControlPlaneClassMachineInfrastructureTemplate,
    ControlPlaneClassNamingSpec,
    MachineDeploymentClass,
    MachinePoolClass,
)
from homeport.api.cluster.v1beta2.variable import ClusterClassStatusVariable, ClusterClassVariable
from homeport.api.field import Conditions, DeprecatedConditions, NonEmpty
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Format, ListType, Range, Required, Size


class ControlPlaneClass(Model):
    """The control plane in a class."""

    deletion: ControlPlaneClassMachineDeletionSpec = msgspec.field(default_factory=ControlPlaneClassMachineDeletionSpec)
    health_check: ControlPlaneClassHealthCheck = msgspec.field(default_factory=ControlPlaneClassHealthCheck)
    machine_infrastructure: ControlPlaneClassMachineInfrastructureTemplate = msgspec.field(
        default_factory=ControlPlaneClassMachineInfrastructureTemplate
    )
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    naming: ControlPlaneClassNamingSpec = msgspec.field(default_factory=ControlPlaneClassNamingSpec)
    readiness_gates: Annotated[list[MachineReadinessGate], Size(1, 32), ListType("map", ("conditionType",))] = []
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
    template_ref: Required[ClusterClassTemplateReference | None] = None


class InfrastructureClassNamingSpec(NonEmpty):
    """How infrastructure clusters are named."""

    template: Annotated[str, Size(1, 1024)] = ""


class InfrastructureClass(Model):
    """The infrastructure of clusters in a class."""

    naming: InfrastructureClassNamingSpec = msgspec.field(default_factory=InfrastructureClassNamingSpec)
    template_ref: Required[ClusterClassTemplateReference | None] = None


class ClusterClassUpgradeExternal(NonEmpty):
    """An extension that plans upgrades."""

    generate_upgrade_plan_extension: Annotated[str, Size(1, 512)] = ""


class ClusterClassUpgrade(NonEmpty):
    """How Clusters of a class get from one version to the next."""

    external: ClusterClassUpgradeExternal = msgspec.field(default_factory=ClusterClassUpgradeExternal)


class WorkersClass(NonEmpty):
    """Classes of workers."""

    machine_deployments: Annotated[list[MachineDeploymentClass], Size(1, 100), ListType("map", ("class",))] = []
    machine_pools: Annotated[list[MachinePoolClass], Size(1, 100), ListType("map", ("class",))] = []


class ClusterClassSpec(Model):
    """Templates, variables and patches of a class."""

    availability_gates: Annotated[list[ClusterAvailabilityGate], Size(1, 32), ListType("map", ("conditionType",))] = []
    control_plane: Required[ControlPlaneClass] = msgspec.field(default_factory=ControlPlaneClass)
    infrastructure: Required[InfrastructureClass] = msgspec.field(default_factory=InfrastructureClass)
    kubernetes_versions: Annotated[list[Annotated[str, Size(1, 256)]], Size(1, 100), ListType("atomic")] = []
    patches: Annotated[list[ClusterClassPatch], Size(1, 1000), ListType("atomic")] = []
    upgrade: ClusterClassUpgrade = msgspec.field(default_factory=ClusterClassUpgrade)
    variables: Annotated[list[ClusterClassVariable], Size(1, 1000), ListType("atomic")] = []
    workers: WorkersClass = msgspec.field(default_factory=WorkersClass)


class ClusterClassStatus(NonEmpty):
    """What is known about a class: its variables and conditions."""

    conditions: Conditions = []
    deprecated: DeprecatedConditions = msgspec.field(default_factory=DeprecatedConditions)
    observed_generation: Annotated[int, Range(1), Format("int64")] = 0
    variables: Annotated[list[ClusterClassStatusVariable], Size(None, 1000), ListType("atomic")] = []


@resource("cluster.x-k8s.io", "v1beta2", "ClusterClass", "clusterclasses")
class ClusterClass(Object):
    """A ClusterClass is a blueprint for Clusters: templates, variables and patches."""

    spec: Required[ClusterClassSpec] = msgspec.field(default_factory=ClusterClassSpec)
    status: ClusterClassStatus = msgspec.field(default_factory=ClusterClassStatus)
