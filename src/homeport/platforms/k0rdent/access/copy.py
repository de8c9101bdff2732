"""A copy of an object in another namespace: how it looks, and how it differs from what users made. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.k0rdent.v1beta1 import AccessManagement
from homeport.api.meta import Unstructured
from homeport.capi.object.ownership import owner_reference, owners
from homeport.platforms.k0rdent.access.rule import Target
from homeport.platforms.k0rdent.name import MANAGED, MANAGED_LABEL

Json = dict[str, Any]

_NOT_COPIED = frozenset({"metadata", "status"})
_KUBECTL = "kubectl.kubernetes.io/"  # what kubectl applied to the original says nothing about the copy


def is_copy(obj: Any, access: AccessManagement) -> bool:
    """Our label, and the AccessManagement as its owner."""
    labels = obj.metadata.get("labels") if isinstance(obj, Unstructured) else obj.metadata.labels
    return (labels or {}).get(MANAGED_LABEL) == "true" and any(
        each["uid"] == access.metadata.uid for each in owners(obj)
    )


def render_copy(source: Mapping[str, Any], target: Target, access: AccessManagement) -> Json:
    meta = source["metadata"]
    made: Json = {key: value for key, value in source.items() if key not in _NOT_COPIED}
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if not key.startswith(_KUBECTL)}
    made["metadata"] = {
        "name": target.name,
        "namespace": target.namespace,
        "labels": {**(meta.get("labels") or {}), **MANAGED},
        **({"annotations": annotations} if annotations else {}),
        "ownerReferences": [owner_reference(access)],
    }
    if target.kind == "Credential":
        reference = {**source["spec"]["identityRef"]}
        if reference.get("namespace"):
            reference["namespace"] = target.namespace
        made["spec"] = {**source["spec"], "identityRef": reference}
    if target.kind == "ClusterAuthentication" and (reference := source["spec"].get("caSecret")):
        made["spec"] = {**source["spec"], "caSecret": {**reference, "namespace": target.namespace}}
    return made


def is_current(copy: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    names = (set(copy) | set(wanted)) - _NOT_COPIED
    held, meta = copy["metadata"], wanted["metadata"]
    return all(copy.get(each) == wanted.get(each) for each in names) and all(
        (held.get(each) or {}) == (meta.get(each) or {}) for each in ("labels", "annotations")
    )
