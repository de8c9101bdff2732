"""Addresses that are asked for, and those that machines make themselves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.sim.prism.power import learned6
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.world import default_world
from unit.sim.prism.prism_caller import Caller


def asking(call: Caller, address: str, subnet: str = "vm-network") -> list[dict[str, Any]]:
    config = {"shouldAssignIp": True, "ipAddress": {"value": address}}
    return [{"networkInfo": {"subnet": {"extId": call.subnet(subnet)}, "ipv4Config": config}}]


@pytest.mark.parametrize(
    ("address", "subnet", "said"),
    [
        ("10.0.200.20", "dhcp-network", "unmanaged network"),
        ("10.9.9.9", "vm-network", "outside of the subnet vm-network (10.0.0.0/22)"),
        ("10.0.0.1", "vm-network", "is in use"),  # the router's
        ("10.0.0.254", "vm-network", "is in use"),  # the DHCP server's
        ("10.0.3.255", "vm-network", "is in use"),  # everybody's
        ("fd00::5", "vm-network", "outside of the subnet"),
    ],
)
async def test_an_address_that_can_not_be_given_fails_the_task(address: str, subnet: str, said: str) -> None:
    call = Caller(Prism())
    task = await call.task(await call.create("web", nics=asking(call, address, subnet)))
    assert task["status"] == "FAILED"
    assert said in task["errorMessages"][0]["message"]
    assert [vm.name for vm in call.prism.world.vms] == []


async def test_an_address_outside_of_the_pools_is_given_who_asks_for_it() -> None:
    call = Caller(Prism())
    vm, _ = await call.vm(await call.make("web", on=True, nics=asking(call, "10.0.0.20")))
    info = vm["nics"][0]["nicNetworkInfo"]
    assert info["ipv4Config"]["ipAddress"]["value"] == "10.0.0.20"
    assert info["ipv4Info"]["learnedIpAddresses"][0]["value"] == "10.0.0.20"


async def test_machines_learn_ipv6_addresses_where_the_network_announces_some() -> None:
    file = default_world()
    subnets = tuple(
        msgspec.structs.replace(each, ipv6="fd00:14::/64") if each.name == "vm-network" else each
        for each in file.subnets
    )
    call = Caller(Prism(msgspec.structs.replace(file, subnets=subnets)))
    ext_id = await call.make("web", on=True)
    vm, _ = await call.vm(ext_id)
    found = [each["value"] for each in vm["nics"][0]["nicNetworkInfo"]["ipv6Info"]["learnedIpv6Addresses"]]
    assert found[0].startswith("fd00:14::")
    assert found[1].startswith("fe80::")
    assert "ipv6Info" not in vm["nics"][0]["networkInfo"]
    await call.power(ext_id, "power-off")
    vm, _ = await call.vm(ext_id)
    assert "ipv6Info" not in vm["nics"][0]["nicNetworkInfo"]


def test_an_address_is_made_of_the_prefix_and_the_mac() -> None:
    assert learned6("fd00:14::/64", "50:6b:8d:00:00:01") == ("fd00:14::526b:8dff:fe00:1", "fe80::526b:8dff:fe00:1")
    assert learned6("", "50:6b:8d:00:00:01") == ()
