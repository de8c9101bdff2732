"""IPAllocation: reports the addresses that its NetworkPool gave it, and holds them until it goes."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address, summarize_address_range

from homeport.api.butler.v1alpha1 import IPAllocation, NetworkPool, TenantCluster
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.machinery.address import Span
from homeport.platforms.butler.name import FIELD_MANAGER, finalizer
from homeport.platforms.butler.network.plan import read_ledger, render_span
from homeport.platforms.butler.network.pool import LEDGER, allocated_version
from homeport.platforms.butler.reconciler import ButlerReconciler
from homeport.runtime.clock import rfc3339
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

# On an IPAllocation: its TenantCluster no longer uses the addresses.
RELEASED = "butler.butlerlabs.dev/released"
_LISTED = 256  # addresses that are written out one by one


class AllocationScope(Scope[IPAllocation]):
    def __init__(self, allocation: IPAllocation, pool: NetworkPool | None) -> None:
        super().__init__(allocation)
        self.pool = pool
        self.phase = "Pending"  # unless it is Allocated

    @property
    def pool_key(self) -> Key:
        return Key(self.key.namespace, self.object.spec.pool_ref.name)

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        held = self.object.status
        held.observed_generation = self.object.metadata.generation
        held.phase = "Allocated" if status == "True" else self.phase
        if status == "True" and held.allocated_at is None:
            held.allocated_at = now
        return super().report(kind, status, reason, message, now)


class IPAllocationReconciler(ButlerReconciler[IPAllocation, AllocationScope]):
    controller_name = "butler-ipallocation"
    kind = IPAllocation
    finalizer = finalizer("IPAllocation")
    waits_are_events = False

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager)
        self._pools = manager.informers.get(NetworkPool).cache
        self._tenants = manager.informers.get(TenantCluster).cache

    def load(self, obj: IPAllocation) -> AllocationScope:
        meta = obj.metadata
        return AllocationScope(obj, self._pools.get(Key(meta.namespace, obj.spec.pool_ref.name)))

    def phases(self, scope: AllocationScope) -> Sequence[Phase[AllocationScope]]:
        if scope.deleting:
            return [self._await_unused, self._await_release, self.drop_finalizer]
        return [self.hold_finalizer, self._await_addresses]

    async def _await_unused(self, scope: AllocationScope) -> Wait | None:
        """Whoever deletes it by hand does not take the addresses from a cluster that uses them."""
        ref, status = scope.object.spec.tenant_cluster_ref, scope.object.status
        if _span(scope) is None and not status.start_address:
            return None  # it never had any
        if RELEASED in scope.object.metadata.annotations or self._tenants.get(Key(ref.namespace, ref.name)) is None:
            return None
        scope.phase = "Allocated" if status.start_address else "Pending"
        text = f"TenantCluster {ref.namespace}/{ref.name} uses the addresses: delete that, or remove them from its spec"
        return Wait("InUse", text)

    async def _await_release(self, scope: AllocationScope) -> Wait | None:
        """The pool takes the addresses back when this no longer shows them."""
        status = scope.object.status
        if _span(scope) is None:
            return None
        scope.phase = "Released"
        status.start_address = status.end_address = status.cidr = ""
        status.addresses, status.allocated_count = [], 0
        status.released_at = status.released_at or rfc3339(self.clock.now())
        return Wait("Releasing", f"NetworkPool {scope.pool_key} takes the addresses back")

    async def _await_addresses(self, scope: AllocationScope) -> Wait | None:
        if scope.pool is None:
            return Wait("PoolNotFound", f"spec.poolRef: NetworkPool {scope.pool_key} does not exist", warning=True)
        span = _span(scope)
        if span is None:
            return self._waits(scope, scope.pool)
        _write_addresses(scope, span, allocated_version(scope.pool))
        return None

    def _waits(self, scope: AllocationScope, pool: NetworkPool) -> Wait:
        found = condition.find(pool.status.conditions, "Ready") or {}
        name = f"IPAllocation {scope.key}: "
        message = str(found.get("message") or "")
        if found.get("reason") == "PoolExhausted" and message.startswith(name):
            return Wait("PoolExhausted", f"NetworkPool {scope.pool_key}: {message.removeprefix(name)}", warning=True)
        if found.get("reason") == "PoolExhausted":
            text = f"NetworkPool {scope.pool_key} has too few free addresses for all that wait. {message}"
            return Wait("PoolExhausted", text, warning=True)
        if found.get("status") == "False":
            return Wait("PoolNotReady", f"NetworkPool {scope.pool_key}: {message}", warning=True)
        return Wait("Allocating", f"NetworkPool {scope.pool_key} assigns the addresses")


def _span(scope: AllocationScope) -> Span | None:
    if scope.pool is None:
        return None
    try:
        found = read_ledger(scope.pool.metadata.annotations.get(LEDGER, "")).get(scope.key)
    except ValueError:
        return None
    return found.span if found is not None and found.uid == scope.object.metadata.uid else None


def _write_addresses(scope: AllocationScope, span: Span, version: int) -> None:
    status = scope.object.status
    start, _, end = render_span(span, version).partition("-")
    first, last = ip_address(start), ip_address(end)
    count = span[1] - span[0] + 1
    blocks = list(summarize_address_range(first, last))
    status.start_address, status.end_address, status.allocated_count = start, end, min(count, 2**31 - 1)
    status.cidr = str(blocks[0]) if len(blocks) == 1 else ""
    status.addresses = [str(first + number) for number in range(min(count, _LISTED))]
    status.allocated_by = FIELD_MANAGER
