"""NetworkPool and IPAllocation: addresses are given out, taken back, refused with a reason, and never twice."""

from __future__ import annotations

import json
from typing import Any

from homeport.api.butler.v1alpha1 import IPAllocation, NetworkPool, ProviderConfig, TenantCluster
from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch, Write
from homeport.machinery import condition
from homeport.machinery.address import AddressSet
from homeport.platforms.butler.network.allocation import IPAllocationReconciler
from homeport.platforms.butler.network.claim import ENDPOINT, Claim, Claims, is_given
from homeport.platforms.butler.network.install import install
from homeport.platforms.butler.network.pool import LEDGER, NetworkPoolReconciler
from homeport.runtime.cache import Cache
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.testing import Plane, virtual
from reconcile.platforms.butler_kit import butler, butler_plane

SPACE = "butler-system"
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


def pool(name: str, cidr: str, **more: Any) -> Any:
    return butler("NetworkPool", name, {"cidr": cidr, **more}, namespace=SPACE)


def allocation(name: str, count: int, pool: str = "tenants", tenant: str = "shop", **more: Any) -> Any:
    spec = {
        "poolRef": {"name": pool},
        "tenantClusterRef": {"name": tenant, "namespace": "default"},
        "type": "loadbalancer",
        "count": count,
        **more,
    }
    return butler("IPAllocation", name, spec, namespace=SPACE)


async def have(p: Plane, *objects: Any) -> None:
    kinds = {
        each.__resource__.kind: each.__resource__ for each in (NetworkPool, IPAllocation, ProviderConfig, TenantCluster)
    }
    for each in objects:
        await p.client.create(each, kind=kinds.get(each["kind"], NAMESPACE))


def space() -> Any:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}


async def allocated(p: Plane, name: str) -> str:
    found = await p.until(IPAllocation, Key(SPACE, name), lambda a: a.status.phase == "Allocated", 60)
    return f"{found.status.start_address}-{found.status.end_address}"


async def waits(p: Plane, kind: Any, name: str, reason: str) -> str:
    def fits(obj: Any) -> bool:
        return (condition.find(obj.status.conditions, "Ready") or {}).get("reason") == reason

    found = await p.until(kind, Key(SPACE, name), fits, 60, what=reason)
    return str((condition.find(found.status.conditions, "Ready") or {})["message"])


@virtual
async def test_an_allocation_gets_addresses_in_a_row_and_the_pool_counts_them() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), pool("tenants", "10.0.0.0/28"), allocation("one", 8))
        assert await allocated(p, "one") == "10.0.0.1-10.0.0.8"
        found = await p.until(NetworkPool, Key(SPACE, "tenants"), lambda o: o.status.allocated_ips == 8, 60)
        assert (found.status.total_ips, found.status.available_ips, found.status.largest_free_block) == (14, 6, 6)
        assert condition.is_true(found.status.conditions, "Ready")
        one = await p.client.get(IPAllocation, Key(SPACE, "one"))
        assert (one.status.allocated_count, one.status.addresses[0], one.status.cidr) == (8, "10.0.0.1", "")


@virtual
async def test_addresses_go_back_to_the_pool_and_to_whoever_waits_for_them() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), pool("tenants", "10.0.0.1-10.0.0.4"), allocation("one", 3))
        assert await allocated(p, "one") == "10.0.0.1-10.0.0.3"
        await have(p, allocation("two", 2))
        text = await waits(p, IPAllocation, "two", "PoolExhausted")
        assert "1 of 4 are free" in text
        await p.client.delete(IPAllocation, Key(SPACE, "one"))
        await p.gone(IPAllocation, Key(SPACE, "one"), 60)
        assert await allocated(p, "two") == "10.0.0.1-10.0.0.2"


@virtual
async def test_a_pool_in_use_stays_until_its_last_address_is_free() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), pool("tenants", "10.0.0.1-10.0.0.4"), allocation("one", 3))
        await allocated(p, "one")
        await p.client.delete(NetworkPool, Key(SPACE, "tenants"))
        assert "butler-system/one" in await waits(p, NetworkPool, "tenants", "InUse")
        await p.client.delete(IPAllocation, Key(SPACE, "one"))
        await p.gone(NetworkPool, Key(SPACE, "tenants"), 60)


