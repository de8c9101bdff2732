"""The controllers of addresses, and what wakes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.butler.v1alpha1 import IPAllocation, NetworkPool, ProviderConfig, TenantCluster
from homeport.capi.component import Setup
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.platforms.butler.network.allocation import IPAllocationReconciler
from homeport.platforms.butler.network.pool import NetworkPoolReconciler
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager
from homeport.runtime.wake import spec_changed


def install(setup: Setup) -> None:
    install_network(setup.manager)


def install_network(manager: Manager) -> None:
    pools, allocations = NetworkPoolReconciler(manager), IPAllocationReconciler(manager)

    def pool_of(allocation: IPAllocation) -> Iterable[Key]:
        yield Key(allocation.metadata.namespace, allocation.spec.pool_ref.name)

    def others(pool: NetworkPool) -> Iterable[Key]:
        """What overlapped may be free again."""
        return [key_of(each) for each in pools.objects if key_of(each) != key_of(pool)]

    def pools_of(config: ProviderConfig) -> Iterable[Key]:
        network = config.spec.network
        names = {each.name for each in network.pool_refs} if network is not None else set()
        return [key_of(each) for each in pools.objects if each.metadata.name in names]

    def allocations_of(pool: NetworkPool) -> Iterable[Key]:
        namespace, name = key_of(pool)
        return [key_of(each) for each in allocations.objects.list(namespace) if each.spec.pool_ref.name == name]

    pools.controller.map(IPAllocation, pool_of, predicate=_asks_differently)
    pools.controller.map(NetworkPool, others, predicate=_gives_otherwise)
    pools.controller.map(ProviderConfig, pools_of, predicate=spec_changed)

    def used_by(tenant: TenantCluster) -> Iterable[Key]:
        """Those that wait for its end."""
        return [
            key_of(each)
            for each in allocations.objects
            if each.metadata.deletion_timestamp and each.spec.tenant_cluster_ref.name == tenant.metadata.name
        ]

    allocations.controller.map(NetworkPool, allocations_of)
    allocations.controller.map(TenantCluster, used_by, predicate=lambda old, new: new is None)
    manager.add(pools.controller)
    manager.add(allocations.controller)


def _asks_differently(old: IPAllocation | None, new: IPAllocation | None) -> bool:
    return old is None or new is None or _request(old) != _request(new)


def _request(allocation: IPAllocation) -> Any:
    meta = allocation.metadata
    return meta.uid, meta.generation, meta.deletion_timestamp, meta.finalizers, allocation.status.phase


def _gives_otherwise(old: NetworkPool | None, new: NetworkPool | None) -> bool:
    return old is None or new is None or _giving(old) != _giving(new)


def _giving(pool: NetworkPool) -> Any:
    """What it may give out, and whether it still does."""
    ready = condition.find(pool.status.conditions, "Ready") or {}
    return pool.metadata.generation, pool.metadata.deletion_timestamp, ready.get("reason")
