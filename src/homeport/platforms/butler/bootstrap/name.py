"""Names of what a ClusterBootstrap is made of, and the marks by which it is found again."""

from __future__ import annotations

from homeport.api.butler.v1alpha1 import GROUP
from homeport.client.protocol import Key
from homeport.platforms.butler.name import MANAGED_BY, MANAGED_BY_LABEL

BOOTSTRAP_LABEL = f"{GROUP}/cluster-bootstrap"
CLUSTER_LABEL = f"{GROUP}/cluster"
ROLE_LABEL = f"{GROUP}/role"
# On a ClusterBootstrap: name and UID of the MachineRequest on whose machine etcd was started. Written before the call,
# so that no other machine is ever asked to start a second etcd.
ETCD_ANNOTATION = f"{GROUP}/etcd-started-on"
# On a ClusterBootstrap: its objects move, or have moved, into its own cluster. Nothing is created for it any more.
PIVOT_ANNOTATION = f"{GROUP}/pivot"
PIVOT_MOVING, PIVOT_DONE = "Moving", "Done"

BUNDLE_KEY = "secrets.yaml"  # what `talosctl gen secrets` calls its file
TALOSCONFIG_KEY = "talosconfig"
USER_DATA_KEY = "userData"


def control_plane_name(cluster: str, number: int) -> str:
    return f"{cluster}-cp-{number}"


def worker_name(cluster: str, number: int) -> str:
    return f"{cluster}-worker-{number}"


def bundle_secret(cluster: Key) -> Key:
    return Key(cluster.namespace, f"{cluster.name}-talos")


def talosconfig_secret(cluster: Key) -> Key:
    return Key(cluster.namespace, f"{cluster.name}-talosconfig")


def user_data_secret(namespace: str, machine: str) -> Key:
    return Key(namespace, f"{machine}-config")


def labels_of(bootstrap: str, cluster: str) -> dict[str, str]:
    return {MANAGED_BY_LABEL: MANAGED_BY, BOOTSTRAP_LABEL: bootstrap, CLUSTER_LABEL: cluster}