@virtual
async def test_the_younger_of_two_pools_that_overlap_gives_out_nothing_until_they_are_apart() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), pool("a", "10.0.0.1-10.0.0.9"))
        await p.until(NetworkPool, Key(SPACE, "a"), lambda o: condition.is_true(o.status.conditions, "Ready"), 60)
        await p.settle(quiet=2.0)
        await have(p, pool("b", "10.0.0.9-10.0.0.20"), allocation("one", 1, pool="b"))
        assert "10.0.0.9 is in NetworkPool butler-system/a as well" in await waits(p, NetworkPool, "b", "PoolOverlap")
        assert "10.0.0.9 is in NetworkPool" in await waits(p, IPAllocation, "one", "PoolNotReady")
        apart = MergePatch({"spec": {"cidr": "10.0.0.1-10.0.0.8"}})
        await p.client.patch(NetworkPool, Key(SPACE, "a"), apart)
        assert await allocated(p, "one") == "10.0.0.9-10.0.0.9"


@virtual
async def test_the_gateway_of_a_provider_is_never_given_out() -> None:
    async with butler_plane(install) as p:
        network = {"mode": "ipam", "gateway": "10.0.0.1", "poolRefs": [{"name": "tenants"}]}
        config = butler("ProviderConfig", "site", {"type": "nutanix", "network": network}, namespace=SPACE)
        await have(p, space(), config, pool("tenants", "10.0.0.0/29"), allocation("one", 1))
        assert await allocated(p, "one") == "10.0.0.2-10.0.0.2"


@virtual
async def test_addresses_that_a_tenant_uses_are_not_released_by_a_hand_that_slipped() -> None:
    async with butler_plane(install) as p:
        tenant = butler("TenantCluster", "shop", {}, namespace="default")
        await have(p, space(), tenant, pool("tenants", "10.0.0.1-10.0.0.4"), allocation("one", 2))
        await allocated(p, "one")
        await p.client.delete(IPAllocation, Key(SPACE, "one"))
        assert "TenantCluster default/shop uses the addresses" in await waits(p, IPAllocation, "one", "InUse")
        held = await p.client.get(IPAllocation, Key(SPACE, "one"))
        assert (held.status.phase, held.status.start_address) == ("Allocated", "10.0.0.1")
        await p.client.delete(TenantCluster, Key("default", "shop"))
        await p.gone(IPAllocation, Key(SPACE, "one"), 60)


@virtual
async def test_a_pinned_range_is_exactly_what_it_says() -> None:
    async with butler_plane(install) as p:
        pinned = {"startAddress": "10.0.0.5", "endAddress": "10.0.0.7"}
        await have(p, space(), pool("tenants", "10.0.0.0/28"), allocation("one", 3, pinnedRange=pinned))
        assert await allocated(p, "one") == "10.0.0.5-10.0.0.7"


@virtual
async def test_a_pool_of_ipv6_addresses_works_the_same_way() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), pool("tenants", "fd00:40::/64"), allocation("one", 4))
        assert await allocated(p, "one") == "fd00:40::1-fd00:40::4"


@virtual
async def test_an_allocation_without_a_pool_says_so_and_can_go() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), allocation("one", 1, pool="nowhere"))
        assert "NetworkPool butler-system/nowhere does not exist" in await waits(p, IPAllocation, "one", "PoolNotFound")
        await p.client.delete(IPAllocation, Key(SPACE, "one"))
        await p.gone(IPAllocation, Key(SPACE, "one"), 60)


@virtual
async def test_addresses_of_one_pool_are_not_given_out_by_another_whose_range_grew_over_them() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), pool("old", "10.0.0.1-10.0.0.4"))
        await p.settle(quiet=2.0)
        await have(p, pool("young", "10.0.1.1-10.0.1.4"), allocation("one", 2, pool="young"))
        assert await allocated(p, "one") == "10.0.1.1-10.0.1.2"
        over = MergePatch({"spec": {"cidr": "10.0.1.0-10.0.1.4"}})
        await p.client.patch(NetworkPool, Key(SPACE, "old"), over)
        await have(p, allocation("two", 2, pool="old"))
        assert await allocated(p, "two") == "10.0.1.3-10.0.1.4"


@virtual
async def test_addresses_of_a_pool_that_waits_for_its_end_are_not_given_out_by_the_next_one() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), pool("old", "10.0.0.1-10.0.0.4"), allocation("one", 2, pool="old"))
        assert await allocated(p, "one") == "10.0.0.1-10.0.0.2"
        await p.client.delete(NetworkPool, Key(SPACE, "old"))
        await have(p, pool("young", "10.0.0.1-10.0.0.4"), allocation("two", 2, pool="young"))
        assert await allocated(p, "two") == "10.0.0.3-10.0.0.4"


