"""MachinePool: hosts that the infrastructure itself keeps in number."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta1.machine import MachineTemplateSpec
from homeport.api.cluster.v1beta1.reference import ReplicaStatus
from homeport.api.cluster.v1beta2.machinepool import MachinePoolPhase
from homeport.api.cluster.v1beta2.reference import StatusVersion
from homeport.api.core.v1 import ObjectReference
from homeport.api.field import Long, OldCondition
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import ListType, Required, Size


class MachinePoolSpec(Model):
    """Desired state of a MachinePool."""

    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""
    failure_domains: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100)] = []
    min_ready_seconds: int | None = None
    provider_id_list: Annotated[list[Annotated[str, Size(1, 512)]], Size(None, 10000)] = []
    replicas: int | None = None
    template: Required[MachineTemplateSpec] = msgspec.field(default_factory=MachineTemplateSpec)


class MachinePoolV1Beta2Status(ReplicaStatus):
    """Status in the manner of v1beta2."""


class MachinePoolStatus(Model):
    """What a MachinePool is."""

    available_replicas: int = 0
    bootstrap_ready: bool = False
    conditions: list[OldCondition] = []
    failure_message: Annotated[str, Size(1, 10240)] | None = None
    failure_reason: str | None = None
    infrastructure_ready: bool = False
    node_refs: Annotated[list[ObjectReference], Size(None, 10000)] = []
    observed_generation: Long = 0
    phase: MachinePoolPhase = ""
    ready_replicas: int = 0
    replicas: int = 0
    unavailable_replicas: int = 0
    v1beta2: MachinePoolV1Beta2Status | None = None
    versions: Annotated[list[StatusVersion], Size(1, 100), ListType("map", ("version",))] = []


@resource("cluster.x-k8s.io", "v1beta1", "MachinePool", "machinepools")
class MachinePool(Object):
    """A MachinePool is a group of hosts whose number the infrastructure itself maintains.

    Homeport stores it and creates no machines for it yet: use a MachineDeployment.
    """

    spec: MachinePoolSpec = msgspec.field(default_factory=MachinePoolSpec)
    status: MachinePoolStatus = msgspec.field(default_factory=MachinePoolStatus)
