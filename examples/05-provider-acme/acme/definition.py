"""CustomResourceDefinitions of the Acme kinds."""

from __future__ import annotations

from typing import Any

from acme.api import VERSION, AcmeCluster, AcmeMachine, AcmeMachineTemplate
from homeport.capi.definition.column import AGE, CLUSTER_LABEL, Column
from homeport.capi.definition.kind import Kind, render_definition

# The version that implements each contract of Cluster API, and the provider that clusterctl shows for these kinds.
LABELS = {
    "cluster.x-k8s.io/v1beta2": VERSION,
    "cluster.x-k8s.io/provider": "infrastructure-acme",
    "clusterctl.cluster.x-k8s.io": "",
}
_READY = Column("Ready", ".status.ready", "boolean")
_COLUMNS = {
    ("AcmeCluster", VERSION): (Column("Endpoint", ".spec.controlPlaneEndpoint.host"), _READY, AGE),
    ("AcmeMachine", VERSION): (
        CLUSTER_LABEL,
        Column("Address", ".status.addresses[0].address"),
        _READY,
        Column("ProviderID", ".spec.providerID"),
        AGE,
    ),
    ("AcmeMachineTemplate", VERSION): (AGE,),
}


def definitions() -> list[dict[str, Any]]:
    kinds = (AcmeCluster, AcmeMachine, AcmeMachineTemplate)
    return [render_definition(Kind(versions=(each,)), _COLUMNS, LABELS) for each in kinds]
