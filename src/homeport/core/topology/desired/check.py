"""MachineHealthChecks of a topology. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, MachineHealthCheck
from homeport.api.cluster.v1beta2.template import ControlPlaneClassHealthCheck, MachineDeploymentClassHealthCheck
from homeport.api.cluster.v1beta2.topology import ControlPlaneTopologyHealthCheck, MachineDeploymentTopologyHealthCheck
from homeport.api.meta import wire
from homeport.capi.object.ownership import owner_reference
from homeport.core.topology.desired.clone import owned_labels

Json = dict[str, Any]
_Topology = ControlPlaneTopologyHealthCheck | MachineDeploymentTopologyHealthCheck
_Class = ControlPlaneClassHealthCheck | MachineDeploymentClassHealthCheck


def rules(topology: _Topology, given: _Class) -> Json | None:
    """What the Cluster says takes the place of all that the class says. None: there is to be no check."""
    rule = _rule(topology) or _rule(given)
    return rule if rule and topology.enabled is not False else None


def _rule(said: _Topology | _Class) -> Json:
    remediation = wire(said.remediation)
    remediation.pop("maxInFlight", None)  # that one is for the MachineDeployment
    made = {"checks": wire(said.checks), "remediation": remediation}
    return {key: value for key, value in made.items() if value}


def health_check(cluster: Cluster, name: str, selector: Mapping[str, str], rule: Json) -> Json:
    resource = MachineHealthCheck.__resource__
    return {
        **resource.type_meta,
        "metadata": {
            "name": name,
            "namespace": cluster.metadata.namespace,
            "labels": owned_labels(cluster),
            "ownerReferences": [owner_reference(cluster)],
        },
        "spec": {"clusterName": cluster.metadata.name, "selector": {"matchLabels": dict(selector)}, **rule},
    }