@virtual
async def test_a_pool_that_becomes_one_of_ipv6_changes_no_address_that_it_gave_out() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), pool("tenants", "10.0.0.1-10.0.0.4"), allocation("one", 2))
        assert await allocated(p, "one") == "10.0.0.1-10.0.0.2"
        await p.client.patch(NetworkPool, Key(SPACE, "tenants"), MergePatch({"spec": {"cidr": "fd00::/64"}}))
        text = await waits(p, NetworkPool, "tenants", "InvalidConfiguration")
        assert "1 IPAllocations have IPv4 addresses of this pool" in text
        await p.settle(quiet=2.0)
        assert await allocated(p, "one") == "10.0.0.1-10.0.0.2"


@virtual
async def test_an_allocation_that_pins_addresses_of_another_family_holds_up_nobody_else() -> None:
    async with butler_plane(install) as p:
        pinned = {"startAddress": "fd00::1", "endAddress": "fd00::3"}
        await have(p, space(), pool("tenants", "10.0.0.1-10.0.0.4"), allocation("pin", 3, pinnedRange=pinned))
        text = await waits(p, IPAllocation, "pin", "PoolExhausted")
        assert "fd00::1-fd00::3 is not within what the pool gives out (10.0.0.1-10.0.0.4)" in text
        await have(p, allocation("two", 2))
        assert await allocated(p, "two") == "10.0.0.1-10.0.0.2"


@virtual
async def test_an_allocation_that_never_got_addresses_can_go_while_its_tenant_lives() -> None:
    async with butler_plane(install) as p:
        tenant = butler("TenantCluster", "shop", {}, namespace="default")
        await have(p, space(), tenant, pool("tenants", "10.0.0.1-10.0.0.4"), allocation("one", 9))
        await waits(p, IPAllocation, "one", "PoolExhausted")
        await p.client.delete(IPAllocation, Key(SPACE, "one"))
        await p.gone(IPAllocation, Key(SPACE, "one"), 60)


@virtual
async def test_addresses_that_a_cluster_has_in_its_spec_are_not_given_out_by_a_pool() -> None:
    async with butler_plane(install) as p:
        own = {"networking": {"loadBalancerPool": {"start": "10.0.0.1", "end": "10.0.0.3"}}}
        tenant = butler("TenantCluster", "shop", own, namespace="default")
        await have(p, space(), tenant, pool("tenants", "10.0.0.1-10.0.0.6"), allocation("one", 2))
        assert await allocated(p, "one") == "10.0.0.4-10.0.0.5"


class Late:
    """Reconciles pools from a cache that shows an IPAllocation as it was before it was deleted and created again."""

    def __init__(self, p: Plane, before: IPAllocation) -> None:
        self._inner = NetworkPoolReconciler(p.manager)
        self._cache, self._before = p.manager.informers.get(IPAllocation).cache, before

    async def reconcile(self, key: Key) -> Wait | None:
        self._cache.put(self._before)
        return await self._inner.reconcile(key)


@virtual
async def test_a_pool_does_not_take_addresses_from_an_allocation_that_was_created_again() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), pool("tenants", "10.0.0.1-10.0.0.4"), allocation("one", 2))
        await allocated(p, "one")
        before = await p.client.get(IPAllocation, Key(SPACE, "one"))
        await p.client.delete(IPAllocation, Key(SPACE, "one"))
        await p.gone(IPAllocation, Key(SPACE, "one"), 60)
        await have(p, allocation("one", 2))
        await allocated(p, "one")
        await p.settle(quiet=2.0)
        await p.stop()
        p.manager = Manager(p.server.client(), clock=p.clock)
        given = (await p.client.get(NetworkPool, Key(SPACE, "tenants"))).metadata.annotations[LEDGER]
        before.metadata.deletion_timestamp, before.status.phase = before.metadata.creation_timestamp, "Released"
        outcome = await p.reconcile(Late(p, before), Key(SPACE, "tenants"))
        assert outcome.error is None
        assert (await p.client.get(NetworkPool, Key(SPACE, "tenants"))).metadata.annotations[LEDGER] == given


