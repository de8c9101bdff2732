"""The variable `builtin` that patches may use: facts of the Cluster, and of what the patched template is for.

All functions give the whole variable, the Cluster's part included. What is not set is left out, so that templates can
ask `{{ if .builtin.machineDeployment }}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.cluster.v1beta2.topology import MachineDeploymentTopology
from homeport.capi import name

Json = dict[str, Any]

# Copies of the whole object: no fact of it, and larger than all facts together.
_LEFT_OUT = frozenset({"kubectl.kubernetes.io/last-applied-configuration", name.CONVERSION_DATA})


def cluster_builtin(cluster: Cluster) -> Json:
    """For the template of the infrastructure cluster, which knows nothing but the Cluster."""
    topology, network, meta = cluster.spec.topology, cluster.spec.cluster_network, cluster.metadata
    given = topology.class_ref if topology is not None else None
    class_name = given.name if given is not None else ""
    namespace = (given.namespace if given is not None else "") or meta.namespace
    facts = _present(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        metadata=_metadata(meta.labels, meta.annotations),
        network=_present(
            serviceDomain=network.service_domain,
            services=list(network.services.cidr_blocks),
            pods=list(network.pods.cidr_blocks),
        ),
    )
    facts["topology"] = {
        "version": topology.version if topology is not None else "",
        "classRef": {"name": class_name, "namespace": namespace},
        "class": class_name,
        "classNamespace": namespace,
    }
    return {"cluster": facts}


def control_plane_builtin(
    cluster: Cluster, control_plane: Mapping[str, Any], *, machine_template: Mapping[str, Any] | None = None
) -> Json:
    """For the template of the control plane and that of its machines. `control_plane` is the desired object."""
    meta, spec = control_plane.get("metadata") or {}, control_plane.get("spec") or {}
    facts = _present(
        version=spec.get("version"),
        name=meta.get("name"),
        metadata=_metadata(meta.get("labels"), meta.get("annotations")),
    )
    # Only a number that the Cluster asks for: otherwise the control plane's provider chooses it.
    if cluster.spec.topology is not None and cluster.spec.topology.control_plane.replicas is not None:
        facts["replicas"] = spec.get("replicas", cluster.spec.topology.control_plane.replicas)
    if machine_template is not None:
        facts["machineTemplate"] = {"infrastructureRef": {"name": _name(machine_template)}}
    return {**cluster_builtin(cluster), "controlPlane": facts}


def machine_deployment_builtin(
    cluster: Cluster,
    topology: MachineDeploymentTopology,
    deployment: Mapping[str, Any],
    *,
    bootstrap: Mapping[str, Any] | None = None,
    infrastructure: Mapping[str, Any] | None = None,
) -> Json:
    """For the two templates of one deployment. `deployment` is the desired object."""
    return {**cluster_builtin(cluster), "machineDeployment": _workers(topology, deployment, bootstrap, infrastructure)}


def _workers(
    topology: MachineDeploymentTopology,
    workers: Mapping[str, Any],
    bootstrap: Mapping[str, Any] | None,
    infrastructure: Mapping[str, Any] | None,
) -> Json:
    meta, spec = workers.get("metadata") or {}, workers.get("spec") or {}
    machine = ((spec.get("template") or {}).get("spec")) or {}
    facts = _present(
        version=machine.get("version"),
        metadata=_metadata(meta.get("labels"), meta.get("annotations")),
        **{"class": topology.class_},
        name=meta.get("name"),
        topologyName=topology.name,
    )
    if spec.get("replicas") is not None:
        facts["replicas"] = spec["replicas"]
    if bootstrap is not None:
        facts["bootstrap"] = {"configRef": {"name": _name(bootstrap)}}
    if infrastructure is not None:
        facts["infrastructureRef"] = {"name": _name(infrastructure)}
    return facts


def _metadata(labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> Json:
    kept = {key: value for key, value in (annotations or {}).items() if key not in _LEFT_OUT}
    return _present(labels=dict(labels or {}), annotations=kept)


def _present(**facts: Any) -> Json:
    return {key: value for key, value in facts.items() if value}


def _name(obj: Mapping[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")
