"""The kinds that workloads are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from homeport.api.meta import Resource, Unstructured

POD = Resource("", "v1", "Pod", "pods")
CLAIM = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
SERVICE = Resource("", "v1", "Service", "services")
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
REPLICA_SET = Resource("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SET = Resource("apps", "v1", "StatefulSet", "statefulsets")
REVISION = Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
JOB = Resource("batch", "v1", "Job", "jobs")

BY_OWNER = "controller-uid"  # the index of caches by the UID of the controlling owner


class Owned(Protocol):
    """Objects by their controlling owner, as a cache with the index BY_OWNER has them."""

    def by(self, name: str, value: str) -> Sequence[Unstructured]: ...


def controller_uid(obj: Unstructured) -> list[str]:
    return [ref["uid"] for ref in obj.metadata.get("ownerReferences") or () if ref.get("controller")]


def controller_ref(owner: Unstructured, kind: Resource) -> dict[str, Any]:
    return {
        **kind.type_meta,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def spec_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    return dict(obj.get("spec") or {})


def status_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    return dict(obj.get("status") or {})


def deleting(obj: Unstructured) -> bool:
    return bool(obj.metadata.get("deletionTimestamp"))


def phase(pod: Unstructured) -> str:
    return str(status_of(pod).get("phase") or "Pending")


def active(pod: Unstructured) -> bool:
    """It runs, or may still come to run."""
    return not deleting(pod) and phase(pod) not in ("Succeeded", "Failed")


def ready_since(pod: Unstructured) -> str | None:
    """When the Pod became Ready; None if it is not."""
    for condition in status_of(pod).get("conditions") or ():
        if condition.get("type") == "Ready":
            return str(condition.get("lastTransitionTime") or "") if condition.get("status") == "True" else None
    return None
