"""What wakes a Cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment, MachinePool, MachineSet
from homeport.capi.capi import Capi
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.remote.pki import SECRET, secret_name
from homeport.client.protocol import Key, Query
from homeport.core.cluster.reconciler import ClusterReconciler
from homeport.runtime.controller import Controller
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager


def install(manager: Manager, capi: Capi, *, topology_hooks: bool = False) -> Controller:
    reconciler = ClusterReconciler(capi, topology_hooks=topology_hooks)
    controller = reconciler.controller
    for kind in (Machine, MachineSet, MachineDeployment, MachinePool):
        controller.map(kind, _cluster_of, predicate=_changed)
    controller.map(metadata_only(SECRET), _authority_of, query=Query(labels=CLUSTER_NAME_LABEL))
    capi.remotes.follow(controller.wake)
    return manager.add(controller)


def _cluster_of(obj: Any) -> Iterable[Key]:
    return (Key(obj.metadata.namespace, obj.spec.cluster_name),)


def _authority_of(secret: Any) -> Iterable[Key]:
    """A Cluster without control plane provider waits for its authority to make a kubeconfig."""
    cluster = secret.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    return (Key(secret.metadata.namespace, cluster),) if secret.metadata.name == secret_name(cluster, "ca") else ()


def _changed(old: Any, new: Any) -> bool:
    return old is None or new is None or _relevant_fields(old) != _relevant_fields(new)


def _relevant_fields(obj: Any) -> tuple[Any, ...]:
    """The fields of its parts that a Cluster reports. Changes of only times and generations do not count."""
    status = obj.status
    return (
        obj.metadata.deletion_timestamp,
        obj.metadata.labels,
        obj.metadata.owner_references,
        [(c.get("type"), c.get("status"), c.get("reason"), c.get("message")) for c in status.conditions],
        *(getattr(status, name, None) for name in _COUNTS),
        getattr(obj.spec, "replicas", None),
        getattr(status, "versions", None),
        getattr(status, "node_ref", None),
    )


_COUNTS = ("replicas", "ready_replicas", "available_replicas", "up_to_date_replicas")
