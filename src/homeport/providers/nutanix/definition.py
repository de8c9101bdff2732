"""CustomResourceDefinitions of the Nutanix kinds."""

from __future__ import annotations

from typing import Any

from homeport.api.nutanix import metro
from homeport.api.nutanix import v1beta1 as nutanix
from homeport.capi.definition import inventory
from homeport.capi.definition.column import AGE, INFRA_MACHINE, READY, Column
from homeport.capi.definition.kind import Kind, render_definition
from homeport.capi.name import MOVE_LABEL

LISTED = inventory.UpstreamProvider("InfrastructureProvider", "nutanix", "v1.10.3")
# Their status keeps the forms of the older contract (failure domains by name); what the newer one adds stands beside.
LABELS = {"cluster.x-k8s.io/v1beta1": "v1beta1", **inventory.labels(LISTED)}
_MOVED = {**LABELS, MOVE_LABEL: ""}

_COLUMNS = {
    ("NutanixCluster", "v1beta1"): (
        Column("ControlplaneEndpoint", ".spec.controlPlaneEndpoint.host"),
        READY,
        Column("FailureDomains", ".status.failureDomains", wide=True),
        AGE,
    ),
    ("NutanixMachine", "v1beta1"): INFRA_MACHINE,
    ("NutanixMachineTemplate", "v1beta1"): (AGE,),
    ("NutanixClusterTemplate", "v1beta1"): (AGE,),
    ("NutanixFailureDomain", "v1beta1"): (AGE,),
    ("NutanixMetro", "v1beta1"): (Column("FailureDomains", ".spec.failureDomains[*].name"), AGE),
    ("NutanixMetroSite", "v1beta1"): (
        Column("PreferredFailureDomain", ".spec.preferredFailureDomain.name"),
        Column("Metro", ".spec.metroRef.name"),
        Column("Group", ".spec.groupNameLabel"),
        AGE,
    ),
    ("NutanixVirtualHADomain", "v1beta1"): (Column("Metro", ".spec.metroRef.name"), READY, AGE),
}

_KINDS = (
    Kind(versions=(nutanix.NutanixCluster,), short=("ncl",)),
    Kind(versions=(nutanix.NutanixClusterTemplate,)),
    Kind(versions=(nutanix.NutanixMachine,), short=("nma",)),
    Kind(versions=(nutanix.NutanixMachineTemplate,), short=("nmtmpl",)),
)
_UNOWNED = (
    Kind(versions=(nutanix.NutanixFailureDomain,), short=("nfd",)),
    Kind(versions=(metro.NutanixMetro,)),
    Kind(versions=(metro.NutanixMetroSite,)),
    Kind(versions=(metro.NutanixVirtualHADomain,), short=("nvha",)),
)


def definitions() -> list[dict[str, Any]]:
    # Nothing owns failure domains and the like: the label is how tools that move clusters find them.
    return [
        *(render_definition(kind, _COLUMNS, LABELS) for kind in _KINDS),
        *(render_definition(kind, _COLUMNS, _MOVED) for kind in _UNOWNED),
    ]
