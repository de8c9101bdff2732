"""Which Clusters an object selects by their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.machinery.selector import from_label_selector
from homeport.runtime.cache import Cache


def selected_clusters(clusters: Cache[Cluster], namespace: str, selector: Mapping[str, Any] | None) -> list[Cluster]:
    """Those that are not being deleted, in the order of their names. An empty selector selects none."""
    labels = from_label_selector(selector)
    if labels.empty:
        return []
    found = [
        each
        for each in clusters.list(namespace)
        if not each.metadata.deletion_timestamp and labels.matches(each.metadata.labels)
    ]
    return sorted(found, key=lambda each: each.metadata.name)
