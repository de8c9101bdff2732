"""Copies for one Cluster: objects made from the templates of its class, and templates of its own. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Unstructured
from homeport.capi.name import (
    CLONED_FROM_GROUPKIND,
    CLONED_FROM_NAME,
    CLUSTER_NAME_LABEL,
    CONVERSION_DATA,
    TOPOLOGY_OWNED_LABEL,
)
from homeport.capi.object.ownership import owner_reference
from homeport.capi.object.template import clone
from homeport.capi.setter import drop_empty_endpoint
from homeport.machinery.gvk import parse_api_version

Json = dict[str, Any]

# What belongs to the template of the class itself.
_LEFT_BEHIND = ("kubectl.kubernetes.io/last-applied-configuration", CONVERSION_DATA)


def owned_labels(cluster: Cluster) -> dict[str, str]:
    return {CLUSTER_NAME_LABEL: cluster.metadata.name, TOPOLOGY_OWNED_LABEL: ""}


def merged(*maps: Mapping[str, str]) -> dict[str, str]:
    """The first map that has a key decides about it."""
    return {key: value for each in reversed(maps) for key, value in each.items()}


def object_from(
    template: Json,
    cluster: Cluster,
    name: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """The Cluster refers to it by the time it is made, so it may have its owner at once."""
    made = clone(
        Unstructured(template),
        name=name,
        namespace=cluster.metadata.namespace,
        cluster_name=cluster.metadata.name,
        owner=owner_reference(cluster, controller=True),
        labels={**(labels or {}), **owned_labels(cluster)},
        annotations=annotations,
    )
    drop_empty_endpoint(made)
    return made


def template_from(template: Json, cluster: Cluster, name: str, labels: Mapping[str, str] | None = None) -> Json:
    meta = template.get("metadata") or {}
    kind, group = str(template["kind"]), parse_api_version(str(template["apiVersion"])).group
    kept = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in _LEFT_BEHIND}
    return {
        "apiVersion": template["apiVersion"],
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": cluster.metadata.namespace,
            "labels": {**(meta.get("labels") or {}), **(labels or {}), **owned_labels(cluster)},
            "annotations": {
                **kept,
                CLONED_FROM_NAME: str(meta.get("name", "")),
                CLONED_FROM_GROUPKIND: f"{kind}.{group}",
            },
            # If nobody comes to refer to it, it goes with the Cluster at the latest.
            "ownerReferences": [owner_reference(cluster)],
        },
        "spec": deepcopy(template.get("spec") or {}),
    }
