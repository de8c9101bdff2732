"""CustomResourceDefinitions of k0smotron's kinds."""

from __future__ import annotations

from typing import Any

from homeport.capi.definition import inventory
from homeport.capi.definition.kind import CONTRACTS, SELECTING, Kind, render_definition
from homeport.capi.k0s.definition import columns
from homeport.hosted.k0smotron.conversion import KINDS

LISTED = inventory.UpstreamProvider("ControlPlaneProvider", "k0sproject-k0smotron", "v2.1.0")
LABELS = inventory.labels(LISTED)
_COLUMNS = columns(KINDS, "K0smotronControlPlane")
_BOTH = ("v1beta1", "v1beta2")


def _kind(name: str) -> Kind:
    versions = next(each for each, _ in KINDS if each[-1].__resource__.kind == name)
    match name:
        case "Cluster":
            return Kind(versions=versions, short=("kmc",), scale=SELECTING)
        case "JoinTokenRequest":
            return Kind(versions=versions, short=("jtr",))
        case "K0smotronControlPlane":
            return Kind(versions=versions, scale=SELECTING, fresh=("v1beta1",))
    return Kind(versions=versions, status=_BOTH, fresh=("v1beta1",))


def definitions() -> list[dict[str, Any]]:
    """The kinds that belong to a Cluster carry the contracts of Cluster API."""
    return [
        render_definition(_kind("Cluster"), _COLUMNS, LABELS),
        render_definition(_kind("JoinTokenRequest"), _COLUMNS, LABELS),
        render_definition(_kind("K0smotronControlPlane"), _COLUMNS, {**CONTRACTS, **LABELS}),
        render_definition(_kind("K0smotronControlPlaneTemplate"), _COLUMNS, {**CONTRACTS, **LABELS}),
    ]
