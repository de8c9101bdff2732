"""The loop of a control plane on machines: what those of kubeadm and of k0s have in common."""

from __future__ import annotations

from typing import Any, TypeVar

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Object, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.object.ownership import owner_of_kind
from homeport.capi.reconciler import CapiReconciler
from homeport.capi.resolution import NotInstalled
from homeport.client.protocol import Key
from homeport.controlplane.scope import PlaneScope
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.outcome import Wait

P = TypeVar("P", bound=Object)
S = TypeVar("S", bound=PlaneScope[Any, Any])


class PlaneReconciler(CapiReconciler[P, S]):
    def __init__(self, capi: Capi) -> None:
        super().__init__(capi.manager)
        self._clusters = capi.manager.informers.get(Cluster).cache

    def key_of(self, cluster: Key) -> Key | None:
        """The control plane of a cluster, if it is of this kind."""
        found = self._clusters.get(cluster)
        return None if found is None else self.key_in(found)

    def key_in(self, cluster: Cluster) -> Key | None:
        ref, kind = cluster.spec.control_plane_ref, self.kind.__resource__
        if ref is None or (ref.api_group, ref.kind) != (kind.group, kind.kind):
            return None
        return Key(cluster.metadata.namespace, ref.name)

    def cluster_of(self, scope: S) -> Cluster | None:
        return scope.found_cluster

    def _owning_cluster(self, plane: P) -> Cluster | None:
        owner = owner_of_kind(plane, Cluster.__resource__)
        return self._clusters.get(Key(plane.metadata.namespace, owner["name"])) if owner is not None else None

    # -- phases ------------------------------------------------------------------------------------------------

    async def _await_cluster(self, scope: S) -> Wait | None:
        owner = owner_of_kind(scope.object, Cluster.__resource__)
        name = f"Cluster {owner['name']} does not exist" if owner is not None else "no Cluster refers to it"
        kind = self.kind.__resource__.kind
        return Wait("WaitingForCluster", f"{name}: set spec.controlPlaneRef of a Cluster to this {kind}")

    async def _await_infrastructure(self, scope: S) -> Wait | None:
        if scope.cluster.status.initialization.infrastructure_provisioned:
            return None
        text = f"waiting for the infrastructure of Cluster {scope.cluster.metadata.name} to be provisioned"
        return self._blocked(scope, Wait("WaitingForClusterInfrastructureReady", text))

    async def _await_endpoint(self, scope: S) -> Wait | None:
        endpoint = scope.cluster.spec.control_plane_endpoint
        if endpoint.host and endpoint.port:
            return None
        text = f"waiting for Cluster {scope.cluster.metadata.name} to get spec.controlPlaneEndpoint"
        return self._blocked(scope, Wait("WaitingForControlPlaneEndpoint", text))

    def _blocked(self, scope: S, wait: Wait) -> Wait:
        """Nothing has begun yet."""
        return wait


async def infrastructure_of(capi: Capi, controller: Controller, plane: Object, machine: Machine) -> Unstructured | None:
    """The infrastructure machine; the controller is woken when it changes."""
    if machine.spec.infrastructure_ref is None:
        return None
    try:
        return await capi.externals.get(
            machine.spec.infrastructure_ref,
            machine.metadata.namespace,
            watcher=controller,
            owner_kind=type(plane).__resource__,
            owner=key_of(plane),
        )
    except NotInstalled:
        return None  # the Machine itself says so
