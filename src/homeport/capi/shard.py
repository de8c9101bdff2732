"""What belongs to one cluster is worked on by one replica: the shard of an object is that of its Cluster."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Object, Resource, Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL, GROUP
from homeport.client.protocol import Key

# Kinds whose objects have the namespace and name of their Cluster.
_NAMESAKES = frozenset(
    {
        (GROUP, "clusters"),
        ("addons.cluster.x-k8s.io", "clusterresourcesetbindings"),
        ("k0rdent.mirantis.com", "clusterdeployments"),
    }
)


def cluster_shard(cluster: Key) -> str:
    return f"cluster {cluster}"


def shard_of(resource: Resource, key: Key, obj: Object | Unstructured | None) -> str:
    """Objects of no cluster are shards of their own. `obj` is None if it does not exist."""
    if (resource.group, resource.plural) in _NAMESAKES:
        return cluster_shard(key)
    name = cluster_name(obj) if obj is not None else ""
    return cluster_shard(Key(key.namespace, name)) if name else f"{resource.qualified} {key}"


def cluster_name(obj: Object | Unstructured) -> str:
    """The Cluster that an object belongs to, by the field that can't change before what may be added later; '' if none.

    An object gets its label and owner from the Cluster's controller. Without them no controller does anything for it.
    """
    if isinstance(obj, Unstructured):
        spec, meta = obj.get("spec") or {}, obj.metadata
        named = (spec.get("clusterName"), spec.get("cluster")) if isinstance(spec, dict) else ()
        labels, owners = meta.get("labels") or {}, meta.get("ownerReferences") or ()
        owned = [(each.get("apiVersion", ""), each.get("kind"), each.get("name")) for each in owners]
    else:
        typed: Any = getattr(obj, "spec", None)
        named = (getattr(typed, "cluster_name", ""), getattr(typed, "cluster", ""))
        labels = obj.metadata.labels
        owned = [(each.api_version, each.kind, each.name) for each in obj.metadata.owner_references]
    for name in (*named, labels.get(CLUSTER_NAME_LABEL)):
        if name and isinstance(name, str):
            return name
    return next((str(name) for version, kind, name in owned if kind == "Cluster" and _is_ours(version)), "")


def _is_ours(version: str) -> bool:
    return version.partition("/")[0] == GROUP
