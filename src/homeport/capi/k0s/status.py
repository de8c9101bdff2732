"""The status of control planes that run k0s between v1beta1 and v1beta2, on machines and as Pods."""

from __future__ import annotations

from typing import Any

from homeport.capi.conversion.codec import Context
from homeport.capi.conversion.rule import ABSENT, find, put

Json = dict[str, Any]


def status_up(obj: Json, _: Context) -> None:
    status = obj.get("status")
    if not isinstance(status, dict):
        return
    initialized = status.pop("initialized", None)
    if initialized is not None and find(status, "initialization.controlPlaneInitialized") is ABSENT:
        put(status, "initialization.controlPlaneInitialized", initialized)
    status.pop("ready", None)
    updated, unavailable = status.pop("updatedReplicas", None), status.pop("unavailableReplicas", None)
    if updated is not None:
        status["upToDateReplicas"] = updated
    if unavailable is not None:
        status["availableReplicas"] = max(0, (status.get("replicas") or 0) - unavailable)


def status_down(obj: Json, _: Context) -> None:
    status = obj.get("status")
    if not isinstance(status, dict) or not status:
        return
    initialized = find(status, "initialization.controlPlaneInitialized")
    if initialized is not ABSENT:
        status["initialized"] = initialized is True
    status["ready"] = (status.get("readyReplicas") or 0) > 0
    updated, available = status.pop("upToDateReplicas", None), status.pop("availableReplicas", None)
    if updated is not None:
        status["updatedReplicas"] = updated
    if available is not None:
        status["unavailableReplicas"] = max(0, (status.get("replicas") or 0) - available)
