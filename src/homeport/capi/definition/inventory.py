"""The inventory that clusterctl reads on a management cluster: its providers, and which kinds belong to which.

clusterctl moves objects only of kinds that say by their labels that they belong to a provider, and only to where every
provider of the source is listed in a version that is not older.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from homeport.api.clusterctl.v1alpha3 import Provider
from homeport.capi.name import (
    BOOTSTRAP_GROUP,
    CLUSTERCTL_CORE_LABEL,
    CLUSTERCTL_LABEL,
    CONTROL_PLANE_GROUP,
    PROVIDER_LABEL,
)

NAMESPACE = "homeport-system"
OWN_LABELS = {CLUSTERCTL_CORE_LABEL: "inventory"}


class UpstreamProvider(NamedTuple):
    """An upstream provider whose API Homeport serves: its type, its name, and the release whose API is served."""

    type: str
    name: str
    version: str

    @property
    def label(self) -> str:
        """Its name among all types: `infrastructure-nutanix`."""
        return f"{_PREFIXES[self.type]}{self.name}"


_PREFIXES = {
    "CoreProvider": "",
    "BootstrapProvider": "bootstrap-",
    "ControlPlaneProvider": "control-plane-",
    "InfrastructureProvider": "infrastructure-",
    "IPAMProvider": "ipam-",
}

_CLUSTER_API = "v1.14.2"
CORE = UpstreamProvider("CoreProvider", "cluster-api", _CLUSTER_API)
BOOTSTRAP = UpstreamProvider("BootstrapProvider", "kubeadm", _CLUSTER_API)
CONTROL_PLANE = UpstreamProvider("ControlPlaneProvider", "kubeadm", _CLUSTER_API)

# Groups of kinds that are not the core's.
BY_GROUP = {BOOTSTRAP_GROUP: BOOTSTRAP, CONTROL_PLANE_GROUP: CONTROL_PLANE}


def labels(provider: UpstreamProvider) -> dict[str, str]:
    """Of the definitions of this provider's kinds."""
    return {PROVIDER_LABEL: provider.label, CLUSTERCTL_LABEL: ""}


def is_inventory(definition: Mapping[str, Any]) -> bool:
    """Whether only clusterctl uses it: no controller of Homeport needs it."""
    return CLUSTERCTL_CORE_LABEL in (definition["metadata"].get("labels") or {})


def render_provider(provider: UpstreamProvider, namespace: str = NAMESPACE) -> dict[str, Any]:
    kind = Provider.__resource__
    return {
        **kind.type_meta,
        "metadata": {
            "name": provider.label,
            "namespace": namespace,
            "labels": {**labels(provider), **OWN_LABELS},
        },
        "providerName": provider.name,
        "type": provider.type,
        "version": provider.version,
    }
