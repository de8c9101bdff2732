"""MachineSet: a number of equal Machines."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta1.machine import MachineTemplateSpec
from homeport.api.cluster.v1beta1.reference import MachineNamingStrategy, ReplicaStatus
from homeport.api.cluster.v1beta2.reference import StatusVersion
from homeport.api.field import LabelSelector, Long, OldCondition
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Required, Size


class MachineSetSpec(Model):
    """Desired state of a MachineSet."""

    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""
    delete_policy: Annotated[str, Enum(("Random", "Newest", "Oldest"))] = ""
    machine_naming_strategy: MachineNamingStrategy | None = None
    min_ready_seconds: int = 0
    replicas: int | None = None
    selector: Required[LabelSelector] = {}
    template: MachineTemplateSpec = msgspec.field(default_factory=MachineTemplateSpec)


class MachineSetV1Beta2Status(ReplicaStatus):
    """Status in the manner of v1beta2."""


class MachineSetStatus(Model):
    """What a MachineSet is."""

    available_replicas: int = 0
    conditions: list[OldCondition] = []
    failure_message: Annotated[str, Size(1, 10240)] | None = None
    failure_reason: str | None = None
    fully_labeled_replicas: int = 0
    observed_generation: Long = 0
    ready_replicas: int = 0
    replicas: int = 0
    selector: Annotated[str, Size(1, 4096)] = ""
    v1beta2: MachineSetV1Beta2Status | None = None
    versions: Annotated[list[StatusVersion], Size(1, 100), ListType("map", ("version",))] = []


@resource("cluster.x-k8s.io", "v1beta1", "MachineSet", "machinesets")
class MachineSet(Object):
    """A MachineSet keeps a number of equal Machines. Use a MachineDeployment, which manages MachineSets."""

    spec: MachineSetSpec = msgspec.field(default_factory=MachineSetSpec)
    status: MachineSetStatus = msgspec.field(default_factory=MachineSetStatus)
