"""CustomResourceDefinitions of the k0s kinds."""

from __future__ import annotations

from typing import Any

from homeport.capi.conversion.registration import Conversions
from homeport.capi.definition import inventory
from homeport.capi.definition.column import AGE, CLUSTER_LABEL, OLD_REPLICAS, VERSION, WIDE_DESIRED, Column
from homeport.capi.definition.kind import CONTRACTS, SELECTING, Columns, Kind, render_definition
from homeport.capi.k0s.conversion import KINDS
from homeport.capi.name import BOOTSTRAP_GROUP

BOOTSTRAP = inventory.UpstreamProvider("BootstrapProvider", "k0sproject-k0smotron", "v2.1.0")
CONTROL_PLANE = inventory.UpstreamProvider("ControlPlaneProvider", "k0sproject-k0smotron", "v2.1.0")
_BOTH = ("v1beta1", "v1beta2")
# Of control planes, by version.
CONTROL_PLANE_COLUMNS = {
    "v1beta1": (
        CLUSTER_LABEL,
        Column("API Server Available", ".status.ready", "boolean"),
        *OLD_REPLICAS,
        AGE,
        VERSION,
    ),
    "v1beta2": (
        CLUSTER_LABEL,
        WIDE_DESIRED,
        Column("Replicas", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("UpToDate", ".status.upToDateReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        AGE,
        VERSION,
    ),
}


def columns(kinds: Conversions, control_plane: str) -> Columns:
    """Of all versions of the kinds; the control plane has more than its age."""
    return {
        (at.kind, at.version): CONTROL_PLANE_COLUMNS[at.version] if at.kind == control_plane else (AGE,)
        for versions, _ in kinds
        for at in (each.__resource__ for each in versions)
    }


_COLUMNS = columns(KINDS, "K0sControlPlane")


def definitions(group: str) -> list[dict[str, Any]]:
    """Of the kinds of one group."""
    listed = BOOTSTRAP if group == BOOTSTRAP_GROUP else CONTROL_PLANE
    labels = {**CONTRACTS, **inventory.labels(listed)}
    found = [versions for versions, _ in KINDS if versions[-1].__resource__.group == group]
    return [render_definition(_kind(versions), _COLUMNS, labels) for versions in found]


def _kind(versions: tuple[Any, Any]) -> Kind:
    at = versions[-1].__resource__
    fresh = () if at.group == BOOTSTRAP_GROUP else ("v1beta1",)
    if at.kind.endswith("Template"):
        return Kind(versions=versions, status=_BOTH, fresh=fresh)
    return Kind(versions=versions, scale=SELECTING if at.kind == "K0sControlPlane" else None, fresh=fresh)
