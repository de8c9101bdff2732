"""The control plane of a topology. Pure."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import wire
from homeport.capi import setter
from homeport.capi.contract import control_plane
from homeport.capi.name import CONTROL_PLANE_LABEL, TOPOLOGY_OWNED_LABEL
from homeport.core.topology.current import Current
from homeport.core.topology.desired import name
from homeport.core.topology.desired.blueprint import Blueprint
from homeport.core.topology.desired.check import health_check, rules
from homeport.core.topology.desired.clone import merged, object_from, owned_labels

Json = dict[str, Any]


def plane_name(cluster: Cluster, blueprint: Blueprint) -> str:
    ref = cluster.spec.control_plane_ref
    template = blueprint.cluster_class.spec.control_plane.naming.template
    return ref.name if ref is not None else name.control_plane(cluster, template)


def machines_name(cluster: Cluster, blueprint: Blueprint, current: Current) -> str:
    """Of the template of its machines, before it is known whether there has to be another."""
    if current.control_plane is not None:
        ref = control_plane.infrastructure_ref(current.control_plane, blueprint.contract)
        if ref is not None and ref.get("name"):
            return str(ref["name"])
    return name.template(cluster, blueprint.machines.clone_name if blueprint.machines is not None else "")


def draft(cluster: Cluster, blueprint: Blueprint, version: str) -> Json:
    """What is known of it before the patches: what they may ask about."""
    wanted, given = cluster.spec.topology.control_plane, blueprint.cluster_class.spec.control_plane
    labels = {**merged(wanted.metadata.labels, given.metadata.labels), **owned_labels(cluster)}
    made: Json = {
        "metadata": {
            "name": plane_name(cluster, blueprint),
            "namespace": cluster.metadata.namespace,
            "labels": labels,
            "annotations": merged(wanted.metadata.annotations, given.metadata.annotations),
        },
        "spec": {"version": version},
    }
    if wanted.replicas is not None:
        made["spec"]["replicas"] = wanted.replicas
    return made


def finished(cluster: Cluster, blueprint: Blueprint, drafted: Json, template: Json, machines: Json | None) -> Json:
    """The object, from the patched template. What the topology says comes over what patches say."""
    wanted, given = cluster.spec.topology.control_plane, blueprint.cluster_class.spec.control_plane
    contract = blueprint.contract
    meta = drafted["metadata"]
    made = object_from(template, cluster, meta["name"], meta["labels"], meta["annotations"])
    setter.version(made, drafted["spec"]["version"])
    if wanted.replicas is not None:
        setter.replicas(made, wanted.replicas)
    if wanted.rollout.after:
        setter.rollout_after(made, contract, wanted.rollout.after)
    if machines is not None:
        setter.infrastructure_ref(made, contract, machines, machines["metadata"]["name"])
        setter.machine_metadata(made, meta["labels"], meta["annotations"])
    setter.deletion(made, contract, {**wire(given.deletion), **wire(wanted.deletion)})
    for field, values in (
        ("readinessGates", wanted.readiness_gates or given.readiness_gates),
        ("taints", wanted.taints or given.taints),
    ):
        if values:
            setter.machine_list(made, contract, field, wire(values))
    return made


def check(cluster: Cluster, blueprint: Blueprint, plane: str) -> Json | None:
    if blueprint.machines is None:
        return None  # it has no Machines
    rule = rules(
        cluster.spec.topology.control_plane.health_check, blueprint.cluster_class.spec.control_plane.health_check
    )
    selector = {TOPOLOGY_OWNED_LABEL: "", CONTROL_PLANE_LABEL: ""}
    return health_check(cluster, plane, selector, rule) if rule is not None else None
