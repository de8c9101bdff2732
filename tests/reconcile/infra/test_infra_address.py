"""Claims of machines: made once, waited for, replaced when they were wrong, and let go at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim, IPPoolReference
from homeport.api.nutanix.v1beta1 import NutanixMachine
from homeport.capi.definition.kind import KINDS, render_definition
from homeport.client.protocol import Key, MergePatch, Query
from homeport.infra.machine.address import IN_USE, Claims, takes_addresses
from homeport.infra.protocol import StaticAddress
from homeport.providers.nutanix.definition import definitions
from homeport.runtime.outcome import Wait
from homeport.runtime.testing import Plane, plane
from present import present

POOL = {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "machines"}
OTHER = {**POOL, "kind": "GlobalInClusterIPPool", "name": "storage"}


class Loop:
    """Holds or releases once, from fresh caches."""

    def __init__(self, p: Plane) -> None:
        self._plane = p
        self._machines = p.manager.informers.get(NutanixMachine).cache
        self._claims = Claims(p.manager, "nutanix", NutanixMachine)
        self.result: Any = None
        self.release = False

    async def reconcile(self, key: Key) -> None:
        infra = self._machines.get(key)
        assert infra is not None
        cluster = Cluster()
        cluster.metadata.name, cluster.metadata.namespace = "one", "default"
        if self.release:
            await self._claims.release(infra)
        else:
            self.result = await self._claims.hold(infra, cluster)

    async def hold(self) -> Any:
        self.release = False
        done = await self._plane.reconcile(self, Key("default", "m"))
        assert done.error is None, done.error
        return self.result

    async def let_go(self) -> None:
        self.release = True
        assert (await self._plane.reconcile(self, Key("default", "m"))).error is None


@asynccontextmanager
async def loop(*pools: dict[str, str]) -> AsyncIterator[tuple[Plane, Loop]]:
    newest = [replace(each, versions=each.versions[-1:]) for each in KINDS]
    needed = ("IPAddress", "IPAddressClaim")
    crds = [render_definition(each) for each in newest if each.versions[-1].__resource__.kind in needed]
    async with plane(crds=[*crds, *definitions()]) as p:
        await p.have(machine(*pools))
        yield p, Loop(p)


def machine(*pools: dict[str, str]) -> dict[str, Any]:
    sizes = {"vcpuSockets": 1, "vcpusPerSocket": 1, "memorySize": "4Gi", "systemDiskSize": "40Gi"}
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "NutanixMachine",
        "metadata": {"name": "m"},
        "spec": {**sizes, "addressesFromPools": list(pools)},
    }


async def give(p: Plane, name: str, address: str) -> None:
    """As the keeper of a pool does."""
    ref = present((await p.client.get(IPAddressClaim, Key("default", name))).spec.pool_ref)
    pool = {"apiGroup": ref.api_group, "kind": ref.kind, "name": ref.name}
    spec = {"address": address, "prefix": 24, "gateway": "10.0.0.1", "claimRef": {"name": name}, "poolRef": pool}
    body = {
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2",
        "kind": "IPAddress",
        "metadata": {"name": name},
        "spec": spec,
    }
    await p.have(body)
    status = {"status": {"addressRef": {"name": name}}}
    await p.client.patch(IPAddressClaim, Key("default", name), MergePatch(status), subresource="status")


async def claims(p: Plane) -> dict[str, IPAddressClaim]:
    return {each.metadata.name: each for each in (await p.client.list(IPAddressClaim, Query())).items}


async def test_there_is_a_claim_for_each_pool_and_addresses_come_in_their_order() -> None:
    async with loop(POOL, OTHER) as (p, loop_):
        waiting = await loop_.hold()
        assert isinstance(waiting, Wait)
        made = await claims(p)
        assert sorted(made) == ["m-0", "m-1"]
        assert made["m-1"].spec.pool_ref == IPPoolReference(
            api_group="ipam.cluster.x-k8s.io", kind="GlobalInClusterIPPool", name="storage"
        )
        assert made["m-0"].metadata.finalizers == [IN_USE]
        assert made["m-0"].metadata.labels == {"cluster.x-k8s.io/cluster-name": "one"}
        await give(p, "m-1", "10.0.1.5")
        waiting = await loop_.hold()
        assert "IPAddressClaim m-0 has no address of InClusterIPPool machines yet" in waiting.message
        await give(p, "m-0", "10.0.0.5")
        assert await loop_.hold() == (
            StaticAddress("10.0.0.5", 24, "10.0.0.1", "InClusterIPPool machines"),
            StaticAddress("10.0.1.5", 24, "10.0.0.1", "GlobalInClusterIPPool storage"),
        )
        assert await claims(p) != {}


async def test_what_the_keeper_of_the_pool_says_is_reported() -> None:
    async with loop(POOL) as (p, loop_):
        await loop_.hold()
        said = {
            "type": "Ready",
            "status": "False",
            "reason": "PoolExhausted",
            "message": "nothing is left",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        patch = MergePatch({"status": {"conditions": [said]}})
        await p.client.patch(IPAddressClaim, Key("default", "m-0"), patch, subresource="status")
        waiting = await loop_.hold()
        assert (waiting.reason, waiting.warning) == ("PoolExhausted", True)
        assert waiting.message == "IPAddressClaim m-0: nothing is left"


async def test_a_pool_that_is_corrected_gets_a_claim_of_its_own() -> None:
    async with loop(POOL) as (p, loop_):
        await loop_.hold()
        first = (await claims(p))["m-0"].metadata.uid
        patch = MergePatch({"spec": {"addressesFromPools": [OTHER]}})
        await p.client.patch(NutanixMachine, Key("default", "m"), patch)
        assert "created again" in (await loop_.hold()).message
        await loop_.hold()
        found = (await claims(p))["m-0"]
        assert found.metadata.uid != first
        assert found.spec.pool_ref is not None
        assert found.spec.pool_ref.name == "storage"


async def test_a_claim_of_somebody_else_is_left_alone() -> None:
    async with loop(POOL) as (p, loop_):
        body = {"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddressClaim", "metadata": {"name": "m-0"}}
        await p.have({**body, "spec": {"poolRef": POOL}})
        waiting = await loop_.hold()
        assert waiting.reason == "AddressClaimTaken"
        await loop_.let_go()
        assert list(await claims(p)) == ["m-0"]


async def test_claims_are_deleted_and_let_go_when_the_machine_is_gone() -> None:
    async with loop(POOL, OTHER) as (p, loop_):
        await loop_.hold()
        # One is deleted before its time: it stays, for the machine has the address.
        await p.client.delete(IPAddressClaim, Key("default", "m-0"))
        assert sorted(await claims(p)) == ["m-0", "m-1"]
        await loop_.let_go()
        assert await claims(p) == {}
        await loop_.let_go()


async def test_a_machine_without_pools_claims_nothing() -> None:
    async with loop() as (p, loop_):
        assert await loop_.hold() == ()
        assert await claims(p) == {}
        assert (await p.client.list(IPAddress, Query())).items == []


def test_kinds_say_whether_they_take_addresses() -> None:
    assert takes_addresses(NutanixMachine)
    assert not takes_addresses(Cluster)
