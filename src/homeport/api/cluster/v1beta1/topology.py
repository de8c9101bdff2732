"""What a Cluster made from a ClusterClass asks for."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta1.machinedeployment import MachineDeploymentStrategy
from homeport.api.cluster.v1beta1.reference import TemplateMeta
from homeport.api.cluster.v1beta1.template import MachineHealthCheckClass
from homeport.api.cluster.v1beta2.machine import MachineReadinessGate
from homeport.api.cluster.v1beta2.reference import MachineTaint
from homeport.api.cluster.v1beta2.topology import ControlPlaneTopologyRolloutSpec
from homeport.api.field import Namespace, NonEmpty, Raw, Time
from homeport.api.meta import Model
from homeport.api.schema import ListType, Required, Size


class MachineHealthCheckTopology(MachineHealthCheckClass):
    """A health check that a Cluster asks for."""

    enable: bool | None = None


class ClusterVariable(Model):
    """The value of a variable."""

    definition_from: Annotated[str, Size(None, 256)] = ""
    name: Required[Annotated[str, Size(1, 256)]] = ""
    value: Required[Raw] = None


class VariableOverrides(Model):
    """Values of variables for a part of the Cluster."""

    overrides: Annotated[list[ClusterVariable], Size(None, 1000), ListType("map", ("name",))] = []


class ControlPlaneVariables(VariableOverrides):
    """Values of variables that apply only to the control plane, in overrides."""


class ControlPlaneTopology(Model):
    """The control plane that a Cluster asks for."""

    machine_health_check: MachineHealthCheckTopology | None = None
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    node_deletion_timeout: str | None = None
    node_drain_timeout: str | None = None
    node_volume_detach_timeout: str | None = None
    readiness_gates: Annotated[list[MachineReadinessGate], Size(None, 32), ListType("map", ("conditionType",))] = []
    replicas: int | None = None
    rollout: ControlPlaneTopologyRolloutSpec = msgspec.field(default_factory=ControlPlaneTopologyRolloutSpec)
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
    variables: ControlPlaneVariables | None = None


class MachineDeploymentTopologyRolloutSpec(NonEmpty):
    """When and how Machines are replaced."""

    after: Time | None = None


class MachineDeploymentVariables(VariableOverrides):
    """Values of variables that apply only to this group of workers, in overrides."""


class MachineDeploymentTopology(Model):
    """A group of workers that a Cluster asks for."""

    class_: Required[Annotated[str, Size(1, 256)]] = ""
    failure_domain: Annotated[str, Size(1, 256)] | None = None
    machine_health_check: MachineHealthCheckTopology | None = None
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    min_ready_seconds: int | None = None
    name: Required[Annotated[str, Size(1, 63)]] = ""
    node_deletion_timeout: str | None = None
    node_drain_timeout: str | None = None
    node_volume_detach_timeout: str | None = None
    readiness_gates: Annotated[list[MachineReadinessGate], Size(None, 32), ListType("map", ("conditionType",))] = []
    replicas: int | None = None
    rollout: MachineDeploymentTopologyRolloutSpec = msgspec.field(default_factory=MachineDeploymentTopologyRolloutSpec)
    strategy: MachineDeploymentStrategy | None = None
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
    variables: MachineDeploymentVariables | None = None


class MachinePoolVariables(VariableOverrides):
    """Values of variables that apply only to this pool, in overrides."""


class MachinePoolTopology(Model):
    """A pool of workers that a Cluster asks for."""

    class_: Required[Annotated[str, Size(1, 256)]] = ""
    failure_domains: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100)] = []
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    min_ready_seconds: int | None = None
    name: Required[Annotated[str, Size(1, 63)]] = ""
    node_deletion_timeout: str | None = None
    node_drain_timeout: str | None = None
    node_volume_detach_timeout: str | None = None
    replicas: int | None = None
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
    variables: MachinePoolVariables | None = None


class WorkersTopology(Model):
    """Workers that a Cluster asks for."""

    machine_deployments: Annotated[list[MachineDeploymentTopology], Size(None, 2000), ListType("map", ("name",))] = []
    machine_pools: Annotated[list[MachinePoolTopology], Size(None, 2000), ListType("map", ("name",))] = []


class Topology(Model):
    """The class of a Cluster, its version, and what it asks of the class."""

    class_: Required[Annotated[str, Size(1, 253)]] = ""
    class_namespace: Namespace = ""
    control_plane: ControlPlaneTopology = msgspec.field(default_factory=ControlPlaneTopology)
    rollout_after: Time | None = None
    variables: Annotated[list[ClusterVariable], Size(None, 1000), ListType("map", ("name",))] = []
    version: Required[Annotated[str, Size(1, 256)]] = ""
    workers: WorkersTopology | None = None
