"""Addresses of tenant clusters: of the API server from the platform's pool, of load balancers from ranges and pools."""

from __future__ import annotations

from typing import Any

from homeport.api.butler.v1alpha1 import IPAllocation, NetworkPool
from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from homeport.runtime.testing import virtual
from scenario.butler.stage import butler, tenants

POOL = Resource("metallb.io", "v1beta1", "IPAddressPool", "ipaddresspools")
ADVERTISEMENT = Resource("metallb.io", "v1beta1", "L2Advertisement", "l2advertisements")
INSIDE = "metallb-system"


def platform(range_: str) -> dict[str, Any]:
    return butler("ButlerConfig", "butler", "", {"platform": {"metalLBPool": range_}})


@virtual
async def test_api_servers_have_addresses_of_the_platform_s_pool_and_give_them_back() -> None:
    async with tenants("harvester") as stage:
        await stage.have(platform("10.40.0.30-10.40.0.31"))
        await stage.have(stage.tenant("one"), stage.tenant("two"))
        found = [(await stage.ready(name)).status.control_plane_endpoint for name in ("one", "two")]
        assert sorted(found) == ["10.40.0.30:6443", "10.40.0.31:6443"]
        # An allocation that somebody removes by force comes back with the address that the API server has.
        second = Key(SYSTEM_NAMESPACE, "default-two-endpoint")
        taken = await stage.client.get(IPAllocation, second)
        await stage.client.delete(IPAllocation, second)
        await stage.client.patch(IPAllocation, second, MergePatch({"metadata": {"finalizers": None}}))
        again = await stage.plane.until(IPAllocation, second, lambda found: found.status.phase == "Allocated", 900)
        assert (again.metadata.uid != taken.metadata.uid, again.status.start_address) == (
            True,
            taken.status.start_address,
        )
        await stage.have(stage.tenant("three"))
        await stage.waits("three", "PoolExhausted", "NetworkPool butler-system/platform", "0 of 2 are free")
        assert not [each for each in await stage.vms() if each.startswith("three")]
        await stage.delete("one")
        await stage.gone("one")
        assert (await stage.ready("three")).status.control_plane_endpoint == found[0]


@virtual
async def test_a_range_of_the_tenant_reaches_metallb_without_the_address_of_the_api_server() -> None:
    async with tenants("harvester") as stage:
        await stage.have(stage.tenant("shop", addons={"loadBalancer": {"addressPool": "10.40.1.0-10.40.1.50"}}))
        await stage.ready("shop")
        client = await stage.inside("shop")
        pool = await client.get(POOL, Key(INSIDE, "default-pool"))
        assert pool["spec"]["addresses"] == ["10.40.1.0-10.40.1.50"]
        advertisement = await client.get(ADVERTISEMENT, Key(INSIDE, "default"))
        assert advertisement["spec"]["ipAddressPools"] == ["default-pool"]


@virtual
async def test_pools_of_the_provider_feed_load_balancers_and_machines_control_planes() -> None:
    async with tenants("harvester") as stage:
        lan = butler(
            "NetworkPool", "lan", SYSTEM_NAMESPACE, {"cidr": "10.40.2.0/24", "reserved": [{"cidr": "10.40.2.1"}]}
        )
        spec = {"network": {"mode": "ipam", "poolRefs": [{"name": "lan"}], "loadBalancer": {"defaultPoolSize": 4}}}
        await stage.have(lan)
        await stage.configure(spec)
        await stage.have(stage.tenant("shop", controlPlane={"type": "standalone"}))
        made = await stage.ready("shop")
        assert made.status.control_plane_endpoint == "10.40.2.2:6443"
        assert made.status.lb_allocation_ref is not None
        allocation = await stage.client.get(IPAllocation, Key(SYSTEM_NAMESPACE, made.status.lb_allocation_ref.name))
        assert (allocation.status.start_address, allocation.status.allocated_count) == ("10.40.2.3", 4)
        pool = await (await stage.inside("shop")).get(POOL, Key(INSIDE, "default-pool"))
        assert pool["spec"]["addresses"] == ["10.40.2.3-10.40.2.6"]
        await stage.delete("shop")
        await stage.gone("shop")
        left = await stage.client.get(NetworkPool, Key(SYSTEM_NAMESPACE, "lan"))
        assert left.status.allocated_ips == 0


@virtual
async def test_a_control_plane_on_machines_says_where_its_address_should_come_from() -> None:
    async with tenants("harvester") as stage:
        await stage.have(stage.tenant("shop", controlPlane={"type": "standalone"}))
        text = await stage.waits("shop", "NoEndpointPool", kind="NetworkReady")
        assert "set spec.platform.metalLBPool of ButlerConfig butler" in text


@virtual
async def test_the_condition_says_that_there_are_no_addresses_for_load_balancers() -> None:
    async with tenants("harvester") as stage:
        await stage.have(stage.tenant("shop"))
        made = await stage.ready("shop")
        found = condition.find(made.status.conditions, "NetworkReady") or {}
        assert (found["status"], "no addresses for load balancers are set" in found["message"]) == ("True", True)
        body = {"spec": {"addons": {"loadBalancer": {"provider": "metallb", "addressPool": "10.40.1.0-10.40.1.9"}}}}
        await stage.client.patch(type(made), Key("default", "shop"), MergePatch(body))
        await stage.have(platform("10.40.0.30-10.40.0.31"))  # for new clusters: an API server keeps its address
        again = await stage.ready("shop")
        assert again.status.control_plane_endpoint == made.status.control_plane_endpoint
        assert again.status.observed_state is not None
        assert {each.name for each in again.status.observed_state.addons} == {"cni", "loadBalancer"}
