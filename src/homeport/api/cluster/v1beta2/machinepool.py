"""MachinePool: hosts that the infrastructure itself keeps in number."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2.machine import MachineTemplateSpec
from homeport.api.cluster.v1beta2.reference import StatusVersion
from homeport.api.cluster.v1beta2.shape import Provisioning
from homeport.api.core.v1 import ObjectReference
from homeport.api.field import Conditions, NonEmpty, OldCondition
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, ListType, Range, Required, Size

_SCALING = ("ScalingUp", "ScalingDown", "Scaling")
MachinePoolPhase = Annotated[
    str,
    Enum(("Pending", "Provisioning", "Provisioned", "Running", *_SCALING, "Deleting", "Failed", "Unknown")),
]


class MachinePoolSpec(Model):
    """Desired state of a MachinePool."""

    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""
    failure_domains: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100), ListType("atomic")] = []
    provider_id_list: Annotated[list[Annotated[str, Size(1, 512)]], Size(None, 10000), ListType("atomic")] = []
    replicas: int | None = None
    template: Required[MachineTemplateSpec] = msgspec.field(default_factory=MachineTemplateSpec)


class MachinePoolV1Beta1DeprecatedStatus(Model):
    """What v1beta1 reported; nobody reads it any more."""

    available_replicas: int = 0
    conditions: list[OldCondition] = []
    failure_message: Annotated[str, Size(1, 10240)] | None = None
    failure_reason: str | None = None
    ready_replicas: int = 0
    unavailable_replicas: int = 0


class MachinePoolDeprecatedStatus(Model):
    """Status of older versions of the API."""

    v1beta1: MachinePoolV1Beta1DeprecatedStatus = msgspec.field(default_factory=MachinePoolV1Beta1DeprecatedStatus)


class MachinePoolInitializationStatus(Provisioning):
    """What was there once: bootstrap data and infrastructure."""


class MachinePoolStatus(NonEmpty):
    """What a MachinePool is."""

    available_replicas: int | None = None
    conditions: Conditions = []
    deprecated: MachinePoolDeprecatedStatus = msgspec.field(default_factory=MachinePoolDeprecatedStatus)
    initialization: MachinePoolInitializationStatus = msgspec.field(default_factory=MachinePoolInitializationStatus)
    node_refs: Annotated[list[ObjectReference], Size(None, 10000), ListType("atomic")] = []
    observed_generation: Annotated[int, Range(1), Format("int64")] = 0
    phase: MachinePoolPhase = ""
    ready_replicas: int | None = None
    replicas: int | None = None
    up_to_date_replicas: int | None = None
    versions: Annotated[list[StatusVersion], Size(1, 100), ListType("map", ("version",))] = []


@resource("cluster.x-k8s.io", "v1beta2", "MachinePool", "machinepools")
class MachinePool(Object):
    """A MachinePool is a group of hosts whose number the infrastructure itself maintains.

    Homeport stores it and creates no machines for it yet: use a MachineDeployment.
    """

    spec: Required[MachinePoolSpec] = msgspec.field(default_factory=MachinePoolSpec)
    status: MachinePoolStatus = msgspec.field(default_factory=MachinePoolStatus)
