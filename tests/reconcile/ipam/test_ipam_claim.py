"""Claims, and the addresses that they get."""

from __future__ import annotations

import asyncio

import pytest

from homeport.api.ipam.v1alpha2 import GlobalInClusterIPPool, InClusterIPPool
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim
from homeport.api.meta import Resource
from homeport.apiserver.local import LocalClient
from homeport.capi.addresspool import RESERVED
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch
from homeport.ipam.name import PROTECT_ADDRESS, PROTECT_POOL, RELEASE_ADDRESS
from homeport.runtime.testing import virtual
from present import present
from reconcile.ipam.pool_kit import addresses, begin, claim, given, ipam_plane, message, pool, ready

POOL = Key("default", "machines")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


@virtual
async def test_a_claim_gets_an_address_of_its_own_name() -> None:
    async with ipam_plane() as p:
        await p.have(pool(), claim("a", labels={"cluster.x-k8s.io/cluster-name": "one"}))
        assert await given(p, "a") == ["10.0.0.10"]
        made = await p.client.get(IPAddress, Key("default", "a"))
        assert (made.spec.prefix, made.spec.gateway) == (24, "10.0.0.1")
        assert present(made.spec.claim_ref).name == "a"
        pool_ref = present(made.spec.pool_ref)
        assert (pool_ref.kind, pool_ref.name) == ("InClusterIPPool", "machines")
        assert made.metadata.finalizers == [PROTECT_ADDRESS]
        assert made.metadata.labels == {"cluster.x-k8s.io/cluster-name": "one"}
        owners = [(o.kind, bool(o.controller), bool(o.block_owner_deletion)) for o in made.metadata.owner_references]
        assert owners == [("IPAddressClaim", True, True), ("InClusterIPPool", False, True)]
        got = await p.client.get(IPAddressClaim, Key("default", "a"))
        assert got.metadata.finalizers == [RELEASE_ADDRESS]
        assert ready(got)


@virtual
async def test_a_pool_counts_what_is_used() -> None:
    async with ipam_plane() as p:
        await p.have(pool(), claim("a"))
        found = await p.until(InClusterIPPool, POOL, lambda o: o.status.addresses and o.status.addresses.used == 1)
        usage = found.status.addresses
        assert (usage.total, usage.free, usage.out_of_range) == (3, 2, 0)
        assert PROTECT_POOL in found.metadata.finalizers


@virtual
async def test_many_claims_at_once_get_different_addresses() -> None:
    async with ipam_plane() as p:
        await p.have(pool("machines", "10.0.0.0/24"), *(claim(f"c-{n:02}") for n in range(40)))
        found = await given(p, *(f"c-{n:02}" for n in range(40)))
        assert len(set(found)) == 40
        assert "10.0.0.1" not in found


@virtual
async def test_a_claim_waits_for_its_pool_and_goes_on_by_itself() -> None:
    async with ipam_plane() as p:
        await p.have(claim("a"))
        waiting = await p.until(IPAddressClaim, Key("default", "a"), lambda c: ready(c, "PoolNotReady"))
        assert "InClusterIPPool default/machines does not exist" in message(waiting)
        await p.have(pool())
        assert await given(p, "a") == ["10.0.0.10"]


@virtual
async def test_an_exhausted_pool_is_reported_and_a_larger_one_serves_who_waits() -> None:
    async with ipam_plane() as p:
        await p.have(pool("machines", "10.0.0.10-10.0.0.11"), claim("a"), claim("b"), claim("c"))
        waiting = await p.until(IPAddressClaim, Key("default", "c"), lambda c: ready(c, "PoolExhausted"))
        assert "all 2 addresses of InClusterIPPool default/machines are in use" in message(waiting)
        await p.client.patch(InClusterIPPool, POOL, MergePatch({"spec": {"addresses": ["10.0.0.10-10.0.0.12"]}}))
        assert await given(p, "c") == ["10.0.0.12"]


