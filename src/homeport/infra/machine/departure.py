"""Notices InfraMachines that go without us: somebody removed the finalizer, and the machine stays behind.

Only a deletion that the API server reports counts. An object that a new list lacks proves nothing: the server's data
may be older than what we knew. Nor do deletions count while a Cluster is paused or moved to another plane: whoever
pauses it answers for its machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Object
from homeport.capi import name as names
from homeport.capi.object.paused import is_paused
from homeport.client.protocol import Key
from homeport.infra.orphan.record import Deletion, machine_id
from homeport.infra.protocol import Provider
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager


class Departures:
    def __init__(self, manager: Manager, provider: Provider[Any, Any, Any], wake: Callable[[Key], None]) -> None:
        self._wake = wake  # called with the InfraCluster
        self._clock = manager.clock
        self._clusters = manager.informers.get(Cluster).cache
        self._infra = manager.informers.get(provider.cluster_kind).cache
        self._released: dict[Key, str] = {}
        self._pending: dict[Key, dict[str, Deletion]] = {}
        manager.informers.get(provider.machine_kind).on_delete(self._deleted)

    def release(self, obj: Object) -> None:
        """Its machine was seen to be gone, and its finalizer is about to go: nothing is left behind."""
        self._released[key_of(obj)] = obj.metadata.uid

    def forget(self, machine: Key) -> None:
        self._released.pop(machine, None)

    def pending(self, infra_cluster: Key) -> Mapping[str, Deletion]:
        """Deletions that are not recorded yet, by UID."""
        return self._pending.get(infra_cluster, {})

    def recorded(self, infra_cluster: Key) -> None:
        self._pending.pop(infra_cluster, None)

    def _deleted(self, obj: Any) -> None:
        if self._released.get(key_of(obj)) == obj.metadata.uid or names.DELETE_FOR_MOVE in obj.metadata.annotations:
            return
        name = obj.metadata.labels.get(names.CLUSTER_NAME_LABEL, "")
        cluster = self._clusters.get(Key(obj.metadata.namespace, name))
        infra = next((each for each in self._infra.list(obj.metadata.namespace) if _belongs(each, name)), None)
        if infra is None or is_paused(cluster, obj) or is_paused(cluster, infra):
            return
        control_plane = names.CONTROL_PLANE_LABEL in obj.metadata.labels
        deletion = Deletion(self._clock.now(), control_plane, machine_id(obj))
        self._pending.setdefault(key_of(infra), {})[obj.metadata.uid] = deletion
        self._wake(key_of(infra))


def _belongs(infra: Any, cluster: str) -> bool:
    owners = [each.name for each in infra.metadata.owner_references if each.kind == "Cluster"]
    return bool(cluster) and cluster in (owners or [infra.metadata.labels.get(names.CLUSTER_NAME_LABEL, "")])
