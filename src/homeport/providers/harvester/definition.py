"""CustomResourceDefinitions of the KubeVirt provider's kinds."""

from __future__ import annotations

from typing import Any

from homeport.api.kubevirt import v1alpha1 as kubevirt
from homeport.capi.definition import inventory
from homeport.capi.definition.column import AGE, CLUSTER_LABEL, INFRA_MACHINE, READY, Column
from homeport.capi.definition.kind import Kind, render_definition

LISTED = inventory.UpstreamProvider("InfrastructureProvider", "kubevirt", "v0.11.2")
# One version keeps both contracts: what the newer one adds stands beside what the older one reads.
LABELS = {
    "cluster.x-k8s.io/v1beta1": "v1alpha1",
    "cluster.x-k8s.io/v1beta2": "v1alpha1",
    **inventory.labels(LISTED),
}

_COLUMNS = {
    ("KubevirtCluster", "v1alpha1"): (
        CLUSTER_LABEL,
        Column("ControlplaneEndpoint", ".spec.controlPlaneEndpoint.host"),
        READY,
        AGE,
    ),
    ("KubevirtMachine", "v1alpha1"): INFRA_MACHINE,
    ("KubevirtMachineTemplate", "v1alpha1"): (AGE,),
    ("KubevirtClusterTemplate", "v1alpha1"): (AGE,),
}

_KINDS = (
    Kind(versions=(kubevirt.KubevirtCluster,)),
    Kind(versions=(kubevirt.KubevirtClusterTemplate,), short=("kct",)),
    Kind(versions=(kubevirt.KubevirtMachine,)),
    Kind(versions=(kubevirt.KubevirtMachineTemplate,)),
)


def definitions() -> list[dict[str, Any]]:
    return [render_definition(kind, _COLUMNS, LABELS) for kind in _KINDS]
