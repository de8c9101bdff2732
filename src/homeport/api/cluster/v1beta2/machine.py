"""Machine: one host of a cluster."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2.reference import ContractRef, MachineAddress, MachineTaint, TemplateMeta
from homeport.api.cluster.v1beta2.shape import DeletionTimeouts, Provisioning, V1Beta1FailureStatus
from homeport.api.core.v1 import NodeSystemInfo
from homeport.api.field import Conditions, ConditionType, Count, Name, NonEmpty, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, ListType, Range, Required, Size


class MachineReadinessGate(Model):
    """A condition of the Machine that counts towards its being ready."""

    condition_type: Required[ConditionType] = ""
    polarity: Annotated[str, Enum(("Positive", "Negative"))] = ""


class Bootstrap(Model):
    """Where a host gets its first data from: a config that makes it, or a Secret that holds it already."""

    config_ref: ContractRef | None = None
    data_secret_name: Annotated[str, Size(0, 253)] | None = None


class MachineDeletionSpec(DeletionTimeouts):
    """How long the steps of a deletion may take."""


class MachineSpec(Model):
    """Desired state of a Machine."""

    bootstrap: Required[Bootstrap] = msgspec.field(default_factory=Bootstrap)
    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""
    deletion: MachineDeletionSpec = msgspec.field(default_factory=MachineDeletionSpec)
    failure_domain: Annotated[str, Size(1, 256)] = ""
    infrastructure_ref: Required[ContractRef | None] = None
    min_ready_seconds: Count | None = None
    provider_id: Annotated[str, Size(1, 512)] = ""
    readiness_gates: Annotated[list[MachineReadinessGate], Size(1, 32), ListType("map", ("conditionType",))] = []
    taints: Annotated[list[MachineTaint], Size(1, 64), ListType("map", ("key", "effect"))] = []
    version: Annotated[str, Size(1, 256)] = ""


class MachineTemplateSpec(Model):
    """What Machines are made by."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: Required[MachineSpec] = msgspec.field(default_factory=MachineSpec)


class MachineDeletionStatus(Model):
    """When the steps of a deletion began."""

    node_drain_start_time: Time | None = None
    wait_for_node_volume_detach_start_time: Time | None = None
    wait_for_pre_drain_hook_start_time: Time | None = None
    wait_for_pre_terminate_hook_start_time: Time | None = None


class MachineV1Beta1DeprecatedStatus(V1Beta1FailureStatus):
    """What v1beta1 reported; nobody reads it any more."""


class MachineDeprecatedStatus(Model):
    """Status of older versions of the API."""

    v1beta1: MachineV1Beta1DeprecatedStatus = msgspec.field(default_factory=MachineV1Beta1DeprecatedStatus)


class MachineInitializationStatus(Provisioning):
    """What was there once: bootstrap data and infrastructure."""


class MachineNodeReference(Model):
    """The Node of a Machine."""

    name: Required[Name] = ""


class MachineStatus(NonEmpty):
    """What a Machine is."""

    addresses: Annotated[list[MachineAddress], Size(None, 256), ListType("atomic")] = []
    certificates_expiry_date: Time | None = None
    conditions: Conditions = []
    deletion: MachineDeletionStatus = msgspec.field(default_factory=MachineDeletionStatus)
    deprecated: MachineDeprecatedStatus = msgspec.field(default_factory=MachineDeprecatedStatus)
    failure_domain: Annotated[str, Size(1, 256)] = ""
    initialization: MachineInitializationStatus = msgspec.field(default_factory=MachineInitializationStatus)
    last_updated: Time | None = None
    node_info: NodeSystemInfo = msgspec.field(default_factory=NodeSystemInfo)
    node_ref: MachineNodeReference | None = None
    observed_generation: Annotated[int, Range(1), Format("int64")] = 0
    phase: Annotated[
        str,
        Enum(
            (
                "Pending",
                "Provisioning",
                "Provisioned",
                "Running",
                "Updating",
                "Deleting",
                "Deleted",
                "Failed",
                "Unknown",
            )
        ),
    ] = ""


@resource("cluster.x-k8s.io", "v1beta2", "Machine", "machines")
class Machine(Object):
    """A Machine is one host of a cluster: a virtual machine, its bootstrap data, and the Node that it becomes."""

    spec: Required[MachineSpec] = msgspec.field(default_factory=MachineSpec)
    status: MachineStatus = msgspec.field(default_factory=MachineStatus)
