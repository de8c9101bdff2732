"""CustomResourceDefinitions of the pools."""

from __future__ import annotations

from typing import Any

from homeport.capi.definition import inventory
from homeport.capi.definition.column import AGE, Column
from homeport.capi.definition.kind import Kind, render_definition
from homeport.capi.name import MOVE_HIERARCHY_LABEL
from homeport.ipam.conversion import KINDS

LISTED = inventory.UpstreamProvider("IPAMProvider", "in-cluster", "v1.0.3")
# Pools belong to no cluster: the label is how tools that move clusters find them, and what is made from them.
LABELS = {**inventory.labels(LISTED), MOVE_HIERARCHY_LABEL: ""}
_COLUMNS = (
    Column("Addresses", ".spec.addresses"),
    Column("Total", ".status.ipAddresses.total", "integer"),
    Column("Free", ".status.ipAddresses.free", "integer"),
    Column("Used", ".status.ipAddresses.used", "integer"),
    AGE,
)
_OLD_COLUMNS = (
    Column("Subnet", ".spec.subnet"),
    Column("Start", ".spec.start"),
    Column("End", ".spec.end"),
    *_COLUMNS,
)
_KINDS = tuple(Kind(versions=versions) for versions in KINDS)


def definitions() -> list[dict[str, Any]]:
    columns = {
        (kind.versions[-1].__resource__.kind, version): shown
        for kind in _KINDS
        for version, shown in (("v1alpha1", _OLD_COLUMNS), ("v1alpha2", _COLUMNS))
    }
    return [render_definition(kind, columns, LABELS) for kind in _KINDS]
