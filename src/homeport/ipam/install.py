"""The controllers of pools and claims, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim
from homeport.capi import name as names
from homeport.capi.addresspool import KINDS, Pool, pool_key, pool_kind
from homeport.client.protocol import Key
from homeport.ipam.claim import ClaimReconciler, claim_changed
from homeport.ipam.pool import BY_POOL, PoolReconciler, index_value, pools_named
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager

BY_CLUSTER = "cluster"


def install(manager: Manager) -> None:
    links = _Links(manager)
    claims = ClaimReconciler(manager).controller
    claims.map(IPAddress, lambda address: (key_of(address),))
    claims.map(Cluster, links.claims_of_cluster, predicate=_unpaused)
    for kind in KINDS.values():
        claims.map(kind, links.waiting(kind))
        pools = PoolReconciler(manager, kind).controller
        pools.map(IPAddressClaim, _pools(kind), predicate=claim_changed)
        pools.map(IPAddress, _pools(kind))
        pools.map(Cluster, links.pools_of_cluster(kind), predicate=_unpaused)
        manager.add(pools)
    manager.add(claims)


class _Links:
    """The watches: which change enqueues which object."""

    def __init__(self, manager: Manager) -> None:
        self._claims = manager.informers.get(IPAddressClaim).cache
        self._addresses = manager.informers.get(IPAddress).cache
        self._claims.add_index(BY_POOL, pools_named)
        self._claims.add_index(BY_CLUSTER, _cluster_index)
        self._addresses.add_index(BY_POOL, pools_named)

    def waiting(self, kind: type[Pool]) -> Callable[[Any], Iterable[Key]]:
        """Claims of a pool that it still matters to."""

        def keys(pool: Pool) -> Iterator[Key]:
            for each in self._claims.by(BY_POOL, index_value(kind, key_of(pool))):
                if each.status.address_ref is None or each.metadata.deletion_timestamp:
                    yield key_of(each)

        return keys

    def claims_of_cluster(self, cluster: Cluster) -> Iterable[Key]:
        return (key_of(each) for each in self._claims.by(BY_CLUSTER, str(key_of(cluster))))

    def pools_of_cluster(self, kind: type[Pool]) -> Callable[[Any], Iterable[Key]]:
        named = _pools(kind)
        return lambda cluster: (
            key for each in self._claims.by(BY_CLUSTER, str(key_of(cluster))) for key in named(each)
        )


def _pools(kind: type[Pool]) -> Callable[[Any], Iterable[Key]]:
    def keys(obj: IPAddressClaim | IPAddress) -> Iterator[Key]:
        ref = obj.spec.pool_ref
        if ref is not None and pool_kind(ref) is kind:
            yield pool_key(kind, ref.name, obj.metadata.namespace)

    return keys


def _cluster_index(claim: IPAddressClaim) -> list[str]:
    name = claim.spec.cluster_name or claim.metadata.labels.get(names.CLUSTER_NAME_LABEL, "")
    return [f"{claim.metadata.namespace}/{name}"] if name else []


def _unpaused(old: Any, new: Any) -> bool:
    return old is None or new is None or old.spec.paused != new.spec.paused
