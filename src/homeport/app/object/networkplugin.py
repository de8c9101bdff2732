"""Clusters that get no network plugin (CNI), as far as objects show. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from homeport.addons.catalogue import catalogue
from homeport.api.meta import Unstructured
from homeport.machinery.selector import SelectorError, from_label_selector

_PLUGINS = ("cilium", "calico", "flannel", "antrea", "kube-router", "kube-ovn", "weave", "kindnet", "canal")
# Of other control planes, the distribution or the platform brings one.
_PLANE = "KubeadmControlPlane"
_SETS = ("ClusterResourceSet", "HelmChartProxy")


def without_network_plugin(clusters: Iterable[Unstructured], objects: Iterable[Unstructured]) -> list[Unstructured]:
    """Clusters with a kubeadm control plane to which no object of the namespace is known to bring a network plugin.

    An image may contain one: nothing here shows that.
    """
    known = list(objects)
    return [
        cluster
        for cluster in clusters
        if _plane(cluster).get("kind") == _PLANE
        and not any(_brings(each, cluster) for each in known if each.namespace == cluster.namespace)
    ]


def network_advice(cluster: Unstructured) -> str:
    return (
        "no ClusterAddon, ClusterResourceSet or HelmChartProxy installs a network plugin (CNI) in this cluster. Unless "
        f"the image contains one, create a ClusterAddon in namespace {cluster.namespace} with clusterName "
        f"{cluster.name} and addon cilium, calico or flannel: without one, Nodes do not become Ready"
    )


def _plane(cluster: Unstructured) -> Mapping[str, Any]:
    return (cluster.get("spec") or {}).get("controlPlaneRef") or {}


def _brings(obj: Unstructured, cluster: Unstructured) -> bool:
    kind, spec = obj.get("kind"), obj.get("spec") or {}
    if kind == "ClusterAddon":
        chosen = spec.get("clusterName") == cluster.name or _selects(spec, cluster)
        return chosen and _is_plugin(spec)
    if kind in _SETS:  # what is in them is not read: that they may bring one is enough
        return _selects(spec, cluster)
    return kind == _PLANE and obj.name == _plane(cluster).get("name") and _names_plugin(spec)


def _selects(spec: Mapping[str, Any], cluster: Unstructured) -> bool:
    try:
        selector = from_label_selector(spec.get("clusterSelector") or None)
    except SelectorError:
        return False
    return selector.matches(cluster.metadata.get("labels") or {})


def _is_plugin(spec: Mapping[str, Any]) -> bool:
    entry = catalogue().get(str(spec.get("addon") or ""))
    if entry is not None:
        return entry.category == "cni"
    return _names_plugin(spec) or bool(spec.get("manifests"))


def _names_plugin(spec: Mapping[str, Any]) -> bool:
    """A chart, a command or a file of a control plane that names one."""
    text = orjson.dumps(spec).decode().lower()
    return any(each in text for each in _PLUGINS)
