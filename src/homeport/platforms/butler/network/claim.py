"""IPAllocations of tenant clusters: made, kept in their pool, and given back."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.butler.v1alpha1 import IPAllocation, NetworkPool
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.machinery import condition
from homeport.machinery.address import AddressSet
from homeport.platforms.butler.name import (
    ALLOCATION_TYPE_LABEL,
    MANAGED_BY,
    MANAGED_BY_LABEL,
    NETWORK_POOL_LABEL,
    SYSTEM_NAMESPACE,
)
from homeport.platforms.butler.network.allocation import RELEASED
from homeport.platforms.butler.network.plan import read_ledger
from homeport.platforms.butler.network.pool import LEDGER
from homeport.runtime.cache import Cache, key_of

ENDPOINT, LOAD_BALANCER = "endpoint", "loadbalancer"
_SUFFIX = {ENDPOINT: "endpoint", LOAD_BALANCER: "lb"}


_NONE = AddressSet()


@dataclass(frozen=True, slots=True)
class Claim:
    """`addresses` is empty until they are allocated; then `reason` and `message` say what is waited for."""

    name: str
    addresses: AddressSet = _NONE
    reason: str = ""
    message: str = ""


class Claims:
    def __init__(
        self, client: Client, write: Write, allocations: Cache[IPAllocation], pools: Cache[NetworkPool]
    ) -> None:
        self._client = client
        self._write = write
        self._allocations = allocations
        self._pools = pools

    async def hold(self, tenant: Key, type_: str, pools: Sequence[str], count: int, pinned: str = "") -> Claim:
        """Addresses of the first of these pools that has enough of them. What was allocated once stays. `pinned`: the
        only address that will do."""
        found = self._held(tenant, type_)
        if found is None:
            pool, key = self._choose(pools, count), self._free_key(tenant, type_)
            with contextlib.suppress(AlreadyExists):  # the cache is late
                await self._client.create(
                    render_claim(key, tenant, type_, pool, count, pinned), self._write, kind=_KIND
                )
            return Claim(key.name, reason="Allocating", message=f"NetworkPool {pool} assigns the addresses")
        return _claim(found, self._pools.get(Key(SYSTEM_NAMESPACE, found.spec.pool_ref.name)))

    def _held(self, tenant: Key, type_: str) -> IPAllocation | None:
        known = (self._allocations.get(key) for key in claim_keys(tenant, type_))
        return next((each for each in known if each is not None and _tenant_of(each) == tenant), None)

    def _free_key(self, tenant: Key, type_: str) -> Key:
        plain, other = claim_keys(tenant, type_)
        return plain if self._allocations.get(plain) is None else other

    def _choose(self, pools: Sequence[str], count: int) -> str:
        known = [self._pools.get(Key(SYSTEM_NAMESPACE, name)) for name in pools]
        fitting = (each.metadata.name for each in known if each is not None and _has(each, count))
        return next(fitting, pools[0])

    async def release(self, tenant: Key, type_: str) -> bool:
        """Whether the addresses are back in their pool."""
        return all([await self._release(tenant, key) for key in claim_keys(tenant, type_)])

    async def _release(self, tenant: Key, key: Key) -> bool:
        found = await find_object(self._client, IPAllocation, key)
        if found is None:
            return True
        if _tenant_of(found) != tenant:
            return True
        if RELEASED not in found.metadata.annotations:
            body = {"metadata": {"uid": found.metadata.uid, "annotations": {RELEASED: "true"}}}
            await self._client.patch(IPAllocation, key, MergePatch(body), self._write)
        if not found.metadata.deletion_timestamp:
            try:
                await self._client.delete(IPAllocation, key, uid=found.metadata.uid)
            except NotFound:
                return True
        return False

    def known(self, tenant: Key, type_: str) -> bool:
        return self._held(tenant, type_) is not None


_KIND = IPAllocation.__resource__


def claim_keys(tenant: Key, type_: str) -> tuple[Key, Key]:
    """A name that people recognise, and one for when another TenantCluster has it: `b-c` of namespace `a` and `c` of
    `a-b` would have the same one."""
    plain = f"{tenant.namespace}-{tenant.name}"
    mark = hashlib.sha256(str(tenant).encode()).hexdigest()[:8]
    suffix = _SUFFIX[type_]
    return Key(SYSTEM_NAMESPACE, f"{plain}-{suffix}"), Key(SYSTEM_NAMESPACE, f"{plain}-{mark}-{suffix}")


def _tenant_of(allocation: IPAllocation) -> Key:
    ref = allocation.spec.tenant_cluster_ref
    return Key(ref.namespace, ref.name)


def render_claim(key: Key, tenant: Key, type_: str, pool: str, count: int, pinned: str = "") -> dict[str, Any]:
    only = {"pinnedRange": {"startAddress": pinned, "endAddress": pinned}} if pinned else {}
    labels = {MANAGED_BY_LABEL: MANAGED_BY, NETWORK_POOL_LABEL: pool, ALLOCATION_TYPE_LABEL: type_}
    return {
        **_KIND.type_meta,
        "metadata": {"name": key.name, "namespace": key.namespace, "labels": labels},
        "spec": {
            "poolRef": {"name": pool},
            "tenantClusterRef": {"name": tenant.name, "namespace": tenant.namespace},
            "type": type_,
            "count": count,
            **only,
        },
    }


def is_given(pool: NetworkPool, allocation: Key, addresses: AddressSet) -> bool:
    """Whether the pool gave an allocation these addresses, whatever somebody wrote into its status. A pool that can't
    be read takes nothing away."""
    try:
        found = read_ledger(pool.metadata.annotations.get(LEDGER, "")).get(allocation)
    except ValueError:
        return True
    return found is not None and (found.span,) == addresses.spans


def _has(pool: NetworkPool, count: int) -> bool:
    usable = not pool.metadata.deletion_timestamp and pool.status.observed_generation >= pool.metadata.generation
    return usable and pool.status.largest_free_block >= count


def _claim(found: IPAllocation, pool: NetworkPool | None) -> Claim:
    status, name = found.status, found.metadata.name
    if found.metadata.deletion_timestamp:
        return Claim(name, reason="Releasing", message=f"IPAllocation {name} is being deleted: it is made again")
    if status.phase == "Allocated" and status.start_address:
        addresses = AddressSet.parse([f"{status.start_address}-{status.end_address}"])
        if pool is None or is_given(pool, key_of(found), addresses):
            return Claim(name, addresses)
        text = (
            f"NetworkPool {pool.metadata.name} did not give {status.start_address} to IPAllocation {name}: it decides"
        )
        return Claim(name, reason="Allocating", message=text)
    said = condition.find(status.conditions, "Ready") or {}
    reason = str(said.get("reason") or "Allocating")
    return Claim(name, reason=reason, message=str(said.get("message") or f"IPAllocation {name} waits for addresses"))
