"""Paused: by the Cluster for all of its objects, by an annotation for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.meta import Object, Unstructured
from homeport.capi.name import PAUSED, Condition, Reason
from homeport.machinery import condition

AnyObject = Object | Unstructured | Mapping[str, Any]


def annotations_of(obj: AnyObject) -> Mapping[str, str]:
    if isinstance(obj, Object):
        return obj.metadata.annotations
    return (obj.get("metadata") or {}).get("annotations") or {}


def _deleting(obj: AnyObject) -> bool:
    if isinstance(obj, Object):
        return bool(obj.metadata.deletion_timestamp)
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def has_annotation(obj: AnyObject) -> bool:
    """The annotation counts by being there, whatever its value."""
    return PAUSED in annotations_of(obj)


def why_not_deleted(obj: AnyObject) -> str:
    """Of an object whose deletion was asked for: that its own annotation pauses it; '' if it has none."""
    return f"it is paused: remove its annotation {PAUSED}" if has_annotation(obj) else ""


def cluster_paused(cluster: AnyObject | None) -> bool:
    if cluster is None:
        return False
    if isinstance(cluster, Object):
        spec: Any = getattr(cluster, "spec", None)
        return bool(getattr(spec, "paused", False))
    return bool((cluster.get("spec") or {}).get("paused"))


def is_paused(cluster: AnyObject | None, obj: AnyObject) -> bool:
    """Whether nothing is to be done about `obj`; `cluster` is the one it belongs to, None when there is none (yet)."""
    return cluster_paused(cluster) or has_annotation(obj)


def paused_condition(
    conditions: list[condition.Condition], cluster: AnyObject | None, obj: AnyObject, *, now: str, generation: int
) -> list[condition.Condition]:
    """The conditions with Paused set as it is. Names everything that has to be undone."""
    causes = []
    if cluster_paused(cluster):
        causes.append("spec.paused of the Cluster is true")
    if has_annotation(obj):
        causes.append(f"the object has the annotation {PAUSED}")
    if causes:
        status: condition.Status = "True"
        reason, message = Reason.PAUSED, " and ".join(causes)
        if _deleting(obj):
            message += ": its deletion continues when this is undone"
    else:
        status, reason, message = "False", Reason.NOT_PAUSED, ""
    return condition.put(conditions, Condition.PAUSED, status, reason, message, now=now, generation=generation)
