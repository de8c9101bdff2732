"""Claims: they say which address they got or why they got none, and give it back when they go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim, IPAddressReference
from homeport.capi.addresspool import KINDS, Pool, describe, parsed, pool_key, pool_kind, reservations, usable
from homeport.capi.object.paused import has_annotation, is_paused
from homeport.client.absence import find_object
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.ipam.name import (
    ALLOCATION_FAILED,
    FIELD_MANAGER,
    POOL_EXHAUSTED,
    POOL_NOT_READY,
    PROTECT_ADDRESS,
    RELEASE_ADDRESS,
)
from homeport.ipam.pool import BY_POOL, adoptable, cluster_of, drop_address, index_value, owns
from homeport.machinery import condition
from homeport.machinery.address import AddressSet
from homeport.runtime.cache import Cache, key_of
from homeport.runtime.clock import parse_time
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler

# Of Kubernetes itself: how an owner waits for what it owns.
_PROPAGATION = ("foregroundDeletion", "orphan")
_ORPHAN_SECONDS = 60.0
_ALLOCATING = Wait("Allocating", "an address is being allocated", quiet=True)


class ClaimScope(Scope[IPAddressClaim]):
    def __init__(self, claim: IPAddressClaim, kind: type[Pool], pool: Pool | None, address: IPAddress | None) -> None:
        super().__init__(claim)
        self.kind = kind  # of the pool, which may not exist
        self.pool = pool
        self.address = address

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """The pool's loop allocates at this moment: that is not worth a write."""
        return False if reason == _ALLOCATING.reason else super().report(kind, status, reason, message, now)


