"""Pools: addresses are chosen here, for all claims that wait, and counted.

An address is chosen by a write to the pool that is refused if the pool changed since it was read. Only then does it
become an IPAddress, so that neither a second replica, nor one that was held up, nor a late cache gives it twice; and
what was chosen before a crash is taken up again by whoever comes next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.ipam.v1alpha2 import PoolSpec
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim
from homeport.api.meta import wire
from homeport.capi import name as names
from homeport.capi.addresspool import (
    RESERVED,
    Pool,
    parsed,
    pool_key,
    pool_kind,
    render_reservations,
    reservations,
    usable,
)
from homeport.capi.ownership import is_controlled_by, owner_reference
from homeport.capi.paused import has_annotation, is_paused
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.ipam.name import FIELD_MANAGER, PROTECT_ADDRESS, PROTECT_POOL, RELEASE_ADDRESS
from homeport.ipam.plan import Allocation, Ask, count_usage, plan_allocation
from homeport.machinery.address import Address
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

BY_POOL = "pool"
_WRITE = Write(field_manager=FIELD_MANAGER)


class PoolReconciler:
    def __init__(self, manager: Manager, kind: type[Pool]) -> None:
        self._client = manager.client
        self._kind = kind
        self._pools = manager.informers.get(kind).cache
        self._claims = manager.informers.get(IPAddressClaim).cache
        self._addresses = manager.informers.get(IPAddress).cache
        self._clusters = manager.informers.get(Cluster).cache

    async def reconcile(self, key: Key) -> Wait | None:
        pool: Pool | None = self._pools.get(key)
        if pool is None or has_annotation(pool):
            return None
        if pool.metadata.deletion_timestamp:
            return await self._release(pool)
        asking = self._asking(key)
        if asking:
            pool = await self._allocate(key, asking) or pool
        elif PROTECT_POOL not in pool.metadata.finalizers:
            pool = await self._write(pool, {})
        await self._count(pool)
        return None

    # -- claims that wait --------------------------------------------------------------------------------------

    def _asking(self, key: Key) -> list[Ask]:
        found = self._claims.by(BY_POOL, index_value(self._kind, key))
        return [_ask(each) for each in found if self._waits(each)]

    def _waits(self, claim: IPAddressClaim) -> bool:
        """Only one that carries our finalizer: its address will be given back."""
        meta = claim.metadata
        if meta.deletion_timestamp or RELEASE_ADDRESS not in meta.finalizers or key_of(claim) in self._addresses:
            return False
        return not is_paused(cluster_of(claim, self._clusters), claim)

    # -- choosing ----------------------------------------------------------------------------------------------

    async def _allocate(self, key: Key, asking: list[Ask]) -> Pool | None:
        """The pool is read first, then what is in use of it: what was chosen until then is in one or the other."""
        try:
            pool: Pool = await self._client.get(self._kind, key)
        except NotFound:
            return None
        if pool.metadata.deletion_timestamp:
            return None
        try:
            there = usable(pool.spec)
        except ValueError:
            return None  # the claims say so
        held = await list_addresses(self._client, self._kind, key)
        served = {key_of(each) for each in held}
        taken = parsed(each.spec.address for each in held)
        asking = [each for each in asking if each.key not in served]
        before = reservations(pool.metadata.annotations)
        open_ = await self._still_open(before, taken)
        plan = plan_allocation(there, taken, open_, asking)
        if not plan.given:
            return None
        if dict(plan.reserved) != before:
            pool = await self._write(pool, {RESERVED: render_reservations(plan.reserved)})
        await self._make(pool, plan, {each.key: each for each in asking})
        return pool

    async def _still_open(
        self, entries: dict[Address, tuple[str, Key]], taken: set[Address]
    ) -> dict[Address, tuple[str, Key]]:
        """Without those that became objects, and those whose claim is gone."""
        found = {}
        for address, (uid, key) in entries.items():
            if address in taken:
                continue
            try:
                claim = await self._client.get(IPAddressClaim, key)
            except NotFound:
                continue
            if claim.metadata.uid == uid:
                found[address] = (uid, key)
        return found

    async def _write(self, pool: Pool, annotations: dict[str, str | None]) -> Pool:
        """Refused (Conflict) when the pool is not what was read any more."""
        meta = pool.metadata
        body: dict[str, Any] = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        if annotations:
            body["annotations"] = annotations
        if PROTECT_POOL not in meta.finalizers:
            body["finalizers"] = [*meta.finalizers, PROTECT_POOL]
        written: Pool = await self._client.patch(self._kind, key_of(pool), MergePatch({"metadata": body}), _WRITE)
        return written

    async def _make(self, pool: Pool, plan: Allocation, asking: dict[Key, Ask]) -> None:
        claims = {key: self._claims.get(key) for key in plan.given}
        bodies = [
            render_address(claim, pool, address)
            for key, address in plan.given.items()
            if (claim := claims[key]) is not None and claim.metadata.uid == asking[key].uid
        ]
        await asyncio.gather(*(self._create(each) for each in bodies))

    async def _create(self, body: dict[str, Any]) -> None:
        try:
            await self._client.create(body, _WRITE, kind=IPAddress.__resource__)
        except AlreadyExists:
            return  # another replica made it, or one of an earlier claim is still there: the claim's loop sees to that

    # -- counting and going ------------------------------------------------------------------------------------

    async def _count(self, pool: Pool) -> None:
        held = self._addresses.by(BY_POOL, index_value(self._kind, key_of(pool)))
        try:
            usage = count_usage(usable(pool.spec), parsed(each.spec.address for each in held))
        except ValueError:
            return
        if pool.status.addresses == usage:
            return
        body = {"metadata": {"uid": pool.metadata.uid}, "status": {"ipAddresses": wire(usage)}}
        try:
            await self._client.patch(self._kind, key_of(pool), MergePatch(body), _WRITE, subresource="status")
        except NotFound:
            return

    async def _release(self, pool: Pool) -> Wait | None:
        if PROTECT_POOL not in pool.metadata.finalizers:
            return None
        held = await list_addresses(self._client, self._kind, key_of(pool))
        if held:
            shown = ", ".join(f"{each.spec.address} ({key_of(each)})" for each in held[:3])
            more = f" and {len(held) - 3} more" if len(held) > 3 else ""
            return Wait("AddressesInUse", f"{len(held)} addresses of the pool are in use: {shown}{more}")
        meta = pool.metadata
        left = [each for each in meta.finalizers if each != PROTECT_POOL]
        body = {"finalizers": left, "uid": meta.uid, "resourceVersion": meta.resource_version}
        try:
            await self._client.patch(self._kind, key_of(pool), MergePatch({"metadata": body}), _WRITE)
        except NotFound:
            return None
        return None


def index_value(kind: type[Pool], key: Key) -> str:
    return f"{kind.__resource__.kind} {key}"


def pools_named(obj: IPAddressClaim | IPAddress) -> Iterable[str]:
    """For the index: the pool of ours that a claim or an address names."""
    kind = pool_kind(obj.spec.pool_ref)
    if kind is not None and obj.spec.pool_ref is not None:
        yield index_value(kind, pool_key(kind, obj.spec.pool_ref.name, obj.metadata.namespace))


async def list_addresses(client: Any, kind: type[Pool], key: Key) -> list[IPAddress]:
    """Those of a pool, as the server has them now."""
    found = await client.list(IPAddress, Query(namespace=key.namespace))
    wanted = index_value(kind, key)
    return [each for each in found.items if wanted in pools_named(each)]


def cluster_of(claim: IPAddressClaim, clusters: Any) -> Cluster | None:
    name = claim.spec.cluster_name or claim.metadata.labels.get(names.CLUSTER_NAME_LABEL, "")
    found: Cluster | None = clusters.get(Key(claim.metadata.namespace, name)) if name else None
    return found


def _ask(claim: IPAddressClaim) -> Ask:
    return Ask(claim.metadata.creation_timestamp or "", key_of(claim), claim.metadata.uid)


def render_address(claim: IPAddressClaim, pool: Pool, address: Address) -> dict[str, Any]:
    spec: PoolSpec = pool.spec
    owned = owner_reference(pool) | {"controller": False, "blockOwnerDeletion": True}
    meta: dict[str, Any] = {
        "name": claim.metadata.name,
        "namespace": claim.metadata.namespace,
        "finalizers": [PROTECT_ADDRESS],
        "ownerReferences": [owner_reference(claim, controller=True), owned],
    }
    cluster = claim.metadata.labels.get(names.CLUSTER_NAME_LABEL) or claim.spec.cluster_name
    if cluster:
        meta["labels"] = {names.CLUSTER_NAME_LABEL: cluster}
    return {
        "metadata": meta,
        "spec": {
            "address": str(address),
            "prefix": spec.prefix,
            **({"gateway": spec.gateway} if spec.gateway else {}),
            "claimRef": {"name": claim.metadata.name},
            "poolRef": wire(claim.spec.pool_ref),
        },
    }


def owns(claim: IPAddressClaim, address: IPAddress) -> bool:
    """Whether the address was given to this very claim, not to one that was called the same before."""
    return is_controlled_by(address, claim)
