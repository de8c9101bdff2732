"""Addresses from pools on Prism Central, over both of its APIs."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from homeport.api.ipam.v1alpha2 import InClusterIPPool, PoolSpec
from homeport.api.ipam.v1beta2 import IPPoolReference
from homeport.infra.error import Exhausted, Misconfigured, Rejected, Taken
from homeport.infra.preflight.pool import pool_with
from homeport.infra.protocol import StaticAddress
from homeport.infra.vendor.task import Task
from homeport.machinery.address import AddressSet
from homeport.providers.nutanix.address import check_pools, explained, misfit, plan_nics
from homeport.providers.nutanix.admission import validate_cluster, validate_machine
from homeport.providers.nutanix.client import failed_task
from homeport.providers.nutanix.cloud.config import parse_config
from homeport.providers.nutanix.prism.record import NewNic, NewVm, Prism, Subnet
from homeport.providers.nutanix.prism.v4_vm import read_vm
from homeport.providers.nutanix.spelling import normalise_machine
from unit.providers.nutanix.prism_site import Site, prism_site

MANAGED = Subnet("s-1", "managed", "VLAN", cidr="10.0.0.0/24")
PLAIN = Subnet("s-2", "plain", "VLAN")
GIVEN = StaticAddress("10.0.0.20", 24, "10.0.0.1", "InClusterIPPool machines")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with prism_site(tmp_path) as made:
        yield made


async def over(prism: Prism, task_id: str) -> Task:
    while True:
        (task,) = await prism.tasks([task_id])
        if task.status in ("succeeded", "failed"):
            return task


async def vm_with(prism: Prism, address: str, subnet: str = "vm-network") -> NewVm:
    element = next(each for each in await prism.elements() if each.name == "nutanix-cluster-1")
    found = next(each for each in await prism.subnets() if each.name == subnet)
    return NewVm("one", element.id, 1, 1, 2 << 30, [], [NewNic(found.id, address)], [])


@pytest.mark.parametrize("version", ["v4", "v3"])
async def test_the_address_that_was_asked_for_is_given(site: Site, version: str) -> None:
    prism = await site.verbs(version)
    assert (
        await over(prism, await prism.create_vm(await vm_with(prism, "10.0.0.20"), str(uuid.uuid4())))
    ).status == "succeeded"
    (vm,) = await prism.find_vms(names=["one"])
    assert vm.addresses == ("10.0.0.20",)


@pytest.mark.parametrize("version", ["v4", "v3"])
@pytest.mark.parametrize(
    ("address", "subnet", "kind"),
    [
        ("10.0.0.20", "vm-network", Taken),
        ("10.0.0.1", "vm-network", Taken),
        ("10.9.9.9", "vm-network", Misconfigured),
        ("10.0.200.20", "dhcp-network", Misconfigured),
    ],
)
async def test_what_prism_says_against_it_is_understood(
    site: Site, version: str, address: str, subnet: str, kind: type[Exception]
) -> None:
    prism = await site.verbs(version)
    await over(
        prism, await prism.create_vm(replace(await vm_with(prism, "10.0.0.20"), name="other"), str(uuid.uuid4()))
    )
    task = await over(prism, await prism.create_vm(await vm_with(prism, address, subnet), str(uuid.uuid4())))
    assert task.status == "failed"
    assert type(failed_task(task.error, task.codes, "VM one")) is kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # As clusters were seen to put it.
        ("Failed to create VM: (15, Cannot assign IP address on an unmanaged network)", Misconfigured),
        ("Cannot allocate address! No DHCP pool is defined or the DHCP pool is exhausted.", Exhausted),
        ("IP address 10.0.0.20 is already in use", Taken),
        ("The IP address 10.0.0.20 is already assigned to another VM", Taken),
        ("Something else", Rejected),
    ],
)
def test_failures_about_addresses_are_distinguished(text: str, kind: type[Exception]) -> None:
    assert type(failed_task(text, (), "VM one")) is kind


def test_cards_get_addresses_in_the_order_of_their_subnets() -> None:
    assert plan_nics([MANAGED, PLAIN], [GIVEN]) == [NewNic("s-1", "10.0.0.20"), NewNic("s-2")]
    assert plan_nics([MANAGED], []) == [NewNic("s-1")]
    with pytest.raises(Misconfigured, match="2 pools for 1 network cards"):
        plan_nics([MANAGED], [GIVEN, GIVEN])
    with pytest.raises(
        Misconfigured, match=r"spec.addressesFromPools\[0\]: subnet 'plain' has no IP address management"
    ):
        plan_nics([PLAIN], [GIVEN])


@pytest.mark.parametrize(
    ("subnet", "addresses", "reason"),
    [
        (MANAGED, "10.0.0.20-10.0.0.30", ""),
        (MANAGED, "10.0.0.250-10.0.1.5", "AddressOutsideSubnet"),
        (PLAIN, "10.0.0.20", "SubnetNotManaged"),
        (MANAGED, "fd00::10-fd00::20", "AddressFamilyNotSupported"),
    ],
)
def test_a_pool_must_fit_its_subnet(subnet: Subnet, addresses: str, reason: str) -> None:
    found = misfit(subnet, AddressSet.parse([addresses]), "the pool")
    assert (found[0] if found else "") == reason


def test_who_has_the_address_already_is_a_matter_for_people() -> None:
    error = explained(Taken("VM one: IP address 10.0.0.20 is in use", code="X"), [GIVEN])
    assert "10.0.0.20 of InClusterIPPool machines" in error.message
    assert "exclude it from the pool" in error.message
    other = Rejected("no")
    assert explained(other, [GIVEN]) is other


def pool(*addresses: str) -> InClusterIPPool:
    made = InClusterIPPool(spec=PoolSpec(addresses=list(addresses), prefix=24))
    made.metadata.name, made.metadata.namespace = "machines", "default"
    return made


OURS = IPPoolReference(api_group="ipam.cluster.x-k8s.io", kind="InClusterIPPool", name="machines")
FOREIGN = IPPoolReference(api_group="ipam.metal3.io", kind="IPPool", name="machines")


def reasons(found: InClusterIPPool | None, subnet: Subnet | None, *refs: IPPoolReference) -> list[str]:
    checks = check_pools("default", refs or (OURS,), [subnet], lambda *_: found, "References", "template")
    return [each.reason for each in checks]


def test_pools_are_looked_at_before_there_is_a_machine() -> None:
    assert reasons(pool("10.0.0.10-10.0.0.20"), MANAGED) == []
    assert reasons(None, MANAGED) == ["WaitingForPool"]
    assert reasons(pool("ten"), MANAGED) == ["WaitingForPool"]
    assert reasons(pool("10.0.0.10"), PLAIN) == ["SubnetNotManaged"]
    assert reasons(pool("10.0.1.10"), MANAGED) == ["AddressOutsideSubnet"]
    assert reasons(None, PLAIN, FOREIGN) == ["SubnetNotManaged"]
    assert reasons(None, MANAGED, FOREIGN) == []
    assert reasons(pool("10.0.0.10"), None) == []
    assert reasons(pool("10.0.0.10"), MANAGED, OURS, OURS) == ["InvalidConfiguration"]


def test_the_pool_that_has_the_address_of_the_control_plane_is_found() -> None:
    there = pool("10.0.0.10-10.0.0.20")
    assert pool_with("default", [FOREIGN, OURS], lambda *_: there, "10.0.0.15") == "InClusterIPPool machines"
    assert pool_with("default", [FOREIGN, OURS], lambda *_: there, "10.0.0.21") == ""
    assert pool_with("default", [OURS], lambda *_: there, "fd00::15") == ""


def test_the_group_of_a_pool_may_be_left_out_and_pools_need_cards() -> None:
    spec = {"subnet": ["one"], "addressesFromPools": [{"kind": "InClusterIPPool", "name": "a"}]}
    normalise_machine(spec)
    assert spec["addressesFromPools"] == [{"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "a"}]
    spec["addressesFromPools"] *= 2
    causes = validate_machine({"spec": spec}, None)
    assert "2 pools for 1 network cards" in next(
        each.message for each in causes if each.field == "spec.addressesFromPools"
    )


def test_learned_ipv6_addresses_are_read_without_those_of_the_link() -> None:
    info = {
        "ipv4Config": {"ipAddress": {"value": "10.0.0.20"}},
        "ipv4Info": {"learnedIpAddresses": [{"value": "10.0.0.20"}, {"value": "169.254.1.1"}]},
        "ipv6Info": {"learnedIpv6Addresses": [{"value": "fe80::1"}, {"value": "fd00::20"}]},
    }
    vm = read_vm({"extId": "v", "nics": [{"nicNetworkInfo": info}]})
    assert vm.addresses == ("10.0.0.20", "fd00::20")


@pytest.mark.parametrize("host", ["10.0.0.100", "fd00::100", "api.example.com", ""])
def test_the_control_plane_may_be_called_by_an_address_of_either_family_or_a_name(host: str) -> None:
    assert validate_cluster({"spec": {"controlPlaneEndpoint": {"host": host, "port": 6443}}}, None) == []


@pytest.mark.parametrize("host", ["[fd00::100]", "fd00::100/64", "https://api.example.com", "10.0.0.100:6443"])
def test_what_is_more_than_a_host_is_refused(host: str) -> None:
    (cause,) = validate_cluster({"spec": {"controlPlaneEndpoint": {"host": host, "port": 6443}}}, None)
    assert cause.field == "spec.controlPlaneEndpoint.host"


@pytest.mark.parametrize(
    ("entry", "address", "ignored"),
    [
        ("fd00::10", "fd00:0::10", True),
        ("fd00::10-fd00::1f", "fd00::1a", True),
        ("fd00::/64", "fd00::ffff", True),
        ("fd00::/64", "fd01::1", False),
        ("fd00::/64", "10.0.0.1", False),
        ("10.0.0.0/24", "fd00::1", False),
    ],
)
def test_addresses_of_nodes_may_be_ignored_in_either_family(entry: str, address: str, ignored: bool) -> None:
    central = {"address": "pc", "credentialRef": {"kind": "Secret", "name": "s"}}
    config = parse_config(json.dumps({"prismCentral": central, "ignoredNodeIPs": [entry]}), "kube-system")
    assert config.ignores(address) is ignored