class ClaimReconciler(ObjectReconciler[IPAddressClaim, ClaimScope]):
    controller_name = "ipaddressclaim"
    kind = IPAddressClaim
    field_manager = FIELD_MANAGER
    finalizer = RELEASE_ADDRESS

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager)
        self._addresses = manager.informers.get(IPAddress).cache
        self._clusters = manager.informers.get(Cluster).cache
        self._orphans: dict[Key, tuple[str, float]] = {}  # UIDs of addresses without a claim, and since when
        self._pools: dict[type[Pool], Cache[Pool]] = {
            kind: manager.informers.get(kind).cache for kind in KINDS.values()
        }

    def predicate(self, old: IPAddressClaim | None, new: IPAddressClaim | None) -> bool:
        return claim_changed(old, new)

    async def gone(self, key: Key) -> Wait | None:
        return await self._await_orphan(key, self._addresses.get(key))

    def load(self, obj: IPAddressClaim) -> ClaimScope | None:
        """None: the pool is of another provider."""
        key = key_of(obj)
        self._orphans.pop(key, None)
        kind = pool_kind(obj.spec.pool_ref)
        if kind is None or obj.spec.pool_ref is None:
            return None
        pool = self._pools[kind].get(pool_key(kind, obj.spec.pool_ref.name, key.namespace))
        return ClaimScope(obj, kind, pool, self._addresses.get(key))

    def pause(self, scope: ClaimScope) -> bool:
        """Claims have no condition for that."""
        paused = is_paused(cluster_of(scope.object, self._clusters), scope.object)
        return paused or (scope.pool is not None and has_annotation(scope.pool))

    def phases(self, scope: ClaimScope) -> Sequence[Phase[ClaimScope]]:
        return [self._release, self.drop_finalizer] if scope.deleting else [self.hold_finalizer, self._await_address]

    # -- growing -----------------------------------------------------------------------------------------------

    async def _await_address(self, scope: ClaimScope) -> Wait | None:
        claim, kind, pool, address = scope.object, scope.kind, scope.pool, scope.address
        assert claim.spec.pool_ref is not None
        if address is not None and owns(claim, address):
            claim.status.address_ref = IPAddressReference(name=address.metadata.name)
            return None
        named = describe(kind, pool_key(kind, claim.spec.pool_ref.name, scope.key.namespace))
        if pool is None:
            return Wait(POOL_NOT_READY, f"{named} does not exist: create it", warning=True)
        if pool.metadata.deletion_timestamp:
            return Wait(POOL_NOT_READY, f"{named} is being deleted and assigns no more addresses", warning=True)
        try:
            there = usable(pool.spec)
        except ValueError as error:
            return Wait(POOL_NOT_READY, f"{named} is invalid: {error}", warning=True)
        if address is not None and not adoptable(claim, address):
            text = (
                f"IPAddress {scope.key} exists ({address.spec.address}) and was not created for this claim: delete it"
            )
            return Wait(ALLOCATION_FAILED, f"{text}, or use another name", warning=True)
        if address is not None:
            return _ALLOCATING
        if self._exhausted(kind, pool, there, claim):
            text = f"all {there.count} addresses of {named} are in use: add some to its spec.addresses"
            return Wait(POOL_EXHAUSTED, text, warning=True)
        return _ALLOCATING

    def _exhausted(self, kind: type[Pool], pool: Pool, there: AddressSet, claim: IPAddressClaim) -> bool:
        held = self._addresses.by(BY_POOL, index_value(kind, key_of(pool)))
        if len(held) + len(reservations(pool.metadata.annotations)) < there.count:
            return False
        taken = parsed(each.spec.address for each in held)
        for address, chosen in reservations(pool.metadata.annotations).items():
            if chosen.uid == claim.metadata.uid:
                return False
            other = self.objects.get(chosen.key)
            if other is not None and other.metadata.uid == chosen.uid:
                taken.add(address)
        return next(there.free(taken), None) is None

    # -- shrinking ---------------------------------------------------------------------------------------------

    async def _release(self, scope: ClaimScope) -> Wait | None:
        finalizers = scope.object.metadata.finalizers
        if RELEASE_ADDRESS not in finalizers:
            return None
        others = [each for each in finalizers if each != RELEASE_ADDRESS and each not in _PROPAGATION]
        if others:
            return Wait("AddressInUse", f"the address is still used: waiting for {', '.join(others)}", quiet=True)
        wait = self._grace_period(scope.object, scope.pool)
        if wait is not None:
            return wait
        address = await find_object(self.client, IPAddress, scope.key)
        if address is not None and owns(scope.object, address):
            await drop_address(self.client, address)
        return None

    def _grace_period(self, claim: IPAddressClaim, pool: Pool | None) -> Wait | None:
        """Some networks remember for a while who had an address."""
        seconds = pool.spec.address_reuse_grace_period_seconds if pool is not None else None
        if not seconds or pool is None or pool.metadata.deletion_timestamp:
            return None
        left = parse_time(claim.metadata.deletion_timestamp or "") + seconds - self.clock.now()
        if left <= 0:
            return None
        return Wait("AddressRests", f"the address is not assigned again for {seconds} s", after=left, quiet=True)

    async def _await_orphan(self, key: Key, address: IPAddress | None) -> Wait | None:
        """An address without its claim is given back at the second look: what is restored or moved comes in any order,
        and a claim that comes a moment later takes its address over."""
        owned = address is not None and pool_kind(address.spec.pool_ref) is not None
        if address is None or not owned or PROTECT_ADDRESS not in address.metadata.finalizers:
            self._orphans.pop(key, None)
            return None
        now = self.clock.monotonic()
        uid, since = self._orphans.get(key, ("", now))
        if uid != address.metadata.uid:
            since = now
        self._orphans[key] = (address.metadata.uid, since)
        if now - since < _ORPHAN_SECONDS:
            text = f"address {address.spec.address} has no claim: it is released if none is created"
            return Wait("ClaimGone", text, after=_ORPHAN_SECONDS - (now - since), quiet=True)
        try:
            await self.client.get(IPAddressClaim, key)
        except NotFound:
            await drop_address(self.client, address)
        return None


def claim_changed(old: IPAddressClaim | None, new: IPAddressClaim | None) -> bool:
    """Everything but what our own reports change."""
    return old is None or new is None or _read_of(old) != _read_of(new)


def _read_of(claim: IPAddressClaim) -> tuple[Any, ...]:
    meta = claim.metadata
    return (meta.finalizers, meta.annotations, meta.labels, meta.deletion_timestamp, meta.uid, claim.status.address_ref)
