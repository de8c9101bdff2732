"""Why a Pod of a control plane does not run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def pod_trouble(name: str, pod: Mapping[str, Any] | None, *, late: bool) -> str:
    """As the Pod says itself. `late`: a cluster that runs Pods would have begun by now."""
    if pod is None:
        return f"Pod {name} does not exist: no kube-controller-manager creates it" if late else ""
    found = pod.get("status") or {}
    for each in (*(found.get("initContainerStatuses") or ()), *(found.get("containerStatuses") or ())):
        waiting = (each.get("state") or {}).get("waiting") or {}
        if waiting.get("message"):
            return f"container {each.get('name')}: {waiting['message']}"
    for each in found.get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False" and each.get("message"):
            return str(each["message"])
    if late and not (pod.get("spec") or {}).get("nodeName") and not found.get("podIP"):
        return f"Pod {name} has no Node: hosted control planes need a management cluster with Nodes that run Pods"
    return ""
