"""Puts the control plane provider into a manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachinePool
from homeport.capi.capi import Capi
from homeport.capi.component import Component, LogDeployment
from homeport.capi.definition import inventory
from homeport.capi.definition.kind import definitions_of
from homeport.capi.name import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from homeport.capi.remote.pki import SECRET
from homeport.client.protocol import Key
from homeport.controlplane.kubeadm.admission import register
from homeport.controlplane.kubeadm.reconciler import KubeadmControlPlaneReconciler, control_plane_key
from homeport.controlplane.kubeadm.secret import LABELLED
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager

_SECRETS = ("-ca", "-etcd", "-proxy", "-sa", "-kubeconfig", "-apiserver-etcd-client")


def install(manager: Manager, capi: Capi) -> KubeadmControlPlaneReconciler:
    reconciler = KubeadmControlPlaneReconciler(capi)

    def of_cluster(cluster: Cluster) -> Iterable[Key]:
        key = control_plane_key(cluster)
        return () if key is None else (key,)

    def of_member(obj: Any) -> Iterable[Key]:
        """Of anything that names its cluster."""
        key = reconciler.key_of(Key(obj.metadata.namespace, obj.spec.cluster_name))
        return () if key is None else (key,)

    def of_secret(secret: Any) -> Iterable[Key]:
        meta = secret.metadata
        cluster = meta.labels.get(CLUSTER_NAME_LABEL, "")
        if not any(meta.name == cluster + suffix for suffix in _SECRETS):
            return ()
        key = reconciler.key_of(Key(meta.namespace, cluster))
        return () if key is None else (key,)

    controller = (
        reconciler.controller.own(Machine)
        .map(Machine, of_member, predicate=_matters)
        .map(Cluster, of_cluster, predicate=_cluster_matters)
        .map(metadata_only(SECRET), of_secret, query=LABELLED, predicate=_new_or_gone)
        # Only a deletion waits for them.
        .map(MachineDeployment, of_member, predicate=lambda old, new: new is None)
        .map(MachinePool, of_member, predicate=lambda old, new: new is None)
    )
    manager.add(controller)
    return reconciler


def _matters(old: Machine | None, new: Machine | None) -> bool:
    """Workers matter when they are gone: a deletion may wait for the last of them."""
    return new is None or CONTROL_PLANE_LABEL in new.metadata.labels


def _new_or_gone(old: Any, new: Any) -> bool:
    return old is None or new is None or old.metadata.resource_version != new.metadata.resource_version


def _cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    if old is None or new is None:
        return True
    return _seen(old) != _seen(new)


def _seen(cluster: Cluster) -> tuple[Any, ...]:
    """The fields of a Cluster that a control plane reads. Conditions are left out: every step changes them."""
    meta, status = cluster.metadata, cluster.status
    return (
        meta.generation,
        meta.deletion_timestamp,
        meta.annotations,
        status.initialization.infrastructure_provisioned,
        status.failure_domains,
    )


COMPONENT = Component(
    name="kubeadm-control-plane",
    requires=("core", "kubeadm-bootstrap"),
    definitions=lambda: definitions_of(inventory.CONTROL_PLANE),
    register=lambda hooks, _: register(hooks),
    install=lambda setup: install(setup.manager, setup.capi),
    inventory=(inventory.CONTROL_PLANE,),
    places=(LogDeployment("capi-kubeadm-control-plane-system", "capi-kubeadm-control-plane-controller-manager"),),
)
