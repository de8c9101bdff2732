"""CustomResourceDefinitions of the pools."""

from __future__ import annotations

from typing import Any

from homeport.api.ipam import v1alpha2 as ipam
from homeport.capi import inventory
from homeport.capi.column import AGE, Column
from homeport.capi.definition import Kind, render_definition
from homeport.capi.name import MOVE_HIERARCHY_LABEL

LISTED = inventory.Listed("IPAMProvider", "in-cluster", "v1.0.3")
# Pools belong to no cluster: the label is how tools that move clusters find them, and what is made from them.
LABELS = {**inventory.labels(LISTED), MOVE_HIERARCHY_LABEL: ""}
_COLUMNS = (
    Column("Addresses", ".spec.addresses"),
    Column("Total", ".status.ipAddresses.total", "integer"),
    Column("Free", ".status.ipAddresses.free", "integer"),
    Column("Used", ".status.ipAddresses.used", "integer"),
    AGE,
)
_KINDS = (Kind(versions=(ipam.InClusterIPPool,)), Kind(versions=(ipam.GlobalInClusterIPPool,)))


def definitions() -> list[dict[str, Any]]:
    columns = {(kind.versions[-1].__resource__.kind, "v1alpha2"): _COLUMNS for kind in _KINDS}
    return [render_definition(kind, columns, LABELS) for kind in _KINDS]
