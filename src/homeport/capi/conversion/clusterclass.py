"""ClusterClass between v1beta1 and v1beta2."""

from __future__ import annotations

from homeport.capi.conversion.codec import TEMPLATE_REF
from homeport.capi.conversion.part import deletion, health_check, rollout, status
from homeport.capi.conversion.rule import Each, Move, Rule, Within

_NAMING = Move("namingStrategy.template", "naming.template")
_HEALTH = health_check("machineHealthCheck.", "healthCheck.")
_WORKER: list[Rule] = [
    Move("template.metadata", "metadata"),
    Move("template.bootstrap.ref", "bootstrap.templateRef", TEMPLATE_REF),
    Move("template.infrastructure.ref", "infrastructure.templateRef", TEMPLATE_REF),
    _NAMING,
    *deletion(),
]
_CONTROL_PLANE: list[Rule] = [
    Move("ref", "templateRef", TEMPLATE_REF),
    Move("machineInfrastructure.ref", "machineInfrastructure.templateRef", TEMPLATE_REF),
    _NAMING,
    *deletion(),
    *_HEALTH,
]
_METADATA = Move("metadata", "deprecatedV1Beta1Metadata")
_EXTERNAL: list[Rule] = [
    Move("external.generateExtension", "external.generatePatchesExtension"),
    Move("external.validateExtension", "external.validateTopologyExtension"),
]

CLUSTER_CLASS: list[Rule] = [
    Move("spec.infrastructure.ref", "spec.infrastructure.templateRef", TEMPLATE_REF),
    Move("spec.infrastructureNamingStrategy.template", "spec.infrastructure.naming.template"),
    Within("spec.controlPlane", _CONTROL_PLANE),
    Each(
        "spec.workers.machineDeployments",
        [*_WORKER, *_HEALTH, *rollout("healthCheck.remediation.maxInFlight")],
    ),
    Each("spec.workers.machinePools", _WORKER),
    Each("spec.patches", _EXTERNAL),
    Each("spec.variables", [_METADATA]),
    Each("status.variables", [Each("definitions", [_METADATA])]),
    *status({"VariablesReconciled": "VariablesReady", "RefVersionsUpToDate": "RefVersionsUpToDate"}),
]
