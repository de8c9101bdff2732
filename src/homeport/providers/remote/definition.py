"""CustomResourceDefinitions of the remote machine kinds."""

from __future__ import annotations

from typing import Any

from homeport.capi.definition import inventory
from homeport.capi.definition.column import AGE, CLUSTER_LABEL, READY, Column
from homeport.capi.definition.kind import CONTRACTS, Kind, render_definition
from homeport.providers.remote.conversion import KINDS

LISTED = inventory.UpstreamProvider("InfrastructureProvider", "k0sproject-k0smotron", "v2.1.0")
LABELS = {**CONTRACTS, **inventory.labels(LISTED)}

_PROVISIONED = Column("Provisioned", ".status.initialization.provisioned", "boolean")
_ENDPOINT = Column("Endpoint", ".spec.controlPlaneEndpoint.host")
_POOLED = (
    Column("Pool", ".spec.pool"),
    Column("Address", ".spec.machine.address"),
    Column("Reserved", ".status.reserved", "boolean"),
    Column("Remote Machine", ".status.machineRef.name"),
    AGE,
)
_MACHINE = (CLUSTER_LABEL, Column("Address", ".status.addresses[0].address"))
_COLUMNS = {
    (kind.__resource__.kind, kind.__resource__.version): (AGE,) for versions, _ in KINDS for kind in versions
} | {
    ("RemoteMachine", "v1beta1"): (*_MACHINE, READY, Column("ProviderID", ".spec.providerID"), AGE),
    ("RemoteMachine", "v1beta2"): (*_MACHINE, _PROVISIONED, Column("ProviderID", ".spec.providerID"), AGE),
    ("RemoteCluster", "v1beta1"): (CLUSTER_LABEL, _ENDPOINT, READY, AGE),
    ("RemoteCluster", "v1beta2"): (CLUSTER_LABEL, _ENDPOINT, _PROVISIONED, AGE),
    ("PooledRemoteMachine", "v1beta1"): _POOLED,
    ("PooledRemoteMachine", "v1beta2"): _POOLED,
}


def definitions() -> list[dict[str, Any]]:
    return [render_definition(Kind(versions=versions), _COLUMNS, LABELS) for versions, _ in KINDS]
