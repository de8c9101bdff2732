"""Addresses of clusters from ClusterIPAMClaims."""

from __future__ import annotations

from ipaddress import IPv4Address

from homeport.api.ipam.v1alpha2 import InClusterIPPool
from homeport.api.k0rdent.v1beta1 import ClusterIPAM, ClusterIPAMClaim
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from scenario.k0rdent.stage import SPACE, credential, deployments, hosted, k0rdent, secret

NODES = {"cidr": "10.1.0.0/20", "gateway": "10.1.0.1", "ipAddresses": ["10.1.1.50-10.1.1.60"]}


@virtual
async def test_machines_have_addresses_of_the_claim_which_goes_with_the_cluster() -> None:
    async with deployments() as stage:
        await stage.have(secret(), credential())
        body = hosted(workersNumber=1)
        body["spec"]["ipamClaim"] = {"spec": {"provider": "in-cluster", "nodeNetwork": NODES}}
        await stage.have(body)
        name = body["metadata"]["name"]
        made = await stage.ready(name)
        assert condition.is_true(made.status.conditions, "ClusterIPAMClaimReady")
        ipam: ClusterIPAM = await stage.client.get(ClusterIPAM, Key(SPACE, name))
        assert ipam.status.phase == "Bound"
        assert [each.name for each in ipam.status.provider_data] == ["nodeNetwork"]
        machine = (await stage.machines(name))[0]
        addresses = [IPv4Address(each.address) for each in machine.status.addresses if each.type == "InternalIP"]
        assert IPv4Address("10.1.1.50") <= addresses[0] <= IPv4Address("10.1.1.60")
        await stage.delete(name)
        await stage.gone(name)
        for kind, key in ((ClusterIPAMClaim, name), (ClusterIPAM, name), (InClusterIPPool, f"{name}-node")):
            await stage.plane.gone(kind, Key(SPACE, key), 120.0)


@virtual
async def test_a_claim_that_can_not_be_bound_says_why_also_on_the_cluster() -> None:
    async with deployments() as stage:
        await stage.have(
            secret(),
            credential(),
            k0rdent("ClusterIPAMClaim", "wrong", {"provider": "in-cluster", "nodeNetwork": {"cidr": "10.1.0.0/99"}}),
            k0rdent("ClusterIPAMClaim", "foreign", {"provider": "ipam-infoblox", "nodeNetwork": NODES}),
        )
        body = hosted()
        body["spec"]["ipamClaim"] = {"ref": "wrong"}
        await stage.have(body)
        name = body["metadata"]["name"]
        await stage.says(name, '"10.1.0.0/99" is not a network', kind="ClusterIPAMClaimReady")
        await stage.patch(name, {"ipamClaim": {"ref": "foreign"}})
        await stage.says(name, "ipam-infoblox is not supported: use in-cluster", kind="ClusterIPAMClaimReady")
        await stage.patch(name, {"ipamClaim": {"ref": "none"}})
        await stage.says(name, 'ClusterIPAMClaim "none" does not exist', kind="ClusterIPAMClaimReady")
        assert not stage.vms()
