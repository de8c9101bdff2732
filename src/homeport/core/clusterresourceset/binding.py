"""ClusterResourceSetBindings: what went into one Cluster. All sets of a Cluster write into the same one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.addons.v1beta2 import ClusterResourceSet, ClusterResourceSetBinding
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import wire
from homeport.capi.object.ownership import owner_reference, owners, with_owner
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists, Conflict, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.core.clusterresourceset.plan import Bindings, Outcome, RecordedResource, Ref, with_outcomes, without_set
from homeport.core.index import ensure_index
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

_SET = "core.resourceSet"
_ATTEMPTS = 5  # other sets write at the same time, each once


def bindings_of(binding: ClusterResourceSetBinding | None) -> Bindings:
    return [] if binding is None else [wire(each) for each in binding.spec.bindings]


class Ledger:
    """Reads and writes bindings on behalf of sets."""

    def __init__(self, manager: Manager, write: Write) -> None:
        self._client: Client = manager.client
        self._write = write
        self._cache = manager.informers.get(ClusterResourceSetBinding).cache
        ensure_index(self._cache, _SET, _sets)

    def known(self, cluster: Key, set_name: str) -> dict[Ref, RecordedResource]:
        """What a Cluster has of a set. Asked of every Cluster in every loop: straight from the cache."""
        binding = self._cache.get(cluster)
        if binding is None:
            return {}
        return {
            Ref(each.kind, each.name): RecordedResource(each.hash, bool(each.applied))
            for entry in binding.spec.bindings
            if entry.cluster_resource_set_name == set_name
            for each in entry.resources
        }

    async def record(self, cluster: Key, owner: ClusterResourceSet, outcomes: Sequence[Outcome], now: str) -> None:
        """Raises Conflict when others write all the time."""
        binding = self._cache.get(cluster)
        for _ in range(_ATTEMPTS):
            wanted = with_outcomes(bindings_of(binding), owner.metadata.name, outcomes, now)
            try:
                await self._put(cluster, binding, wanted, with_owner(_owners(binding), owner_reference(owner)))
                return
            except (Conflict, AlreadyExists, NotFound):
                binding = await self._read(cluster)
        raise Conflict(f"ClusterResourceSetBinding {cluster} changes all the time")

    async def release(self, owner: ClusterResourceSet) -> None:
        """Takes a set out of all bindings. What it brought into the clusters stays there."""
        name, namespace = owner.metadata.name, owner.metadata.namespace
        for binding in self._cache.by(_SET, f"{namespace}/{name}"):
            left = without_set(bindings_of(binding), name)
            key, meta = key_of(binding), binding.metadata
            if not left:
                try:
                    await self._client.delete(
                        ClusterResourceSetBinding, key, uid=meta.uid, resource_version=meta.resource_version
                    )
                except NotFound:
                    continue
                continue
            kept = [each for each in owners(binding) if each["uid"] != owner.metadata.uid]
            await self._put(key, binding, left, kept)

    async def _put(
        self, key: Key, binding: ClusterResourceSetBinding | None, wanted: Bindings, owned_by: list[dict[str, Any]]
    ) -> None:
        if binding is None:
            body = {
                "apiVersion": ClusterResourceSetBinding.__resource__.api_version,
                "kind": "ClusterResourceSetBinding",
                "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": owned_by},
                "spec": {"clusterName": key.name, "bindings": wanted},
            }
            await self._client.create(body, self._write, kind=ClusterResourceSetBinding.__resource__)
            return
        if wanted == bindings_of(binding) and owned_by == owners(binding):
            return
        meta = binding.metadata
        patch = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "ownerReferences": owned_by},
            "spec": {"bindings": wanted},
        }
        await self._client.patch(ClusterResourceSetBinding, key, MergePatch(patch), self._write)

    async def _read(self, key: Key) -> ClusterResourceSetBinding | None:
        return await find_object(self._client, ClusterResourceSetBinding, key)


def _owners(binding: ClusterResourceSetBinding | None) -> list[dict[str, Any]]:
    return [] if binding is None else owners(binding)


def _sets(binding: ClusterResourceSetBinding) -> Iterable[str]:
    return (f"{binding.metadata.namespace}/{each.cluster_resource_set_name}" for each in binding.spec.bindings)


class BindingReconciler:
    """A binding goes with its Cluster."""

    def __init__(self, manager: Manager) -> None:
        self._client: Client = manager.client
        self._bindings = manager.informers.get(ClusterResourceSetBinding).cache
        self._clusters = manager.informers.get(Cluster).cache

    async def reconcile(self, key: Key) -> Wait | None:
        binding = self._bindings.get(key)
        if binding is None or binding.metadata.deletion_timestamp:
            return None
        cluster = self._clusters.get(Key(key.namespace, binding.spec.cluster_name or key.name))
        if cluster is None or cluster.metadata.deletion_timestamp:
            try:
                await self._client.delete(ClusterResourceSetBinding, key, uid=binding.metadata.uid)
            except NotFound:
                return None
        return None
