"""Credentials for a cloud controller manager that the values bring along as a chart of k0s. Pure.

The chart of Nutanix uses ConfigMap nutanix-config and Secret nutanix-creds of its namespace if its values name no
Prism Central. k0rdent's guide creates neither.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import orjson

from homeport.api.addon.v1alpha1 import GROUP as ADDON_GROUP
from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import owner_reference
from homeport.client.protocol import Key
from homeport.machinery import yaml
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.cluster.vendor import Access
from homeport.platforms.k0rdent.deployment.render import release_labels
from homeport.platforms.k0rdent.nutanix.vendor import NUTANIX

Json = dict[str, Any]

CHART = "nutanix-cloud-controller-manager"
DRIVER_CHART = "nutanix-csi-storage"
_CONFIG, _SECRET = "nutanix-config", "nutanix-creds"  # as the chart names them
_NAMESPACE = "kube-system"


def manager_name(deployment: str) -> str:
    return f"{deployment}-ccm-credentials"


def chart_namespace(config: ClusterConfig) -> str:
    """Where the values install the chart without an address of Prism Central; '' if they do not."""
    found = _extension(config, CHART)
    if found is None or "prismCentralEndPoint" in str(found.get("values") or ""):
        return ""
    return str(found.get("namespace") or _NAMESPACE)


def brings_driver(config: ClusterConfig) -> bool:
    """Whether the values install a storage driver of their own: two of them can't have one name."""
    return _extension(config, DRIVER_CHART) is not None


def _extension(config: ClusterConfig, chart: str) -> Mapping[str, Any] | None:
    """The entry of the configuration of k0s that installs the chart."""
    found: Any = config.plane_config if config.chart.vendor is NUTANIX else {}
    for step in ("spec", "extensions", "helm", "charts"):
        found = found.get(step) if isinstance(found, Mapping) else None
    for each in found if isinstance(found, list) else ():
        if isinstance(each, Mapping) and str(each.get("chartname") or "").rpartition("/")[2] == chart:
            return each
    return None


def render_manager(
    deployment: ClusterDeployment, config: ClusterConfig, access: Access, data: Mapping[str, str], namespace: str
) -> tuple[Json, Json]:
    """The Secret with manifests, and the ClusterAddon that brings them into the cluster. `data`: of the credentials."""
    inside = Access(Key(namespace, _SECRET), access.bundle)
    central = NUTANIX.cluster_value(config.infrastructure.settings, inside)["prismCentral"]
    settings = {"prismCentral": central, "enableCustomLabeling": False, "topologyDiscovery": {"type": "Prism"}}
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": _CONFIG, "namespace": namespace},
            "data": {"nutanix_config.json": orjson.dumps(settings).decode()},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": _SECRET, "namespace": namespace},
            "data": dict(data),
        },
    ]
    text = "---\n".join(yaml.dump(each) for each in manifests)
    name, own = manager_name(deployment.metadata.name), deployment.metadata
    meta = {
        "name": name,
        "namespace": own.namespace,
        "labels": {**release_labels(deployment), CLUSTER_NAME_LABEL: own.name},
        "ownerReferences": [owner_reference(deployment, controller=True)],
    }
    held = {"manifests.yaml": base64.b64encode(text.encode()).decode()}
    spec = {"clusterName": own.name, "manifests": [{"secretRef": {"name": name}}]}
    return (
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": held},
        {"apiVersion": f"{ADDON_GROUP}/v1alpha1", "kind": "ClusterAddon", "metadata": meta, "spec": spec},
    )
