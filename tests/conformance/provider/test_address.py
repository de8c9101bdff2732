"""Addresses from pools: a machine has the one that its claim was given, and the claim stays until the machine is gone.

The pool is kept by the test: any provider of addresses may answer claims.
"""

from __future__ import annotations

from conformance.provider.provider_plane import NAMESPACE, ProviderPlane, key, provider_plane
from conformance.provider.vendor import Open
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim
from homeport.client.protocol import MergePatch, Query
from homeport.infra.machine.address import IN_USE
from homeport.runtime.testing import virtual

POOL = {"apiGroup": "ipam.example.com", "kind": "Range", "name": "machines"}


async def give(g: ProviderPlane, claim: str, address: str) -> None:
    await g.plane.until(IPAddressClaim, key(claim), lambda c: IN_USE in c.metadata.finalizers, 300)
    spec = {"address": address, "prefix": 24, "claimRef": {"name": claim}, "poolRef": POOL}
    body = {"metadata": {"name": claim, "namespace": NAMESPACE}, "spec": spec}
    await g.client.create(body, kind=IPAddress.__resource__)
    patch = MergePatch({"status": {"addressRef": {"name": claim}}})
    await g.client.patch(IPAddressClaim, key(claim), patch, subresource="status")


async def claims(g: ProviderPlane) -> list[str]:
    return [each.metadata.name for each in (await g.client.list(IPAddressClaim, Query(namespace=NAMESPACE))).items]


@virtual
async def test_a_machine_waits_for_its_address_and_has_it(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        address = g.vendor.free_addresses[0]
        await g.cluster()
        await g.machine("a", pools=[POOL])
        await g.machine_says("a", "WaitingForIPAddress", "a-0")
        assert g.vendor.machines() == []
        await give(g, "a-0", address)
        (machine,) = await g.ready("a")
        assert g.found("a").addresses == (address,)
        assert machine.status.addresses[0].address == address
        assert g.vendor.created == ["a"]


@virtual
async def test_a_claim_outlives_the_machine_whatever_is_deleted_first(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        address = g.vendor.free_addresses[0]
        await g.cluster()
        await g.machine("a", pools=[POOL])
        await give(g, "a-0", address)
        await g.ready("a")
        await g.client.delete(IPAddressClaim, key("a-0"))
        g.vendor.hang_operation("delete", 60.0)
        await g.delete("a")
        await g.machine_says("a", "Deleting")
        await g.pass_time(20.0)
        assert await claims(g) == ["a-0"]
        assert g.found("a").addresses
        await g.deleted("a")
        assert g.vendor.machines() == []
        assert await claims(g) == []


@virtual
async def test_an_address_that_somebody_else_has_is_reported(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        address = g.vendor.free_addresses[0]
        await g.cluster()
        for name in ("a", "b"):
            await g.machine(name, pools=[POOL])
            await give(g, f"{name}-0", address)
            if name == "a":
                await g.ready("a")
        await g.machine_says("b", "InUse", address, "Range machines")
        await g.delete("a")
        await g.deleted("a")
        await g.ready("b", timeout=3600.0)
