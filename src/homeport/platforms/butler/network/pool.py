"""NetworkPool: gives parts of itself to IPAllocations, and takes them back when those go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from homeport.api.butler.v1alpha1 import IPAllocation, NetworkPool, ProviderConfig, TenantCluster
from homeport.capi.addresspool import parsed
from homeport.client.absence import find_object
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition
from homeport.machinery.address import AddressSet
from homeport.platforms.butler.name import finalizer
from homeport.platforms.butler.network.plan import (
    Decision,
    Grant,
    Request,
    decide,
    given_out,
    ledger_version,
    read_ledger,
    render_ledger,
    shared,
)
from homeport.platforms.butler.normal.network import joined, normal_ip_allocation, normal_network_pool
from homeport.platforms.butler.reconciler import ButlerReconciler
from homeport.platforms.butler.team.verdict import pools_of
from homeport.runtime.cache import key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

LEDGER = "butler.butlerlabs.dev/allocations"
# Reasons of pools that give out nothing. Reported after the last allocation that they made was written.
_SILENT = ("PoolOverlap", "InUse")
_LOOK_SECONDS = 60.0  # what a TenantCluster had in its spec may be free
_LEVELS = (("CapacityWarning", 70), ("CapacityCritical", 85), ("CapacityExhausted", 95))


class PoolScope(Scope[NetworkPool]):
    def __init__(self, pool: NetworkPool, allocations: Sequence[IPAllocation]) -> None:
        super().__init__(pool)
        self.allocations = {key_of(each): each for each in allocations}
        self.addresses = AddressSet()
        self.ledger: dict[Key, Grant] = {}


class NetworkPoolReconciler(ButlerReconciler[NetworkPool, PoolScope]):
    controller_name = "butler-networkpool"
    kind = NetworkPool
    finalizer = finalizer("NetworkPool")
    waits_are_events = False

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager)
        self._allocations = manager.informers.get(IPAllocation).cache
        self._providers = manager.informers.get(ProviderConfig).cache

    def load(self, obj: NetworkPool) -> PoolScope:
        namespace, name = key_of(obj)
        ours = [each for each in self._allocations.list(namespace) if each.spec.pool_ref.name == name]
        return PoolScope(obj, ours)

    def phases(self, scope: PoolScope) -> Sequence[Phase[PoolScope]]:
        if scope.deleting:
            return [self._take_back, self._await_unused, self.drop_finalizer]
        return [self.hold_finalizer, self._take_back, self._check, self._give_out]

    # -- phases ------------------------------------------------------------------------------------------------

    async def _take_back(self, scope: PoolScope) -> Wait | None:
        """What belongs to nobody any more."""
        try:
            scope.ledger = read_ledger(scope.object.metadata.annotations.get(LEDGER, ""))
        except ValueError as error:
            return Wait("LedgerUnreadable", f"NetworkPool {scope.key}: {error}", warning=True)
        held = {key: await self._holder(scope, key, grant) for key, grant in scope.ledger.items()}
        left = {key: grant for key, grant in held.items() if grant is not None}
        if left != scope.ledger:
            await self._write_ledger(scope, left, allocated_version(scope.object))
        return None

    async def _holder(self, scope: PoolScope, key: Key, grant: Grant) -> Grant | None:
        """Who has these addresses now; None: nobody. Of another object than this very one the cache proves nothing."""
        found = scope.allocations.get(key)
        if found is None or found.metadata.uid != grant.uid:
            found = await find_object(self.client, IPAllocation, key)
            if found is None:
                return None
        if found.spec.pool_ref.name != scope.key.name:
            return None
        if found.metadata.uid == grant.uid:
            released = found.metadata.deletion_timestamp and found.status.phase == "Released"
            return None if released else grant
        return grant._replace(uid=found.metadata.uid) if _fits(found, grant) else None

    async def _await_unused(self, scope: PoolScope) -> Wait | None:
        if not scope.ledger:
            return None
        names = ", ".join(str(key) for key in sorted(scope.ledger)[:5])
        return Wait("InUse", f"{len(scope.ledger)} IPAllocations have addresses of this pool: {names}")

    async def _check(self, scope: PoolScope) -> Wait | None:
        read = normal_network_pool(scope.object)
        if read.model is None:
            return Wait("InvalidConfiguration", read.text, warning=True)
        version = ledger_version(scope.object.metadata.annotations.get(LEDGER, ""))
        if version not in (0, read.model.whole.version):
            text = (
                f"spec.cidr: {scope.object.spec.cidr} is not IPv{version}, and {len(scope.ledger)} IPAllocations have "
                f"IPv{version} addresses of this pool: set the former range again, and create another NetworkPool"
            )
            return Wait("InvalidConfiguration", text, warning=True)
        scope.addresses = read.model.usable.without(self._reserved(scope.key, read.model.whole.version))
        for other in self.objects:
            if _before(other, scope.object) and (overlap := _overlap(scope.object, other)):
                text = (
                    f"spec.cidr: {overlap} is in NetworkPool {key_of(other)} as well, which is older; this pool gives "
                    "out nothing until they are apart"
                )
                return Wait("PoolOverlap", text, warning=True)
        return None

    def _reserved(self, key: Key, version: int) -> AddressSet:
        """Gateways of providers that use the pool."""
        found: list[str] = []
        for each in self._providers:
            network = each.spec.network
            if network is not None and network.gateway and any(ref.name == key.name for ref in network.pool_refs):
                found.append(network.gateway)
        gateways = parsed(found)
        return AddressSet.parse(str(each) for each in gateways if each.version == version)

    async def _give_out(self, scope: PoolScope) -> Wait | None:
        waiting = [
            _request(each)
            for key, each in scope.allocations.items()
            if key not in scope.ledger
            and not each.metadata.deletion_timestamp
            and finalizer("IPAllocation") in each.metadata.finalizers
        ]
        elsewhere = await self._elsewhere(scope) if waiting else AddressSet()
        decision = decide(scope.addresses, scope.ledger, waiting, elsewhere)
        if decision.ledger != scope.ledger:
            await self._write_ledger(scope, dict(decision.ledger), scope.addresses.version)
        self._report_use(scope)
        return self._refusal(decision)

    async def _elsewhere(self, scope: PoolScope) -> AddressSet:
        """What belongs to allocations of other pools, whose range may have been another one then, and what
        TenantClusters have in their spec. A pool that may be giving out addresses at this moment has all of its range.
        The cache may be late: the API server is asked."""
        found = AddressSet()
        for each in (await self.client.list(NetworkPool, Query())).items:
            if key_of(each) != scope.key:
                for claimed in _claimed(each):
                    found = joined(found, shared(scope.addresses, claimed))
        for _, written in pools_of((await self.client.list(TenantCluster, Query())).items):
            found = joined(found, shared(scope.addresses, written))
        return found

    def _refusal(self, decision: Decision) -> Wait | None:
        if not decision.refused:
            return None
        key, why = next(iter(sorted(decision.refused.items())))
        return Wait("PoolExhausted", f"IPAllocation {key}: {why}", after=_LOOK_SECONDS, warning=True)

    async def _write_ledger(self, scope: PoolScope, ledger: dict[Key, Grant], version: int) -> None:
        """For exactly this state of the pool: whoever else decided meanwhile has the first word."""
        meta = scope.object.metadata
        body = {
            "metadata": {
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
                "annotations": {LEDGER: render_ledger(ledger, version) if ledger else None},
            }
        }
        scope.update_metadata(await self.client.patch(NetworkPool, scope.key, MergePatch(body), self._write))
        scope.ledger = ledger

    def _report_use(self, scope: PoolScope) -> None:
        status, free = scope.object.status, scope.addresses.without(_spans(scope))
        total = scope.addresses.count
        status.observed_generation = scope.object.metadata.generation
        status.total_ips, status.available_ips = _bounded(total), _bounded(free.count)
        status.allocated_ips, status.allocation_count = _bounded(total - free.count), len(scope.ledger)
        largest = max((high - low + 1 for low, high in free.spans), default=0)
        status.largest_free_block = _bounded(largest)
        status.fragmentation_percent = 100 - 100 * largest // free.count if free.count else 0
        used = 100 * (total - free.count) // total if total else 100
        now = rfc3339(self.clock.now())
        for kind, percent in _LEVELS:
            above = used >= percent
            text = f"{used}% of the addresses are in use" if above else ""
            scope.object.status.conditions = condition.put(
                status.conditions, kind, "True" if above else "False", kind if above else "Enough", text, now=now
            )


def _request(allocation: IPAllocation) -> Request:
    meta, read = allocation.metadata, normal_ip_allocation(allocation)
    if read.model is None:
        return Request(key_of(allocation), 0, created=meta.creation_timestamp or "", fault=read.text)
    count = allocation.spec.count or 1
    return Request(key_of(allocation), count, read.model.pinned or None, meta.creation_timestamp or "", meta.uid)


def _fits(allocation: IPAllocation, grant: Grant) -> bool:
    """Whether an allocation that was created again, or restored from a backup, continues with the same addresses."""
    request, (low, high) = _request(allocation), grant.span
    if allocation.metadata.deletion_timestamp or request.fault:
        return False
    return grant.span == request.pinned.spans[0] if request.pinned else high - low + 1 == request.count


def _claimed(pool: NetworkPool) -> Iterator[AddressSet]:
    """What other pools must not give out."""
    ready, model = condition.find(pool.status.conditions, "Ready") or {}, normal_network_pool(pool).model
    try:
        yield given_out(pool.metadata.annotations.get(LEDGER, ""))
        silent = ready.get("reason") in _SILENT
    except ValueError:
        silent = False
    if model is not None and not silent:
        yield model.whole


def _spans(scope: PoolScope) -> AddressSet:
    return AddressSet(scope.addresses.version, tuple(sorted(each.span for each in scope.ledger.values())))


def _bounded(number: int) -> int:
    """Networks of IPv6 have more addresses than the field can hold."""
    return min(number, 2**31 - 1)


def _before(one: NetworkPool, other: NetworkPool) -> bool:
    first, second = ((each.metadata.creation_timestamp or "", str(key_of(each))) for each in (one, other))
    return first < second and not one.metadata.deletion_timestamp


def _overlap(one: NetworkPool, other: NetworkPool) -> str:
    first, second = normal_network_pool(one).model, normal_network_pool(other).model
    found = shared(first.whole, second.whole) if first is not None and second is not None else None
    return str(found) if found else ""


def allocated_version(pool: NetworkPool) -> int:
    """Of IP, of the addresses that the pool gave out: its range may be another one by now."""
    return ledger_version(pool.metadata.annotations.get(LEDGER, "")) or 4
