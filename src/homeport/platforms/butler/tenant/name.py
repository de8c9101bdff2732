"""Names of what a TenantCluster is made of, and the labels by which it is found again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from homeport.client.protocol import Key
from homeport.platforms.butler.name import (
    MANAGED_BY,
    MANAGED_BY_LABEL,
    SOURCE_NAME_LABEL,
    SOURCE_NAMESPACE_LABEL,
    TEAM_LABEL,
    TENANT_LABEL,
)

# On MachineDeployments: the image that their machines were given, so that a newer one does not replace them by itself.
WORKER_IMAGE = "butler.butlerlabs.dev/worker-image"
# On MachineDeployments, control planes and Machines: CPUs, memory and disk of each machine, for the quota of the team.
MACHINE_SIZE = "butler.butlerlabs.dev/machine-size"
# On Clusters: namespace/name of the ProviderConfig that their machines run on.
PROVIDER_CONFIG = "butler.butlerlabs.dev/runs-on"
# On ClusterAddons: the part of spec.addons that they stand for.
ADDON_LABEL = "butler.butlerlabs.dev/addon"

# On Clusters: add-ons that the cluster got by default when it was made. Later defaults are for other clusters.
DEFAULT_ADDONS = "butler.butlerlabs.dev/default-addons"

_LABEL_LENGTH = 63
_HASH_LENGTH = 8


def tenant_namespace(name: str, uid: str) -> str:
    """`<name>-<first 8 of the UID>`: the same again whatever happens, and never that of a namesake."""
    return f"{name[: _LABEL_LENGTH - 9].rstrip('-.')}-{uid[:8]}"


def labels_of(source: Key, team: str = "") -> dict[str, str]:
    """What every object of a TenantCluster carries."""
    found = {
        MANAGED_BY_LABEL: MANAGED_BY,
        TENANT_LABEL: _label(source.name),
        SOURCE_NAMESPACE_LABEL: source.namespace,
        SOURCE_NAME_LABEL: _label(source.name),
    }
    return {**found, TEAM_LABEL: team} if team else found


def _label(text: str) -> str:
    return text if len(text) <= _LABEL_LENGTH else text[:_LABEL_LENGTH].rstrip("-.")


def source_of(labels: Mapping[str, str]) -> Key | None:
    """The TenantCluster that an object is part of."""
    namespace, name = labels.get(SOURCE_NAMESPACE_LABEL, ""), labels.get(SOURCE_NAME_LABEL, "")
    return Key(namespace, name) if namespace and name and labels.get(MANAGED_BY_LABEL) == MANAGED_BY else None


def is_part_of(labels: Mapping[str, str], source: Key) -> bool:
    """Whether an object is part of this TenantCluster. Labels have the first 63 characters of a longer name."""
    return source_of(labels) == Key(source.namespace, _label(source.name))


def selector_of(source: Key) -> str:
    return f"{SOURCE_NAMESPACE_LABEL}={source.namespace},{SOURCE_NAME_LABEL}={_label(source.name)}"


def hashed(prefix: str, content: Any) -> str:
    """The name of an immutable object: other content gets another name."""
    digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
    return f"{prefix}-{digest[:_HASH_LENGTH]}"


def addon_name(cluster: str, addon: str) -> str:
    """Of the ClusterAddon that brings an add-on of the catalogue into the cluster."""
    return f"{cluster}-{addon}"
