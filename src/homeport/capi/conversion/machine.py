"""Machine and what makes Machines, between v1beta1 and v1beta2."""

from __future__ import annotations

from homeport.capi.conversion.codec import NODE_REF, PHASE
from homeport.capi.conversion.part import FAILURE, MACHINE_SPEC, counters, health_check, rollout, status
from homeport.capi.conversion.rule import Move, Rule, Within

_COUNTERS = ("readyReplicas", "availableReplicas")
_PROMOTED = (*_COUNTERS, "upToDateReplicas")
_TEMPLATE: list[Rule] = [
    Within("spec.template.spec", MACHINE_SPEC),
    Move("spec.minReadySeconds", "spec.template.spec.minReadySeconds"),
]
_NAMING = Move("spec.machineNamingStrategy", "spec.machineNaming")
_INITIALIZATION: list[Rule] = [
    Move("status.bootstrapReady", "status.initialization.bootstrapDataSecretCreated"),
    Move("status.infrastructureReady", "status.initialization.infrastructureProvisioned"),
]

_MACHINE_CONDITIONS = {
    "Ready": "Ready",
    "BootstrapReady": "BootstrapConfigReady",
    "InfrastructureReady": "InfrastructureReady",
    "NodeHealthy": "NodeHealthy",
    "HealthCheckSucceeded": "HealthCheckSucceeded",
    "OwnerRemediated": "OwnerRemediated",
}

MACHINE: list[Rule] = [
    Within("spec", MACHINE_SPEC),
    *status(_MACHINE_CONDITIONS, retired=FAILURE),
    *_INITIALIZATION,
    Move("status.nodeRef", "status.nodeRef", NODE_REF),
    Move("status.phase", "status.phase", PHASE),
]

MACHINE_SET: list[Rule] = [
    *_TEMPLATE,
    _NAMING,
    Move("spec.deletePolicy", "spec.deletion.order"),
    counters(*_COUNTERS, "fullyLabeledReplicas"),
    *status(
        {"Ready": "MachinesReady", "MachinesReady": "MachinesReady"},
        retired=(*FAILURE, *_COUNTERS, "fullyLabeledReplicas"),
        promoted=_PROMOTED,
    ),
]

MACHINE_DEPLOYMENT: list[Rule] = [
    *_TEMPLATE,
    _NAMING,
    Within("spec", [*rollout("remediation.maxInFlight"), Move("rolloutAfter", "rollout.after")]),
    counters(*_COUNTERS, "updatedReplicas", "unavailableReplicas"),
    *status(
        {"Ready": "Available", "Available": "Available"},
        retired=(*_COUNTERS, "updatedReplicas", "unavailableReplicas"),
        promoted=_PROMOTED,
    ),
]

MACHINE_POOL: list[Rule] = [
    *_TEMPLATE,
    counters(*_COUNTERS, "unavailableReplicas"),
    *status(retired=(*FAILURE, *_COUNTERS, "unavailableReplicas"), promoted=_PROMOTED),
    *_INITIALIZATION,
]

MACHINE_HEALTH_CHECK: list[Rule] = [
    Within("spec", health_check()),
    *status({"RemediationAllowed": "RemediationAllowed"}),
]
