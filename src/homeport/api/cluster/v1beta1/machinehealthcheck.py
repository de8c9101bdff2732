"""MachineHealthCheck: when a Machine counts as unhealthy, and what happens then."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.core.v1 import ObjectReference
from homeport.api.field import (
    Conditions,
    Count,
    IntOrString,
    LabelSelector,
    Long,
    MachineConditionType,
    OldCondition,
    Truth,
)
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import ListType, Pattern, Required, Size


class UnhealthyCondition(Model):
    """A condition of the Node that, kept for a time, makes a Machine unhealthy."""

    status: Required[Annotated[str, Size(1)]] = ""
    timeout: Required[str] = ""
    type: Required[Annotated[str, Size(1)]] = ""


class UnhealthyMachineCondition(Model):
    """A condition of the Machine that, kept for a time, makes it unhealthy."""

    status: Required[Truth] = ""
    timeout: Required[str] = ""
    type: Required[MachineConditionType] = ""


class MachineHealthCheckSpec(Model):
    """Which Machines are watched, and by what."""

    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""
    max_unhealthy: IntOrString | None = None
    node_startup_timeout: str | None = None
    remediation_template: ObjectReference | None = None
    selector: Required[LabelSelector] = {}
    unhealthy_conditions: Annotated[list[UnhealthyCondition], Size(None, 100)] = []
    unhealthy_machine_conditions: Annotated[list[UnhealthyMachineCondition], Size(1, 100), ListType("atomic")] = []
    unhealthy_range: Annotated[str, Size(1, 32), Pattern(r"^\[[0-9]+-[0-9]+\]$")] | None = None


class MachineHealthCheckV1Beta2Status(Model):
    """Status in the manner of v1beta2."""

    conditions: Conditions = []


class MachineHealthCheckStatus(Model):
    """How many Machines are watched and healthy."""

    conditions: list[OldCondition] = []
    current_healthy: Count = 0
    expected_machines: Count = 0
    observed_generation: Long = 0
    remediations_allowed: Count = 0
    targets: Annotated[list[Annotated[str, Size(1, 253)]], Size(None, 10000)] = []
    v1beta2: MachineHealthCheckV1Beta2Status | None = None


@resource("cluster.x-k8s.io", "v1beta1", "MachineHealthCheck", "machinehealthchecks")
class MachineHealthCheck(Object):
    """A MachineHealthCheck finds unhealthy Machines and has them replaced."""

    spec: MachineHealthCheckSpec = msgspec.field(default_factory=MachineHealthCheckSpec)
    status: MachineHealthCheckStatus = msgspec.field(default_factory=MachineHealthCheckStatus)
