"""Where the cloud controller manager of a cluster runs: with a hosted control plane, on control planes, on workers."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Unstructured
from homeport.capi import contract
from homeport.capi.capi import Capi
from homeport.capi.resolution import NotInstalled
from homeport.ccm.manifest import CONTROL_PLANE
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller

_KUBEADM_PLANE = "KubeadmControlPlane"


async def is_hosted(capi: Capi, cluster: Cluster, asker: Controller) -> bool | None:
    """Whether the control plane runs as Pods or as a service, so that the cluster is no place for credentials.

    None: it can't be known yet. Its kind or its status says it, and until then nothing goes into the cluster.
    """
    ref = cluster.spec.control_plane_ref
    if ref is None or ref.kind == _KUBEADM_PLANE:
        return False
    try:
        found = await capi.externals.find(
            ref, cluster.metadata.namespace, watcher=asker, owner_kind=Cluster.__resource__, owner=key_of(cluster)
        )
    except NotInstalled:
        return None
    if found is None:
        return None
    plane, served = found
    without_machines = contract.control_plane.infrastructure_ref(plane, served.contract) is None
    return contract.control_plane.external(plane) or without_machines


def runs_on_workers(cluster: Cluster, nodes: Iterable[Unstructured]) -> bool:
    """Hosted control planes and k0s have no Nodes for it. kubeadm labels its own only a moment after they joined."""
    ref = cluster.spec.control_plane_ref
    kubeadm = ref is not None and ref.kind == _KUBEADM_PLANE
    return not kubeadm and not any(is_control_plane(each) for each in nodes)


def is_control_plane(node: Unstructured | None) -> bool:
    return node is not None and CONTROL_PLANE in (node.metadata.get("labels") or {})
