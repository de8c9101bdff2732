"""A TenantCluster goes: its Cluster with all machines, then its namespace, then its addresses."""

from __future__ import annotations

from typing import Any

from homeport.api.butler.v1alpha1 import TenantAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource
from homeport.client.absence import find_object
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.machinery import condition
from homeport.platforms.butler.tenant.name import is_part_of
from homeport.platforms.butler.tenant.scope import TenantScope
from homeport.runtime.outcome import Wait

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_LOOK_SECONDS = 5.0


class Removal:
    def __init__(self, client: Client, write: Write) -> None:
        self._client = client
        self._write = write

    async def drop_addons(self, scope: TenantScope) -> Wait | None:
        """TenantAddons of the cluster have nothing to be installed in any more."""
        found = await self._client.list(TenantAddon, Query(namespace=scope.key.namespace))
        ours = [each for each in found.items if each.spec.cluster_ref.name == scope.key.name]
        for each in ours:
            if not each.metadata.deletion_timestamp:
                key = Key(scope.key.namespace, each.metadata.name)
                await self._gone(self._client.delete(TenantAddon, key, uid=each.metadata.uid))
        return None

    async def drop_cluster(self, scope: TenantScope) -> Wait | None:
        key = Key(scope.namespace, scope.key.name)
        cluster = await find_object(self._client, Cluster, key)
        if cluster is None:
            return None
        if cluster.spec.paused:
            if scope.object.spec.paused:
                return Wait("Paused", "spec.paused is true: set it to false, and the deletion continues", warning=True)
            body = MergePatch({"metadata": {"uid": cluster.metadata.uid}, "spec": {"paused": False}})
            await self._client.patch(Cluster, key, body, self._write)
        if not cluster.metadata.deletion_timestamp:
            await self._gone(self._client.delete(Cluster, key, uid=cluster.metadata.uid))
            return Wait("DeletingCluster", f"Cluster {key} is being deleted", after=_LOOK_SECONDS)
        return Wait("DeletingCluster", _cluster_waits(key, cluster), after=_LOOK_SECONDS)

    async def drop_namespace(self, scope: TenantScope) -> Wait | None:
        key = Key("", scope.namespace)
        found = await find_object(self._client, NAMESPACE, key)
        if found is None:
            return None
        if not is_part_of(found.metadata.get("labels") or {}, scope.key):
            return None  # never ours
        if not found.metadata.get("deletionTimestamp"):
            await self._gone(self._client.delete(NAMESPACE, key, uid=found.uid))
            return Wait("DeletingNamespace", f"Namespace {key.name} is being deleted", after=_LOOK_SECONDS)
        return Wait("DeletingNamespace", _namespace_waits(key.name, found), after=_LOOK_SECONDS)

    async def _gone(self, deletion: Any) -> None:
        try:
            await deletion
        except NotFound:
            return


def _cluster_waits(key: Key, cluster: Cluster) -> str:
    found = condition.find(cluster.status.conditions, "Deleting") or {}
    why = str(found.get("message") or "")
    return f"Cluster {key} is being deleted" + (f": {why}" if why else "")


def _namespace_waits(name: str, found: Any) -> str:
    conditions = (found.get("status") or {}).get("conditions") or ()
    said = [str(each.get("message")) for each in conditions if each.get("status") == "True" and each.get("message")]
    return "\n".join([f"Namespace {name} is being deleted", *said])
