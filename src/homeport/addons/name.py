"""Names that ClusterAddons and their objects in workload clusters agree on."""

from __future__ import annotations

import hashlib

from homeport.client.protocol import Key

FINALIZER = "addons.homeport.dev/clusteraddon"
MANAGER = "homeport-addons"  # field manager, in both clusters

# On every object that an add-on applies in a workload cluster. The annotation is the proof that it is the add-on's.
ADDON_LABEL = "addons.homeport.dev/addon"
OWNER_ANNOTATION = "addons.homeport.dev/owner"
# On ClusterAddons whose chart was chosen by somebody without rights to the management plane: "true".
OUTSIDE_ANNOTATION = "addons.homeport.dev/charts-from-outside"
# On the ClusterAddons that a ClusterAddon with a selector creates.
PARENT_LABEL = "addons.homeport.dev/parent"

INVENTORY_NAMESPACE = "kube-system"

_LONGEST_LABEL = 63
_LONGEST_NAME = 253


def owner_value(key: Key) -> str:
    return f"{key.namespace}/{key.name}"


def label_value(name: str) -> str:
    """A name as the value of a label, which is shorter than a name may be."""
    return _fitted(name, _LONGEST_LABEL)


def inventory_name(addon: Key) -> str:
    """Of the ConfigMap in the workload cluster that lists the objects of an add-on."""
    return _fitted(f"homeport-addon-{addon.name}", _LONGEST_NAME)


def child_name(parent: str, cluster: str) -> str:
    return _fitted(f"{parent}-{cluster}", _LONGEST_NAME)


def _fitted(name: str, longest: int) -> str:
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: longest - 9].rstrip('-.')}-{digest}"
