"""Machine: one host of a cluster."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta1.reference import TemplateMeta
from homeport.api.cluster.v1beta2.machine import MachineDeletionStatus, MachineReadinessGate
from homeport.api.cluster.v1beta2.reference import MachineAddress, MachineTaint
from homeport.api.core.v1 import NodeSystemInfo, ObjectReference
from homeport.api.field import Conditions, Long, OldCondition, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Required, Size


class Bootstrap(Model):
    """Where a host gets its first data from: a config that makes it, or a Secret that holds it already."""

    config_ref: ObjectReference | None = None
    data_secret_name: Annotated[str, Size(0, 253)] | None = None


class MachineSpec(Model):
    """Desired state of a Machine."""

    bootstrap: Required[Bootstrap] = msgspec.field(default_factory=Bootstrap)
    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""
    failure_domain: Annotated[str, Size(1, 256)] | None = None
    infrastructure_ref: Required[ObjectReference | None] = None
    node_deletion_timeout: str | None = None
    node_drain_timeout: str | None = None
    node_volume_detach_timeout: str | None = None
    provider_id: Annotated[str, Size(1, 512)] | None = None
    readiness_gates: Annotated[list[MachineReadinessGate], Size(None, 32), ListType("map", ("conditionType",))] = []
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
    version: Annotated[str, Size(1, 256)] | None = None


class MachineTemplateSpec(Model):
    """What Machines are made by."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)


class MachineV1Beta2Status(Model):
    """Status in the manner of v1beta2."""

    conditions: Conditions = []


class MachineStatus(Model):
    """What a Machine is."""

    addresses: list[MachineAddress] = []
    bootstrap_ready: bool = False
    certificates_expiry_date: Time | None = None
    conditions: list[OldCondition] = []
    deletion: MachineDeletionStatus | None = None
    failure_message: Annotated[str, Size(1, 10240)] | None = None
    failure_reason: str | None = None
    infrastructure_ready: bool = False
    last_updated: Time | None = None
    node_info: NodeSystemInfo | None = None
    node_ref: ObjectReference | None = None
    observed_generation: Long = 0
    phase: Annotated[
        str, Enum(("Pending", "Provisioning", "Provisioned", "Running", "Deleting", "Deleted", "Failed", "Unknown"))
    ] = ""
    v1beta2: MachineV1Beta2Status | None = None


@resource("cluster.x-k8s.io", "v1beta1", "Machine", "machines")
class Machine(Object):
    """A Machine is one host of a cluster: a virtual machine, its bootstrap data, and the Node that it becomes."""

    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)
    status: MachineStatus = msgspec.field(default_factory=MachineStatus)
