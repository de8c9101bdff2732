"""What wakes a control plane on machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachinePool
from homeport.capi.name import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from homeport.capi.remote.pki import SECRET
from homeport.client.protocol import Key
from homeport.controlplane.reconciler import PlaneReconciler
from homeport.controlplane.secret import LABELLED
from homeport.runtime.informer import metadata_only


def connect(
    reconciler: PlaneReconciler[Any, Any],
    *,
    secret_matters: Callable[[Any, Any], bool],
    wakes: Callable[[str, str], bool] = lambda name, cluster: True,
) -> None:
    """`wakes`: whether a Secret of this name, of this cluster, is one that the control plane reads."""

    def of_cluster(cluster: Cluster) -> Iterable[Key]:
        key = reconciler.key_in(cluster)
        return () if key is None else (key,)

    def of_member(obj: Any) -> Iterable[Key]:
        """Of anything that names its cluster."""
        key = reconciler.key_of(Key(obj.metadata.namespace, obj.spec.cluster_name))
        return () if key is None else (key,)

    def of_secret(secret: Any) -> Iterable[Key]:
        meta = secret.metadata
        cluster = meta.labels.get(CLUSTER_NAME_LABEL, "")
        key = reconciler.key_of(Key(meta.namespace, cluster)) if wakes(meta.name, cluster) else None
        return () if key is None else (key,)

    (
        reconciler.controller.own(Machine)
        .map(Machine, of_member, predicate=_machine_matters)
        .map(Cluster, of_cluster, predicate=_cluster_matters)
        .map(metadata_only(SECRET), of_secret, query=LABELLED, predicate=secret_matters)
        # Only a deletion waits for them.
        .map(MachineDeployment, of_member, predicate=lambda old, new: new is None)
        .map(MachinePool, of_member, predicate=lambda old, new: new is None)
    )


def _machine_matters(old: Machine | None, new: Machine | None) -> bool:
    """Workers matter when they are gone: a deletion may wait for the last of them."""
    return new is None or CONTROL_PLANE_LABEL in new.metadata.labels


def _cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    return old is None or new is None or _seen(old) != _seen(new)


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