@virtual
async def test_an_address_that_is_given_back_serves_who_waits() -> None:
    async with ipam_plane() as p:
        await p.have(pool("machines", "10.0.0.10"), claim("a"))
        await given(p, "a")
        await p.have(claim("b"))
        await p.until(IPAddressClaim, Key("default", "b"), lambda c: ready(c, "PoolExhausted"))
        await p.client.delete(IPAddressClaim, Key("default", "a"))
        assert await given(p, "b") == ["10.0.0.10"]
        await p.gone(IPAddressClaim, Key("default", "a"))
        assert await addresses(p) == {"default/b": "10.0.0.10"}


@virtual
async def test_an_address_rests_when_its_pool_says_so() -> None:
    async with ipam_plane() as p:
        await p.have(pool("machines", "10.0.0.10", addressReuseGracePeriodSeconds=120), claim("a"))
        await given(p, "a")
        await p.have(claim("b"))
        began = p.clock.monotonic()
        await p.client.delete(IPAddressClaim, Key("default", "a"))
        await p.until(IPAddressClaim, Key("default", "b"), lambda c: c.status.address_ref is not None, timeout=600)
        assert 119 <= p.clock.monotonic() - began <= 130


@virtual
async def test_an_address_stays_while_its_claim_does() -> None:
    async with ipam_plane() as p:
        await p.have(pool(), claim("a"))
        await given(p, "a")
        await p.client.delete(IPAddress, Key("default", "a"))
        await p.settle()
        assert await addresses(p) == {"default/a": "10.0.0.10"}
        await p.client.delete(IPAddressClaim, Key("default", "a"))
        await p.gone(IPAddress, Key("default", "a"))


@virtual
async def test_an_address_is_kept_while_somebody_else_holds_the_claim() -> None:
    async with ipam_plane() as p:
        await p.have(pool(), claim("a", finalizers=["example.com/in-use"]))
        await given(p, "a")
        await p.client.delete(IPAddressClaim, Key("default", "a"))
        await p.settle()
        assert await addresses(p) == {"default/a": "10.0.0.10"}
        held = await p.client.get(IPAddressClaim, Key("default", "a"))
        left = [each for each in held.metadata.finalizers if each != "example.com/in-use"]
        await p.client.patch(IPAddressClaim, Key("default", "a"), MergePatch({"metadata": {"finalizers": left}}))
        await p.gone(IPAddressClaim, Key("default", "a"))
        assert await addresses(p) == {}


@virtual
async def test_a_claim_that_is_restored_takes_over_the_address_that_it_had() -> None:
    async with ipam_plane() as p:
        await p.have(pool(), claim("a"))
        await given(p, "a")
        # Somebody takes the finalizer away: the address is left without its claim.
        await p.client.patch(IPAddressClaim, Key("default", "a"), MergePatch({"metadata": {"finalizers": None}}))
        await p.client.delete(IPAddressClaim, Key("default", "a"))
        with_uid = (await p.have(claim("b"), claim("a")))[1]
        assert await given(p, "a", "b") == ["10.0.0.10", "10.0.0.11"]
        made = await p.client.get(IPAddress, Key("default", "a"))
        assert made.metadata.owner_references[0].uid == with_uid.uid


@virtual
async def test_an_address_whose_claim_vanished_is_given_back() -> None:
    async with ipam_plane() as p:
        await p.have(pool(), claim("a"))
        await given(p, "a")
        await p.stop()
        await p.client.patch(IPAddressClaim, Key("default", "a"), MergePatch({"metadata": {"finalizers": None}}))
        await p.client.delete(IPAddressClaim, Key("default", "a"))
        assert await addresses(p) == {"default/a": "10.0.0.10"}
        await begin(p)
        await p.settle()
        assert await addresses(p) == {"default/a": "10.0.0.10"}
        await p.gone(IPAddress, Key("default", "a"), timeout=90)


