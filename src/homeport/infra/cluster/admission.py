"""What InfraClusters of every provider must keep."""

from __future__ import annotations

from typing import Any

from homeport.capi.contract import Endpoint
from homeport.client.errors import Cause

Json = dict[str, Any]
_PORT = 6443


def endpoint_causes(obj: Json, old: Json | None) -> list[Cause]:
    """The endpoint of a provisioned cluster stays: the Cluster, its certificates and its kubeconfigs name it."""
    if old is None or not ((old.get("status") or {}).get("initialization") or {}).get("provisioned"):
        return []
    before, now = _endpoint(old), _endpoint(obj)
    if not before.host or not now.host or before == now:
        return []  # one that was removed is written again
    text = (
        f"Forbidden: immutable: the cluster is provisioned, and its certificates and kubeconfigs name {before}; "
        "for another endpoint, create another cluster"
    )
    return [Cause("FieldValueForbidden", text, "spec.controlPlaneEndpoint")]


def _endpoint(obj: Json) -> Endpoint:
    raw = (obj.get("spec") or {}).get("controlPlaneEndpoint") or {}
    return Endpoint(str(raw.get("host") or ""), int(raw.get("port") or _PORT))
