"""Pools: addresses are chosen here, for all claims that wait, and counted.

An address is chosen by a write to the pool that is refused if the pool changed since it was read. Only then does it
become an IPAddress, so that neither a second replica nor a late cache gives it twice; and what was chosen before a
crash is taken up again by whoever comes next. A claim may go between the two, while somebody is about to make its
IPAddress: so what was chosen is nobody else's for a minute, and becomes an object soon or is chosen again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.ipam.v1alpha2 import PoolSpec
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim
from homeport.api.meta import wire
from homeport.capi import name as names
from homeport.capi.addresspool import (
    RESERVED,
    Pool,
    Reservation,
    parsed,
    pool_key,
    pool_kind,
    render_reservations,
    reservations,
    usable,
)
from homeport.capi.object.ownership import controller_of, is_controlled_by, owner_reference
from homeport.capi.object.paused import is_paused
from homeport.capi.reconciler import PausableReconciler
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.ipam.name import FIELD_MANAGER, PROTECT_ADDRESS, PROTECT_POOL, RELEASE_ADDRESS
from homeport.ipam.plan import Ask, count_usage, plan_allocation
from homeport.machinery.address import Address
from homeport.runtime.cache import Cache, key_of
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

BY_POOL = "pool"
_REST_SECONDS = 60.0  # a chosen address stays reserved this long, even if its claim is deleted ...
_MAKE_SECONDS = 20.0  # ... and becomes an object this soon or is chosen again: a request takes no longer than the rest
_WRITE = Write(field_manager=FIELD_MANAGER)


class PoolReconciler(PausableReconciler[Pool, Scope[Pool]]):
    field_manager = FIELD_MANAGER
    condition = ""
    finalizer = PROTECT_POOL
    workers = 4

    def __init__(self, manager: Manager, kind: type[Pool]) -> None:
        self.controller_name = kind.__resource__.kind.lower()
        self.kind = kind
        super().__init__(manager)
        self._claims = manager.informers.get(IPAddressClaim).cache
        self._addresses = manager.informers.get(IPAddress).cache
        self._clusters = manager.informers.get(Cluster).cache

    def load(self, obj: Pool) -> Scope[Pool]:
        return Scope(obj)

    def phases(self, scope: Scope[Pool]) -> Sequence[Phase[Scope[Pool]]]:
        return [self._release, self.drop_finalizer] if scope.deleting else [self.hold_finalizer, self._serve]

    async def _serve(self, scope: Scope[Pool]) -> Wait | None:
        asking = self._asking(scope.key)
        wait = await self._allocate(scope, asking) if asking else None
        self._count(scope.object)
        return wait

    # -- claims that wait --------------------------------------------------------------------------------------

    def _asking(self, key: Key) -> list[Ask]:
        found = self._claims.by(BY_POOL, index_value(self.kind, key))
        return [_ask(each) for each in found if self._waits(each)]

    def _waits(self, claim: IPAddressClaim) -> bool:
        """Only one that carries our finalizer: its address will be given back."""
        meta, address = claim.metadata, self._addresses.get(key_of(claim))
        if meta.deletion_timestamp or RELEASE_ADDRESS not in meta.finalizers:
            return False
        if address is not None and (owns(claim, address) or not adoptable(claim, address)):
            return False
        return not is_paused(cluster_of(claim, self._clusters), claim)

    # -- choosing ----------------------------------------------------------------------------------------------

    async def _allocate(self, scope: Scope[Pool], asking: list[Ask]) -> Wait | None:
        """The pool is read first, then what is in use of it: what was chosen until then is in one or the other."""
        try:
            pool: Pool = await self.client.get(self.kind, scope.key)
            there = usable(pool.spec)
        except (NotFound, ValueError):
            return None  # the claims say so
        if pool.metadata.deletion_timestamp:
            return None
        scope.update_metadata(pool)
        scope.object.spec = pool.spec
        held = await list_addresses(self.client, self.kind, scope.key)
        named = {key_of(each): each for each in held}
        asks = [_wishing(each, named.get(each.key)) for each in asking if not _served(each, named.get(each.key))]
        wished = {each.key for each in asks if each.wish is not None}
        taken = parsed(each.spec.address for each in held if key_of(each) not in wished)
        kept = await self._kept(reservations(pool.metadata.annotations), held)
        now, began = int(self.clock.now()), self.clock.monotonic()
        plan = plan_allocation(there, taken, kept, asks, now)
        if plan.given:
            await self._reserve(scope, render_reservations(plan.reserved))
            given = [each for each in asks if each.key in plan.given]
            await asyncio.gather(
                *(self._give(scope.object, each, plan.given[each.key], named.get(each.key), began) for each in given)
            )
        return _rest(kept.values(), now) if len(plan.given) < len(asks) else None

    async def _kept(self, entries: Mapping[Address, Reservation], held: list[IPAddress]) -> dict[Address, Reservation]:
        """Without those that had time to become objects, and did or lost their claim."""
        made = parsed(each.spec.address for each in held)
        now = self.clock.now()
        return {
            address: chosen
            for address, chosen in entries.items()
            if now - chosen.chosen_at < _REST_SECONDS or (address not in made and await self._exists(chosen))
        }

    async def _exists(self, chosen: Reservation) -> bool:
        claim = await find_object(self.client, IPAddressClaim, chosen.key)
        if claim is None:
            return False
        return bool(claim.metadata.uid == chosen.uid)

    async def _reserve(self, scope: Scope[Pool], reserved: str | None) -> None:
        """Refused (Conflict) when the pool is not what was read any more."""
        meta = scope.object.metadata
        body = {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": {RESERVED: reserved}}
        patch = MergePatch({"metadata": body})
        scope.update_metadata(await self.client.patch(self.kind, scope.key, patch, self._write))

    async def _give(self, pool: Pool, ask: Ask, address: Address, found: IPAddress | None, began: float) -> None:
        """As an object: made, or taken over where it is there and lost its claim."""
        claim = self._claims.get(ask.key)
        if claim is None or claim.metadata.uid != ask.uid or self.clock.monotonic() - began > _MAKE_SECONDS:
            return
        body = render_address(claim, pool, address)
        if found is None:
            try:
                await self.client.create(body, _WRITE, kind=IPAddress.__resource__)
            except AlreadyExists:
                return  # another replica was faster, or one of an earlier claim is there: the next loop sees which
            return
        if found.spec.address != str(address):
            await drop_address(self.client, found)  # somebody else has that one by now
            return
        meta: dict[str, Any] = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version}
        meta["ownerReferences"] = body["metadata"]["ownerReferences"]
        await self.client.patch(IPAddress, ask.key, MergePatch({"metadata": meta}), _WRITE)

    # -- counting and going ------------------------------------------------------------------------------------

    def _count(self, pool: Pool) -> None:
        held = self._addresses.by(BY_POOL, index_value(self.kind, key_of(pool)))
        try:
            pool.status.addresses = count_usage(usable(pool.spec), parsed(each.spec.address for each in held))
        except ValueError:
            return

    async def _release(self, scope: Scope[Pool]) -> Wait | None:
        if PROTECT_POOL not in scope.object.metadata.finalizers:
            return None
        held = await list_addresses(self.client, self.kind, scope.key)
        if not held:
            return None
        shown = ", ".join(f"{each.spec.address} ({key_of(each)})" for each in held[:3])
        more = f" and {len(held) - 3} more" if len(held) > 3 else ""
        return Wait("AddressesInUse", f"deletion waits: {len(held)} addresses of the pool are in use: {shown}{more}")


def index_value(kind: type[Pool], key: Key) -> str:
    return f"{kind.__resource__.kind} {key}"


def pools_named(obj: IPAddressClaim | IPAddress) -> Iterable[str]:
    """Index function: the in-cluster pool that a claim or an address refers to."""
    kind = pool_kind(obj.spec.pool_ref)
    if kind is not None and obj.spec.pool_ref is not None:
        yield index_value(kind, pool_key(kind, obj.spec.pool_ref.name, obj.metadata.namespace))


async def list_addresses(client: Client, kind: type[Pool], key: Key) -> list[IPAddress]:
    """Those of a pool, as the server has them now."""
    found = await client.list(IPAddress, Query(namespace=key.namespace))
    wanted = index_value(kind, key)
    return [each for each in found.items if wanted in pools_named(each)]


def cluster_of(claim: IPAddressClaim, clusters: Cache[Cluster]) -> Cluster | None:
    name = claim.spec.cluster_name or claim.metadata.labels.get(names.CLUSTER_NAME_LABEL, "")
    return clusters.get(Key(claim.metadata.namespace, name)) if name else None


def _rest(entries: Iterable[Reservation], now: int) -> Wait | None:
    """No event tells when an address may be given again that was chosen for a claim which is gone by now."""
    due = min(
        (each.chosen_at + _REST_SECONDS for each in entries if now - each.chosen_at < _REST_SECONDS), default=None
    )
    if due is None:
        return None
    return Wait("AddressRests", "an address was released a moment ago", after=due - now + 1.0, quiet=True)


def _served(ask: Ask, address: IPAddress | None) -> bool:
    owner = controller_of(address) if address is not None else None
    return owner is not None and owner["uid"] == ask.uid


def _wishing(ask: Ask, address: IPAddress | None) -> Ask:
    wish = parsed([address.spec.address]) if address is not None else set()
    return replace(ask, wish=next(iter(wish), None))


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


def adoptable(claim: IPAddressClaim, address: IPAddress) -> bool:
    """Whether it was given to a claim of this name and pool that is no more; one that was made by hand is not."""
    named = address.spec.claim_ref.name if address.spec.claim_ref is not None else ""
    ours = PROTECT_ADDRESS in address.metadata.finalizers and named == claim.metadata.name
    return ours and address.spec.pool_ref == claim.spec.pool_ref


async def drop_address(client: Client, address: IPAddress) -> None:
    """Deletes before it removes the finalizer, so that a crash in between leaves the owner visible."""
    meta, key = address.metadata, key_of(address)
    try:
        if not meta.deletion_timestamp:
            await client.delete(IPAddress, key, uid=meta.uid)
        if PROTECT_ADDRESS in meta.finalizers:
            left = [each for each in meta.finalizers if each != PROTECT_ADDRESS]
            await client.patch(IPAddress, key, MergePatch({"metadata": {"finalizers": left, "uid": meta.uid}}), _WRITE)
    except NotFound:
        return