@virtual
async def test_an_address_that_was_made_by_hand_is_left_alone_and_reported() -> None:
    async with ipam_plane() as p:
        body = {
            "apiVersion": "ipam.cluster.x-k8s.io/v1beta2",
            "kind": "IPAddress",
            "metadata": {"name": "a"},
            "spec": {
                "address": "10.0.0.10",
                "prefix": 24,
                "claimRef": {"name": "a"},
                "poolRef": claim("a")["spec"]["poolRef"],
            },
        }
        await p.have(pool(), body, claim("a"), claim("b"))
        waiting = await p.until(IPAddressClaim, Key("default", "a"), lambda c: ready(c, "AllocationFailed"))
        assert "IPAddress default/a exists (10.0.0.10)" in message(waiting)
        assert await given(p, "b") == ["10.0.0.11"]


@virtual
async def test_claims_of_a_paused_cluster_wait_in_silence() -> None:
    async with ipam_plane() as p:
        cluster = {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": "one"},
            "spec": {"paused": True, "controlPlaneEndpoint": {"host": "10.0.0.2", "port": 6443}},
        }
        await p.have(cluster, pool(), claim("a", labels={"cluster.x-k8s.io/cluster-name": "one"}), claim("b"))
        await given(p, "b")
        await p.settle()
        assert list(await addresses(p)) == ["default/b"]
        kind = p.resource(cluster)
        await p.client.patch(kind, Key("default", "one"), MergePatch({"spec": {"paused": False}}))
        await given(p, "a")


@virtual
async def test_pools_of_other_providers_are_none_of_ours() -> None:
    async with ipam_plane() as p:
        foreign = claim("a")
        foreign["spec"]["poolRef"]["apiGroup"] = "ipam.metal3.io"
        await p.have(pool(), foreign)
        await p.settle()
        found = await p.client.get(IPAddressClaim, Key("default", "a"))
        assert found.metadata.finalizers == []
        assert found.status.conditions == []


@virtual
async def test_a_global_pool_serves_every_namespace_and_no_address_twice() -> None:
    async with ipam_plane() as p:
        await p.client.create({"metadata": {"name": "team"}}, kind=NAMESPACE)
        kind = "GlobalInClusterIPPool"
        await p.have(
            pool("all", "fd00::10-fd00::20", kind=kind, prefix=64, gateway="fd00::1"),
            claim("a", "all", kind),
            claim("a", "all", kind, namespace="team"),
        )
        for namespace in ("default", "team"):
            await p.until(IPAddressClaim, Key(namespace, "a"), ready)
        found = await addresses(p)
        assert sorted(found.values()) == ["fd00::10", "fd00::11"]
        counted = await p.until(
            GlobalInClusterIPPool, Key("", "all"), lambda o: o.status.addresses and o.status.addresses.used == 2
        )
        assert counted.status.addresses.total == 17


@virtual
async def test_a_pool_in_use_is_kept() -> None:
    async with ipam_plane() as p:
        await p.have(pool(), claim("a"))
        await given(p, "a")
        with pytest.raises(Invalid, match=r"10\.0\.0\.10 \(IPAddressClaim default/a\)"):
            await p.client.delete(InClusterIPPool, POOL)
        skip = {"metadata": {"annotations": {"ipam.cluster.x-k8s.io/skip-validate-delete-webhook": ""}}}
        await p.client.patch(InClusterIPPool, POOL, MergePatch(skip))
        await p.client.delete(InClusterIPPool, POOL)
        await p.settle()
        assert (await p.client.get(InClusterIPPool, POOL)).metadata.deletion_timestamp
        await p.have(claim("b"))
        waiting = await p.until(IPAddressClaim, Key("default", "b"), lambda c: ready(c, "PoolNotReady"))
        assert "is being deleted" in message(waiting)
        await p.client.delete(IPAddressClaim, Key("default", "a"))
        await p.gone(InClusterIPPool, POOL)


