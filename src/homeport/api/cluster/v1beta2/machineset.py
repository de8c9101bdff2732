"""MachineSet: a number of equal Machines."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2.machine import MachineTemplateSpec
from homeport.api.cluster.v1beta2.reference import MachineNamingSpec, StatusVersion
from homeport.api.field import Conditions, LabelSelector, NonEmpty, OldCondition
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, ListType, Range, Required, Size


class MachineSetDeletionSpec(NonEmpty):
    """Which Machines go first when there are too many."""

    order: Annotated[str, Enum(("Random", "Newest", "Oldest"))] = ""


class MachineSetSpec(Model):
    """Desired state of a MachineSet."""

    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""
    deletion: MachineSetDeletionSpec = msgspec.field(default_factory=MachineSetDeletionSpec)
    machine_naming: MachineNamingSpec = msgspec.field(default_factory=MachineNamingSpec)
    replicas: int | None = None
    selector: Required[LabelSelector] = {}
    template: Required[MachineTemplateSpec] = msgspec.field(default_factory=MachineTemplateSpec)


class MachineSetV1Beta1DeprecatedStatus(Model):
    """What v1beta1 reported; nobody reads it any more."""

    available_replicas: int = 0
    conditions: list[OldCondition] = []
    failure_message: Annotated[str, Size(1, 10240)] | None = None
    failure_reason: str | None = None
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0


class MachineSetDeprecatedStatus(Model):
    """Status of older versions of the API."""

    v1beta1: MachineSetV1Beta1DeprecatedStatus = msgspec.field(default_factory=MachineSetV1Beta1DeprecatedStatus)


class MachineSetStatus(NonEmpty):
    """What a MachineSet is."""

    available_replicas: int | None = None
    conditions: Conditions = []
    deprecated: MachineSetDeprecatedStatus = msgspec.field(default_factory=MachineSetDeprecatedStatus)
    observed_generation: Annotated[int, Range(1), Format("int64")] = 0
    ready_replicas: int | None = None
    replicas: int | None = None
    selector: Annotated[str, Size(1, 4096)] = ""
    up_to_date_replicas: int | None = None
    versions: Annotated[list[StatusVersion], Size(1, 100), ListType("map", ("version",))] = []


@resource("cluster.x-k8s.io", "v1beta2", "MachineSet", "machinesets")
class MachineSet(Object):
    """A MachineSet keeps a number of equal Machines. Use a MachineDeployment, which manages MachineSets."""

    spec: Required[MachineSetSpec] = msgspec.field(default_factory=MachineSetSpec)
    status: MachineSetStatus = msgspec.field(default_factory=MachineSetStatus)
