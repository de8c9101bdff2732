"""Fields that several types have. Each type has its own name, and its own description of each field."""

from __future__ import annotations

from typing import Annotated

from homeport.api.cluster.v1beta2.reference import StatusUpgradePlanVersion, StatusVersion
from homeport.api.field import Count, IntOrString, Kind, MachineConditionType, Name, NonEmpty, OldCondition, Truth
from homeport.api.meta import Model
from homeport.api.schema import ListType, Pattern, Required, Size


class UnhealthyMachineCondition(Model):
    """A condition of the Machine that, kept for a time, makes it unhealthy."""

    status: Required[Truth] = ""
    timeout_seconds: Required[Count | None] = None
    type: Required[MachineConditionType] = ""


class UnhealthyNodeCondition(Model):
    """A condition of the Node that, kept for a time, makes a Machine unhealthy."""

    status: Required[Annotated[str, Size(1)]] = ""
    timeout_seconds: Required[Count | None] = None
    type: Required[Annotated[str, Size(1)]] = ""


class DeletionTimeouts(NonEmpty):
    """How long the steps of a deletion may take."""

    node_deletion_timeout_seconds: Count | None = None
    node_drain_timeout_seconds: Count | None = None
    node_volume_detach_timeout_seconds: Count | None = None


class HealthChecks(NonEmpty):
    """Conditions and timeouts that make a Machine unhealthy."""

    node_startup_timeout_seconds: Count | None = None
    unhealthy_machine_conditions: Annotated[list[UnhealthyMachineCondition], Size(1, 100), ListType("atomic")] = []
    unhealthy_node_conditions: Annotated[list[UnhealthyNodeCondition], Size(1, 100), ListType("atomic")] = []


class RemediationTrigger(NonEmpty):
    """Between which numbers of unhealthy Machines any are replaced."""

    unhealthy_in_range: Annotated[str, Size(1, 32), Pattern(r"^\[[0-9]+-[0-9]+\]$")] = ""
    unhealthy_less_than_or_equal_to: IntOrString | None = None


class ReplicaCounts(Model):
    """Replicas, counted."""

    available_replicas: int | None = None
    desired_replicas: int | None = None
    ready_replicas: int | None = None
    replicas: int | None = None
    up_to_date_replicas: int | None = None
    upgrade_plan: Annotated[list[StatusUpgradePlanVersion], Size(1, 32), ListType("atomic")] = []
    versions: Annotated[list[StatusVersion], Size(1, 32), ListType("atomic")] = []


class V1Beta1FailureStatus(Model):
    """What v1beta1 reported of an object that can fail."""

    conditions: list[OldCondition] = []
    failure_message: Annotated[str, Size(1, 10240)] | None = None
    failure_reason: str | None = None


class TemplateReference(Model):
    """A template of any group."""

    api_version: Required[
        Annotated[
            str,
            Size(1, 317),
            Pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$"),
        ]
    ] = ""
    kind: Required[Kind] = ""
    name: Required[Name] = ""


class RollingUpdateLimits(NonEmpty):
    """How many Machines may come and go at once."""

    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class Provisioning(NonEmpty):
    """What was there once: bootstrap data and infrastructure."""

    bootstrap_data_secret_created: bool | None = None
    infrastructure_provisioned: bool | None = None
