"""ClusterClass: a cluster to make others by."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta1.patch import ClusterClassPatch
from homeport.api.cluster.v1beta1.reference import TemplateMeta
from homeport.api.cluster.v1beta1.template import (
    ControlPlaneClassNamingStrategy,
    InfrastructureNamingStrategy,
    LocalObjectTemplate,
    MachineDeploymentClass,
    MachineHealthCheckClass,
    MachinePoolClass,
)
from homeport.api.cluster.v1beta1.variable import ClusterClassStatusVariable, ClusterClassVariable
from homeport.api.cluster.v1beta2.cluster import ClusterAvailabilityGate
from homeport.api.cluster.v1beta2.clusterclass import ClusterClassUpgrade
from homeport.api.cluster.v1beta2.machine import MachineReadinessGate
from homeport.api.cluster.v1beta2.reference import MachineTaint
from homeport.api.core.v1 import ObjectReference
from homeport.api.field import Conditions, Long, OldCondition
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import ListType, Required, Size


class ControlPlaneClass(Model):
    """The control plane in a class."""

    machine_health_check: MachineHealthCheckClass | None = None
    machine_infrastructure: LocalObjectTemplate | None = None
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    naming_strategy: ControlPlaneClassNamingStrategy | None = None
    node_deletion_timeout: str | None = None
    node_drain_timeout: str | None = None
    node_volume_detach_timeout: str | None = None
    readiness_gates: Annotated[list[MachineReadinessGate], Size(None, 32), ListType("map", ("conditionType",))] = []
    ref: Required[ObjectReference | None] = None
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []


class WorkersClass(Model):
    """Classes of workers."""

    machine_deployments: Annotated[list[MachineDeploymentClass], Size(None, 100), ListType("map", ("class",))] = []
    machine_pools: Annotated[list[MachinePoolClass], Size(None, 100), ListType("map", ("class",))] = []


class ClusterClassSpec(Model):
    """Templates, variables and patches of a class."""

    availability_gates: Annotated[
        list[ClusterAvailabilityGate], Size(None, 32), ListType("map", ("conditionType",))
    ] = []
    control_plane: ControlPlaneClass = msgspec.field(default_factory=ControlPlaneClass)
    infrastructure: LocalObjectTemplate = msgspec.field(default_factory=LocalObjectTemplate)
    infrastructure_naming_strategy: InfrastructureNamingStrategy | None = None
    kubernetes_versions: Annotated[list[Annotated[str, Size(1, 256)]], Size(1, 100), ListType("atomic")] = []
    patches: Annotated[list[ClusterClassPatch], Size(None, 1000)] = []
    upgrade: ClusterClassUpgrade = msgspec.field(default_factory=ClusterClassUpgrade)
    variables: Annotated[list[ClusterClassVariable], Size(None, 1000)] = []
    workers: WorkersClass = msgspec.field(default_factory=WorkersClass)


class ClusterClassV1Beta2Status(Model):
    """Status in the manner of v1beta2."""

    conditions: Conditions = []


class ClusterClassStatus(Model):
    """What is known about a class: its variables and conditions."""

    conditions: list[OldCondition] = []
    observed_generation: Long = 0
    v1beta2: ClusterClassV1Beta2Status | None = None
    variables: Annotated[list[ClusterClassStatusVariable], Size(None, 1000)] = []


@resource("cluster.x-k8s.io", "v1beta1", "ClusterClass", "clusterclasses")
class ClusterClass(Object):
    """A ClusterClass is a blueprint for Clusters: templates, variables and patches."""

    spec: ClusterClassSpec = msgspec.field(default_factory=ClusterClassSpec)
    status: ClusterClassStatus = msgspec.field(default_factory=ClusterClassStatus)
