"""MachineDeployments of a topology. Pure."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, ContractRef, MachineDeployment
from homeport.api.cluster.v1beta2.template import MachineDeploymentClass
from homeport.api.cluster.v1beta2.topology import MachineDeploymentTopology
from homeport.api.meta import wire
from homeport.capi.name import (
    CLUSTER_NAME_LABEL,
    TOPOLOGY_DEFER_UPGRADE,
    TOPOLOGY_DEPLOYMENT_NAME_LABEL,
    TOPOLOGY_HOLD_UPGRADE_SEQUENCE,
    TOPOLOGY_OWNED_LABEL,
)
from homeport.capi.object.ownership import owner_reference
from homeport.core.topology.current import CurrentDeployment
from homeport.core.topology.desired import name
from homeport.core.topology.desired.blueprint import DeploymentBlueprint, Template
from homeport.core.topology.desired.check import health_check, rules
from homeport.core.topology.desired.clone import merged, owned_labels
from homeport.machinery.gvk import parse_api_version

Json = dict[str, Any]

_FOR_THE_TOPOLOGY = (TOPOLOGY_DEFER_UPGRADE, TOPOLOGY_HOLD_UPGRADE_SEQUENCE)


def own_label(topology: MachineDeploymentTopology) -> dict[str, str]:
    return {TOPOLOGY_DEPLOYMENT_NAME_LABEL: topology.name}


def deployment_name(
    cluster: Cluster,
    topology: MachineDeploymentTopology,
    blueprint: DeploymentBlueprint,
    current: CurrentDeployment | None,
) -> str:
    if current is not None:
        return current.object.metadata.name
    return name.deployment(cluster, topology.name, blueprint.given.naming.template)


def template_name(cluster: Cluster, topology: str, template: Template, ref: ContractRef | None) -> str:
    """Of a copy of a template, before it is known whether there has to be another."""
    if ref is not None and (ref.api_group, ref.kind) == template.kind:
        return ref.name
    return name.template(cluster, topology)


def deployment(
    cluster: Cluster,
    topology: MachineDeploymentTopology,
    blueprint: DeploymentBlueprint,
    current: CurrentDeployment | None,
    version: str,
) -> Json:
    """The object, without the references to its two templates."""
    given = blueprint.given
    labels = {
        **merged(topology.metadata.labels, given.metadata.labels),
        **owned_labels(cluster),
        **own_label(topology),
    }
    annotations = merged(topology.metadata.annotations, given.metadata.annotations)
    for key in _FOR_THE_TOPOLOGY:
        annotations.pop(key, None)
    selected = {CLUSTER_NAME_LABEL: cluster.metadata.name, TOPOLOGY_OWNED_LABEL: "", **own_label(topology)}
    return {
        **MachineDeployment.__resource__.type_meta,
        "metadata": {
            "name": deployment_name(cluster, topology, blueprint, current),
            "namespace": cluster.metadata.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner_reference(cluster)],
        },
        "spec": _filled(
            clusterName=cluster.metadata.name,
            replicas=topology.replicas,
            rollout=_rollout(topology, given),
            deletion=_filled(order=topology.deletion.order or given.deletion.order),
            remediation=_filled(maxInFlight=_max_in_flight(topology, given)),
            selector={"matchLabels": selected},
            template={
                "metadata": _filled(labels=dict(labels), annotations=dict(annotations)),
                "spec": _machine(cluster, topology, given, version),
            },
        ),
    }


def _machine(
    cluster: Cluster, topology: MachineDeploymentTopology, given: MachineDeploymentClass, version: str
) -> Json:
    deletion = {**wire(given.deletion), **wire(topology.deletion)}
    deletion.pop("order", None)
    seconds = given.min_ready_seconds if topology.min_ready_seconds is None else topology.min_ready_seconds
    return _filled(
        clusterName=cluster.metadata.name,
        version=version,
        failureDomain=topology.failure_domain or given.failure_domain,
        deletion=deletion,
        readinessGates=wire(topology.readiness_gates or given.readiness_gates),
        taints=wire(topology.taints or given.taints),
        minReadySeconds=seconds,
    )


def _rollout(topology: MachineDeploymentTopology, given: MachineDeploymentClass) -> Json:
    strategy = wire(topology.rollout.strategy) if topology.rollout.strategy.type else wire(given.rollout.strategy)
    return _filled(after=topology.rollout.after, strategy=strategy)


def _max_in_flight(topology: MachineDeploymentTopology, given: MachineDeploymentClass) -> int | str | None:
    said = topology.health_check.remediation.max_in_flight
    return given.health_check.remediation.max_in_flight if said is None else said


def _filled(**parts: Any) -> Json:
    """Without what nobody said. Zero is a value."""
    return {key: value for key, value in parts.items() if value is not None and value not in ("", {}, [])}


def refer(made: Json, bootstrap: Json, infrastructure: Json) -> None:
    """Sets the references to its templates."""
    machine = made["spec"]["template"]["spec"]
    machine["bootstrap"] = {"configRef": _ref(bootstrap)}
    machine["infrastructureRef"] = _ref(infrastructure)


def keep(made: Json, current: MachineDeployment) -> None:
    """With what Machines are replaced for as it is: everything else may change before the version does."""
    machine, held = made["spec"]["template"]["spec"], wire(current.spec.template.spec)
    for field in ("bootstrap", "infrastructureRef", "failureDomain"):
        machine.pop(field, None)
        if held.get(field):
            machine[field] = held[field]


def _ref(template: Json) -> Json:
    group = parse_api_version(template["apiVersion"]).group
    return {"apiGroup": group, "kind": template["kind"], "name": template["metadata"]["name"]}


def check(
    cluster: Cluster, topology: MachineDeploymentTopology, blueprint: DeploymentBlueprint, of: str
) -> Json | None:
    rule = rules(topology.health_check, blueprint.given.health_check)
    selector = {TOPOLOGY_OWNED_LABEL: "", **own_label(topology)}
    return health_check(cluster, of, selector, rule) if rule is not None else None


def is_deferred(topologies: list[MachineDeploymentTopology], which: str) -> bool:
    """The user says: not this one, or: not this one and none that comes after it."""
    for each in topologies:
        if TOPOLOGY_HOLD_UPGRADE_SEQUENCE in each.metadata.annotations:
            return True
        if each.name == which:
            return TOPOLOGY_DEFER_UPGRADE in each.metadata.annotations
    return False
