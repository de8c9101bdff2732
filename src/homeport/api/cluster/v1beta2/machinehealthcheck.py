"""MachineHealthCheck: when a Machine counts as unhealthy, and what happens then."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2.shape import HealthChecks, RemediationTrigger, TemplateReference
from homeport.api.field import (
    Conditions,
    Count,
    DeprecatedConditions,
    LabelSelector,
    NonEmpty,
)
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Format, ListType, Range, Required, Size


class MachineHealthCheckRemediationTemplateReference(TemplateReference):
    """A template for the object that asks somebody else to heal the Machine."""


class MachineHealthCheckChecks(HealthChecks):
    """Conditions and timeouts that make a Machine unhealthy."""


class MachineHealthCheckRemediationTriggerIf(RemediationTrigger):
    """Between which numbers of unhealthy Machines any are replaced."""


class MachineHealthCheckRemediation(NonEmpty):
    """When and how unhealthy Machines are replaced."""

    template_ref: MachineHealthCheckRemediationTemplateReference | None = None
    trigger_if: MachineHealthCheckRemediationTriggerIf = msgspec.field(
        default_factory=MachineHealthCheckRemediationTriggerIf
    )


class MachineHealthCheckSpec(Model):
    """Which Machines are watched, and by what."""

    checks: MachineHealthCheckChecks = msgspec.field(default_factory=MachineHealthCheckChecks)
    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""
    remediation: MachineHealthCheckRemediation = msgspec.field(default_factory=MachineHealthCheckRemediation)
    selector: Required[LabelSelector] = {}


class MachineHealthCheckStatus(NonEmpty):
    """How many Machines are watched and healthy."""

    conditions: Conditions = []
    current_healthy: Count | None = None
    deprecated: DeprecatedConditions = msgspec.field(default_factory=DeprecatedConditions)
    expected_machines: Count | None = None
    observed_generation: Annotated[int, Range(1), Format("int64")] = 0
    remediations_allowed: Count | None = None
    targets: Annotated[list[Annotated[str, Size(1, 253)]], Size(None, 10000), ListType("atomic")] = []


@resource("cluster.x-k8s.io", "v1beta2", "MachineHealthCheck", "machinehealthchecks")
class MachineHealthCheck(Object):
    """A MachineHealthCheck finds unhealthy Machines and has them replaced."""

    spec: Required[MachineHealthCheckSpec] = msgspec.field(default_factory=MachineHealthCheckSpec)
    status: MachineHealthCheckStatus = msgspec.field(default_factory=MachineHealthCheckStatus)