@virtual
async def test_a_pool_does_not_shrink_below_what_is_in_use() -> None:
    async with ipam_plane() as p:
        await p.have(pool(), claim("a"), claim("b"))
        await given(p, "a", "b")
        with pytest.raises(Invalid, match=r"10\.0\.0\.11 \(IPAddressClaim default/b\)"):
            await p.client.patch(InClusterIPPool, POOL, MergePatch({"spec": {"addresses": ["10.0.0.10"]}}))
        with pytest.raises(Invalid, match=r"10\.0\.0\.10 \(IPAddressClaim default/a\)"):
            await p.client.patch(InClusterIPPool, POOL, MergePatch({"spec": {"excludedAddresses": ["10.0.0.10"]}}))
        await p.client.patch(InClusterIPPool, POOL, MergePatch({"spec": {"addresses": ["10.0.0.10-10.0.0.11"]}}))


@virtual
async def test_what_was_chosen_and_is_no_object_yet_counts_as_in_use() -> None:
    async with ipam_plane(start=False) as p:
        made = (await p.have(pool(), claim("a", finalizers=[RELEASE_ADDRESS])))[1]
        chosen = {"metadata": {"annotations": {RESERVED: f'{{"10.0.0.12": "1700000000 {made.uid} default/a"}}'}}}
        await p.client.patch(InClusterIPPool, POOL, MergePatch(chosen))
        with pytest.raises(Invalid, match=r"10\.0\.0\.12 \(IPAddressClaim default/a\)"):
            await p.client.patch(InClusterIPPool, POOL, MergePatch({"spec": {"addresses": ["10.0.0.10"]}}))


@virtual
async def test_addresses_and_claims_are_what_they_are() -> None:
    async with ipam_plane() as p:
        await p.have(pool(), claim("a"))
        await given(p, "a")
        key = Key("default", "a")
        with pytest.raises(Invalid, match="delete its claim"):
            await p.client.patch(IPAddress, key, MergePatch({"spec": {"address": "10.0.0.99"}}))
        with pytest.raises(Invalid, match="delete the claim and create another one"):
            await p.client.patch(IPAddressClaim, key, MergePatch({"spec": {"poolRef": {"name": "other"}}}))
        stray = {
            "apiVersion": "ipam.cluster.x-k8s.io/v1beta2",
            "kind": "IPAddress",
            "metadata": {"name": "stray"},
            "spec": {
                "address": "10.0.0.50",
                "prefix": 24,
                "claimRef": {"name": "a"},
                "poolRef": {**claim("a")["spec"]["poolRef"], "name": "other"},
            },
        }
        with pytest.raises(Invalid, match="requests an address of InClusterIPPool machines"):
            await p.have(stray)


@virtual
async def test_a_steady_pool_writes_nothing() -> None:
    async with ipam_plane() as p:
        await p.have(pool(), claim("a"), claim("b"))
        await given(p, "a", "b")
        revision = await p.settle()
        await asyncio.sleep(3600)
        assert p.server.store.revision == revision
        await p.stop()
        await begin(p)
        assert await p.settle() == revision


@virtual
async def test_pools_that_share_addresses_are_warned_of() -> None:
    async with ipam_plane(start=False) as p:
        assert isinstance(p.client, LocalClient)
        warnings = p.client.warnings
        await p.have(pool("one", "10.0.0.10-10.0.0.20"))
        await p.have(pool("other", "10.0.0.18-10.0.0.30"))
        text = "spec.addresses: 10.0.0.18-10.0.0.20 is in InClusterIPPool default/one as well"
        assert [each for each in warnings.texts if each.startswith(text)]
        warnings.texts.clear()
        await p.client.create({"metadata": {"name": "team"}}, kind=NAMESPACE)
        apart = pool("one", "10.0.0.10-10.0.0.20")
        apart["metadata"]["namespace"] = "team"
        await p.have(
            apart, pool("beside", "10.0.0.40-10.0.0.50"), pool("six", "fd00::1-fd00::9", prefix=64, gateway="")
        )
        assert warnings.texts == []
