"""The CustomResourceDefinition of ClusterAddons."""

from __future__ import annotations

from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.capi.definition.column import AGE, Column
from homeport.capi.definition.kind import Kind, render_definition
from homeport.capi.name import CLUSTERCTL_LABEL, MOVE_HIERARCHY_LABEL

# An add-on belongs to a Cluster by its name alone: the label is how tools that move clusters find it.
LABELS = {CLUSTERCTL_LABEL: "", MOVE_HIERARCHY_LABEL: ""}
_COLUMNS = {
    ("ClusterAddon", "v1alpha1"): (
        Column("Cluster", ".spec.clusterName"),
        Column("Addon", ".spec.addon"),
        Column("Version", ".status.version"),
        Column("Phase", ".status.phase"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Clusters", ".status.clusterCount", wide=True),
        Column("Message", '.status.conditions[?(@.type=="Ready")].message', wide=True),
        AGE,
    )
}


def definitions() -> list[dict[str, Any]]:
    return [render_definition(Kind(versions=(ClusterAddon,), short=("cad",)), _COLUMNS, LABELS)]