@virtual
async def test_an_allocation_uses_what_another_of_its_name_had_only_after_the_pool_gave_it_that() -> None:
    """As when both are restored from a backup, which gives them new UIDs."""
    async with butler_plane() as p:
        grant = {"range": "10.0.0.3-10.0.0.4", "uid": "of the one before"}
        given = pool("tenants", "10.0.0.1-10.0.0.4")
        given["metadata"]["annotations"] = {LEDGER: json.dumps({f"{SPACE}/one": grant, f"{SPACE}/two": grant})}
        await have(p, space(), given, allocation("one", 2))
        await p.stop()
        p.manager = Manager(p.server.client(), clock=p.clock)
        pools, allocations = NetworkPoolReconciler(p.manager), IPAllocationReconciler(p.manager)
        await p.reconcile(allocations, Key(SPACE, "one"))
        assert not (await p.client.get(IPAllocation, Key(SPACE, "one"))).status.start_address
        await p.reconcile(pools, Key(SPACE, "tenants"))
        await p.reconcile(allocations, Key(SPACE, "one"))
        found = await p.client.get(IPAllocation, Key(SPACE, "one"))
        assert (found.status.start_address, found.status.end_address) == ("10.0.0.3", "10.0.0.4")
        ledger = json.loads((await p.client.get(NetworkPool, Key(SPACE, "tenants"))).metadata.annotations[LEDGER])
        assert ledger == {f"{SPACE}/one": {**grant, "uid": found.metadata.uid}}


@virtual
async def test_a_ledger_of_an_older_version_is_continued_and_what_no_longer_fits_is_given_anew() -> None:
    async with butler_plane(install) as p:
        given = pool("tenants", "10.0.0.1-10.0.0.8")
        old = {f"{SPACE}/one": "10.0.0.7-10.0.0.8", f"{SPACE}/two": "10.0.0.5-10.0.0.6"}
        given["metadata"]["annotations"] = {LEDGER: json.dumps(old)}
        await have(p, space(), allocation("one", 2), allocation("two", 3), given)
        assert await allocated(p, "one") == "10.0.0.7-10.0.0.8"
        assert await allocated(p, "two") == "10.0.0.1-10.0.0.3"


@virtual
async def test_clusters_whose_names_read_the_same_have_allocations_of_their_own() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), pool("tenants", "10.0.0.1-10.0.0.6"))
        caches = p.manager.informers.get(IPAllocation).cache, p.manager.informers.get(NetworkPool).cache
        claims = Claims(p.client, Write(field_manager="test"), *caches)
        one, two = Key("a", "b-c"), Key("a-b", "c")
        found = [(await hold(p, claims, each), each) for each in (one, two)]
        assert [str(each.addresses) for each, _ in found] == ["10.0.0.1", "10.0.0.2"]
        for _, tenant in found:
            assert not await claims.release(tenant, ENDPOINT)
        for claim, tenant in found:
            await p.gone(IPAllocation, Key(SPACE, claim.name), 60)
            assert await claims.release(tenant, ENDPOINT)


async def hold(p: Plane, claims: Claims, tenant: Key) -> Claim:
    for _ in range(20):
        found = await claims.hold(tenant, ENDPOINT, ["tenants"], 1)
        if found.addresses:
            return found
        await p.settle(quiet=1.0)
    raise AssertionError(f"no addresses for {tenant}: {found}")


@virtual
async def test_addresses_that_somebody_wrote_into_an_allocation_are_used_by_no_cluster() -> None:
    async with butler_plane(install) as p:
        await have(p, space(), pool("tenants", "10.0.0.1-10.0.0.1"))
        caches = p.manager.informers.get(IPAllocation).cache, p.manager.informers.get(NetworkPool).cache
        claims = Claims(p.client, Write(field_manager="test"), *caches)
        owner, thief = Key("a", "owner"), Key("a", "thief")
        assert str((await hold(p, claims, owner)).addresses) == "10.0.0.1"
        claim = await claims.hold(thief, ENDPOINT, ["tenants"], 1)
        assert "10.0.0.1" not in await waits(p, IPAllocation, claim.name, "PoolExhausted")
        await p.stop()
        forged = {"status": {"phase": "Allocated", "startAddress": "10.0.0.1", "endAddress": "10.0.0.1"}}
        key = Key(SPACE, claim.name)
        found = await p.client.patch(IPAllocation, key, MergePatch(forged), subresource="status")
        pool_ = await p.client.get(NetworkPool, Key(SPACE, "tenants"))
        assert not is_given(pool_, key, AddressSet.parse(["10.0.0.1"]))
        late = Claims(p.client, Write(field_manager="test"), _holding(found), _holding(pool_))
        refused = await late.hold(thief, ENDPOINT, ["tenants"], 1)
        assert (bool(refused.addresses), refused.reason) == (False, "Allocating")
        assert "did not give 10.0.0.1" in refused.message


def _holding(obj: Any) -> Any:
    cache: Any = Cache()
    cache.put(obj)
    return cache
