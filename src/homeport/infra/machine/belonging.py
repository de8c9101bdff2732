"""Whom an infrastructure machine belongs to: its Machine, its Cluster and its infrastructure cluster."""

from __future__ import annotations

from typing import Generic, TypeVar

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Object
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.client.protocol import Key
from homeport.runtime.manager import Manager

C = TypeVar("C", bound=Object)


class Owners(Generic[C]):
    def __init__(self, manager: Manager, cluster_kind: type[C]) -> None:
        self._machines = manager.informers.get(Machine).cache
        self._clusters = manager.informers.get(Cluster).cache
        self._infra_clusters = manager.informers.get(cluster_kind).cache

    def machine(self, infra: Object) -> Machine | None:
        for owner in infra.metadata.owner_references:
            if owner.kind == "Machine" and owner.api_version.startswith(f"{Machine.__resource__.group}/"):
                found: Machine | None = self._machines.get(Key(infra.metadata.namespace, owner.name))
                if found is not None and found.metadata.uid == owner.uid:
                    return found
        return None

    def cluster(self, infra: Object, machine: Machine | None) -> Cluster | None:
        name = machine.spec.cluster_name if machine else infra.metadata.labels.get(CLUSTER_NAME_LABEL, "")
        return self._clusters.get(Key(infra.metadata.namespace, name))

    def infra_cluster(self, cluster: Cluster | None) -> C | None:
        ref = None if cluster is None else cluster.spec.infrastructure_ref
        if cluster is None or ref is None:
            return None
        return self._infra_clusters.get(Key(cluster.metadata.namespace, ref.name))


def machine_name(infra: Object) -> str:
    """Of a Machine that was removed before its infrastructure: the machine at the vendor still has its name."""
    owners = (each.name for each in infra.metadata.owner_references if each.kind == "Machine")
    return next(owners, infra.metadata.name)
