"""Classes of Machines in a ClusterClass."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta1.machinedeployment import MachineDeploymentStrategy
from homeport.api.cluster.v1beta1.machinehealthcheck import UnhealthyCondition, UnhealthyMachineCondition
from homeport.api.cluster.v1beta1.reference import TemplateMeta
from homeport.api.cluster.v1beta2.machine import MachineReadinessGate
from homeport.api.cluster.v1beta2.reference import MachineTaint
from homeport.api.core.v1 import ObjectReference
from homeport.api.field import IntOrString
from homeport.api.meta import Model
from homeport.api.schema import ListType, Pattern, Required, Size


class MachineHealthCheckClass(Model):
    """A health check in a class."""

    max_unhealthy: IntOrString | None = None
    node_startup_timeout: str | None = None
    remediation_template: ObjectReference | None = None
    unhealthy_conditions: Annotated[list[UnhealthyCondition], Size(None, 100)] = []
    unhealthy_machine_conditions: Annotated[list[UnhealthyMachineCondition], Size(1, 100), ListType("atomic")] = []
    unhealthy_range: Annotated[str, Size(1, 32), Pattern(r"^\[[0-9]+-[0-9]+\]$")] | None = None


class LocalObjectTemplate(Model):
    """A template in a class."""

    ref: Required[ObjectReference | None] = None


class ControlPlaneClassNamingStrategy(Model):
    """How objects are named."""

    template: Annotated[str, Size(1, 1024)] | None = None


class InfrastructureNamingStrategy(Model):
    """How infrastructure clusters are named."""

    template: Annotated[str, Size(1, 1024)] | None = None


class MachineDeploymentClassNamingStrategy(Model):
    """How objects are named."""

    template: Annotated[str, Size(1, 1024)] | None = None


class MachineDeploymentClassTemplate(Model):
    """Metadata and templates of a class."""

    bootstrap: Required[LocalObjectTemplate] = msgspec.field(default_factory=LocalObjectTemplate)
    infrastructure: Required[LocalObjectTemplate] = msgspec.field(default_factory=LocalObjectTemplate)
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)


class MachineDeploymentClass(Model):
    """A class of worker Machines."""

    class_: Required[Annotated[str, Size(1, 256)]] = ""
    failure_domain: Annotated[str, Size(1, 256)] | None = None
    machine_health_check: MachineHealthCheckClass | None = None
    min_ready_seconds: int | None = None
    naming_strategy: MachineDeploymentClassNamingStrategy | None = None
    node_deletion_timeout: str | None = None
    node_drain_timeout: str | None = None
    node_volume_detach_timeout: str | None = None
    readiness_gates: Annotated[list[MachineReadinessGate], Size(None, 32), ListType("map", ("conditionType",))] = []
    strategy: MachineDeploymentStrategy | None = None
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
    template: Required[MachineDeploymentClassTemplate] = msgspec.field(default_factory=MachineDeploymentClassTemplate)


class MachinePoolClassNamingStrategy(Model):
    """How objects are named."""

    template: Annotated[str, Size(1, 1024)] | None = None


class MachinePoolClassTemplate(MachineDeploymentClassTemplate):
    """Metadata and templates of a class."""


class MachinePoolClass(Model):
    """A class of worker pools."""

    class_: Required[Annotated[str, Size(1, 256)]] = ""
    failure_domains: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100)] = []
    min_ready_seconds: int | None = None
    naming_strategy: MachinePoolClassNamingStrategy | None = None
    node_deletion_timeout: str | None = None
    node_drain_timeout: str | None = None
    node_volume_detach_timeout: str | None = None
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
    template: Required[MachinePoolClassTemplate] = msgspec.field(default_factory=MachinePoolClassTemplate)
