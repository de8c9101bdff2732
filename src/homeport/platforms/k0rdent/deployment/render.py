"""The objects of a ClusterDeployment, as they are applied. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from homeport.api.addon.v1alpha1 import GROUP as ADDON_GROUP
from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import owner_reference
from homeport.client.protocol import Key
from homeport.machinery import yaml
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.cluster.topology import render_topology
from homeport.platforms.k0rdent.cluster.vendor import Access
from homeport.platforms.k0rdent.name import (
    COMPONENT,
    COMPONENT_LABEL,
    MANAGED,
    RELEASE_NAME_LABEL,
    RELEASE_NAMESPACE_LABEL,
)

Json = dict[str, Any]


def csi_name(deployment: str, config: ClusterConfig) -> str:
    return f"{deployment}-{config.chart.vendor.csi}"


def network_name(deployment: str, config: ClusterConfig) -> str:
    return f"{deployment}-{config.network_addon}"


def credentials_name(deployment: str, config: ClusterConfig) -> str:
    """Of the copy of the installation's credentials, for the storage driver."""
    return f"{deployment}-{config.chart.vendor.name}-credentials"


def release_labels(deployment: ClusterDeployment) -> dict[str, str]:
    meta = deployment.metadata
    return {
        **MANAGED,
        COMPONENT_LABEL: COMPONENT,
        RELEASE_NAME_LABEL: meta.name,
        RELEASE_NAMESPACE_LABEL: meta.namespace,
    }


def render_cluster(deployment: ClusterDeployment, config: ClusterConfig, access: Access) -> Json:
    own = deployment.metadata.labels if config.cluster_labels is None else config.cluster_labels
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {
            "name": deployment.metadata.name,
            "namespace": deployment.metadata.namespace,
            "labels": {**own, **release_labels(deployment)},
            "annotations": dict(config.cluster_annotations),
            "ownerReferences": [owner_reference(deployment, controller=True)],
        },
        "spec": render_topology(config, access),
    }


def render_csi(deployment: ClusterDeployment, config: ClusterConfig, secret: str) -> Json:
    """`secret`: name of a Secret in the namespace of the ClusterDeployment."""
    parameters = {"credentialsSecret": secret, **config.csi_parameters}
    name = csi_name(deployment.metadata.name, config)
    # k0rdent's guide installs the same chart with Helm, under the same name.
    spec = {"addon": config.chart.vendor.csi, "parameters": parameters, "conflictPolicy": "Yield"}
    return _addon(deployment, name, spec)


def render_network(deployment: ClusterDeployment, config: ClusterConfig) -> Json:
    return _addon(deployment, network_name(deployment.metadata.name, config), {"addon": config.network_addon})


def _addon(deployment: ClusterDeployment, name: str, spec: Json) -> Json:
    of = deployment.metadata
    return {
        "apiVersion": f"{ADDON_GROUP}/v1alpha1",
        "kind": "ClusterAddon",
        "metadata": {
            "name": name,
            "namespace": of.namespace,
            "labels": {**release_labels(deployment), CLUSTER_NAME_LABEL: of.name},
            "ownerReferences": [owner_reference(deployment, controller=True)],
        },
        "spec": {"clusterName": of.name, **spec},
    }


def render_credentials(deployment: ClusterDeployment, config: ClusterConfig, data: Mapping[str, str]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": credentials_name(deployment.metadata.name, config),
            "namespace": deployment.metadata.namespace,
            "labels": {**release_labels(deployment), CLUSTER_NAME_LABEL: deployment.metadata.name},
            "ownerReferences": [owner_reference(deployment, controller=True)],
        },
        "data": dict(data),
    }


def local_secret(key: Key, namespace: str, system: str) -> str:
    """How the storage driver's Secret is found: 'own', 'copy', or '' if it must not come into this namespace."""
    if key.namespace == namespace:
        return "own"
    return "copy" if namespace == system else ""


def diff(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> str:
    """What an object would become, as `diff -u` shows it. Only what we write is compared."""
    wanted = _ordered(after)
    old = [] if before is None else yaml.dump(_ordered(_alike(before, wanted))).splitlines()
    new = yaml.dump(wanted).splitlines()
    name = f"{after['kind']} {after['metadata']['namespace']}/{after['metadata']['name']}"
    return "\n".join(difflib.unified_diff(old, new, f"{name} (now)", f"{name} (new)", lineterm=""))


def _alike(before: Any, after: Any) -> Any:
    """`before` without what `after` does not speak of: others write that."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return {key: _alike(value, after[key]) for key, value in before.items() if key in after}
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [_alike(one, other) for one, other in zip(before, after, strict=True)]
    return before


def _ordered(value: Any) -> Any:
    """In one order, without empty maps and lists: the API server keeps neither."""
    if isinstance(value, Mapping):
        items = ((key, _ordered(value[key])) for key in sorted(value))
        return {key: part for key, part in items if part not in ({}, [])}
    return [_ordered(each) for each in value] if isinstance(value, list) else value
