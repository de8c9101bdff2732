"""Labels of Nodes: who sets them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

# Labels that Cluster API keeps in sync on Nodes. The kubelet may set the others itself, when it registers.
_SYNCED = ("node-role.kubernetes.io", "node-restriction.kubernetes.io", "node.cluster.x-k8s.io")


def kubelet_labels(labels: Mapping[str, str]) -> str:
    """Those that the kubelet sets, as its argument has them; '' if there are none."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()) if not _is_synced(key))


def _is_synced(key: str) -> bool:
    domain = key.partition("/")[0]
    return "/" in key and any(domain == each or domain.endswith(f".{each}") for each in _SYNCED)
