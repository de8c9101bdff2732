"""Cluster between v1beta1 and v1beta2."""

from __future__ import annotations

from homeport.capi.conversion.codec import CONTRACT_REF, DOMAINS
from homeport.capi.conversion.part import FAILURE, deletion, health_check, rollout, status
from homeport.capi.conversion.rule import Each, Move, Rule, Within

_HEALTH: list[Rule] = [
    Move("machineHealthCheck.enable", "healthCheck.enabled"),
    *health_check("machineHealthCheck.", "healthCheck."),
]
_TOPOLOGY: list[Rule] = [
    Move("class", "classRef.name"),
    Move("classNamespace", "classRef.namespace"),
    Within("controlPlane", [*deletion(), *_HEALTH]),
    Each("workers.machineDeployments", [*deletion(), *_HEALTH, *rollout("healthCheck.remediation.maxInFlight")]),
    Each("workers.machinePools", deletion()),
]

_CONDITIONS = {
    "Ready": "Available",
    "ControlPlaneInitialized": "ControlPlaneInitialized",
    "ControlPlaneReady": "ControlPlaneAvailable",
    "InfrastructureReady": "InfrastructureReady",
    "TopologyReconciled": "TopologyReconciled",
}

CLUSTER: list[Rule] = [
    Move("spec.controlPlaneRef", "spec.controlPlaneRef", CONTRACT_REF),
    Move("spec.infrastructureRef", "spec.infrastructureRef", CONTRACT_REF),
    Within("spec.topology", _TOPOLOGY),
    *status(_CONDITIONS, retired=FAILURE, promoted=("controlPlane", "workers")),
    Move("status.infrastructureReady", "status.initialization.infrastructureProvisioned"),
    Move("status.controlPlaneReady", "status.initialization.controlPlaneInitialized"),
    Move("status.failureDomains", "status.failureDomains", DOMAINS),
]
