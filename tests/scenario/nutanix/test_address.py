"""Machines whose addresses come from a pool, and machines with addresses of both families."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import repeat
from typing import Any

import msgspec
import pytest

from campaign import CAMPAIGN
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.ipam.v1alpha2 import GROUP, InClusterIPPool
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.client.protocol import Key, MergePatch, Query
from homeport.infra.machine.address import IN_USE
from homeport.runtime.manager import Manager
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import NODE
from homeport.sim.prism.power import addresses_of
from homeport.sim.prism.world import WorldFile, default_world
from present import present
from scenario.capi.fault import Killer
from scenario.nutanix import manifest
from scenario.nutanix.site import SECRET, Site, nutanix_site

NAME = "one"
SEEDS = range(12) if CAMPAIGN else range(1)
REF = {"apiGroup": GROUP, "kind": "InClusterIPPool", "name": "machines"}


def pool(*addresses: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "InClusterIPPool",
        "metadata": {"name": "machines", "namespace": "default"},
        "spec": {"addresses": list(addresses), "prefix": 22, "gateway": "10.0.0.1", **spec},
    }


def from_pool(objects: list[dict[str, Any]], subnet: str = "vm-network") -> list[dict[str, Any]]:
    """With all machines' addresses from the pool."""
    for each in objects:
        if each["kind"] == "NutanixMachineTemplate":
            each["spec"]["template"]["spec"] |= {
                "addressesFromPools": [REF],
                "subnet": [{"type": "name", "name": subnet}],
            }
    return objects


async def given(site: Site) -> dict[str, str]:
    return {each.metadata.name: each.spec.address for each in await site.list(IPAddress)}


def by_vm(site: Site) -> dict[str, tuple[str, ...]]:
    return {vm.name: addresses_of(vm) for vm in site.vms()}


class Witness:
    """No address twice, and none goes while a VM has it. Every moment counts, not only the end."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._held: dict[str, str] = {}
        self.wrong: list[str] = []

    async def watch(self) -> None:
        async with self._site.client.watch(IPAddress, Query(namespace="default"), initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                name, address = event.object.metadata.name, event.object.spec.address
                if event.type == "DELETED":
                    self._held.pop(name, None)
                    self.wrong += [
                        f"{vm.name} still has {address}" for vm in self._site.vms() if address in addresses_of(vm)
                    ]
                    continue
                self.wrong += [
                    f"{name} and {each}: {address}" for each, a in self._held.items() if a == address and each != name
                ]
                self._held[name] = address


@asynccontextmanager
async def witnessed(**options: Any) -> AsyncIterator[Site]:
    async with nutanix_site(**options) as site:
        witness = Witness(site)
        task = asyncio.create_task(witness.watch())
        try:
            yield site
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert witness.wrong == []


@pytest.mark.parametrize("v4", [True, False])
def test_every_machine_gets_its_address_from_the_pool_and_gives_it_back(v4: bool) -> None:
    _life(v4)


@virtual
async def _life(v4: bool) -> None:
    async with witnessed(v4=v4) as site:
        await site.have(pool("10.0.0.20-10.0.0.24"), *from_pool(manifest.cluster_objects(NAME, 1, 2)))
        machines = await site.running(NAME, 1, 2)
        held = await given(site)
        assert sorted(held.values()) == ["10.0.0.20", "10.0.0.21", "10.0.0.22"]
        for each in machines:
            name = present(each.spec.infrastructure_ref).name
            address = held[f"{name}-0"]
            assert by_vm(site)[each.metadata.name] == (address,)
            assert [a.address for a in each.status.addresses if a.type == "InternalIP"] == [address]
            claim = await site.get(IPAddressClaim, f"{name}-0")
            assert [(o.kind, o.name) for o in claim.metadata.owner_references] == [("NutanixMachine", name)]
            assert IN_USE in claim.metadata.finalizers
            assert claim.spec.cluster_name == NAME
        await site.until(InClusterIPPool, "machines", lambda p: p.status.addresses.free == 2)
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.until(InClusterIPPool, "machines", lambda p: p.status.addresses.free == 5)
        assert await site.list(IPAddressClaim) == []
        await site.empty(NAME)


@virtual
async def test_an_exhausted_pool_is_reported_on_the_cluster_and_a_larger_one_lets_it_go_on() -> None:
    async with witnessed() as site:
        await site.have(pool("10.0.0.20-10.0.0.21"), *from_pool(manifest.cluster_objects(NAME, 1, 2)))
        text = "all 2 addresses of InClusterIPPool default/machines are in use"
        await site.condition(Cluster, NAME, "Available", "False", text, timeout=900)
        (waiting,) = [m for m in await site.list(NutanixMachine) if not m.status.initialization.provisioned]
        await site.condition(NutanixMachine, waiting.metadata.name, "Ready", "False", "PoolExhausted", text)
        assert len(site.vms()) == 2
        await site.patch(InClusterIPPool, "machines", {"spec": {"addresses": ["10.0.0.20-10.0.0.22"]}})
        await site.running(NAME, 1, 2)
        assert sorted((await given(site)).values()) == ["10.0.0.20", "10.0.0.21", "10.0.0.22"]


@virtual
async def test_a_rollout_uses_the_addresses_again_that_were_given_back() -> None:
    async with witnessed() as site:
        await site.have(pool("10.0.0.20-10.0.0.23"), *from_pool(manifest.cluster_objects(NAME, 1, 2)))
        await site.running(NAME, 1, 2)
        before = {each.metadata.name for each in await site.list(Machine)}
        spec = manifest.machine_spec("8Gi", addressesFromPools=[REF])
        await site.have(manifest.template("bigger", spec))
        ref = {"template": {"spec": {"infrastructureRef": {"name": "bigger"}}}}
        await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": ref})
        await site.until(
            MachineDeployment,
            f"{NAME}-md-0",
            lambda m: (
                m.status.observed_generation == m.metadata.generation
                and m.status.up_to_date_replicas == 2 == m.status.ready_replicas == m.status.replicas
            ),
            timeout=1800,
        )
        after = {each.metadata.name for each in await site.list(Machine)}
        assert len(after - before) == 2
        assert len(set((await given(site)).values())) == 3


@virtual
async def test_the_address_of_the_control_plane_may_not_be_in_the_pool() -> None:
    async with nutanix_site() as site:
        await site.have(pool("10.0.0.90-10.0.0.105"), *from_pool(manifest.cluster_objects(NAME, 1, 0)))
        words = ("EndpointInPool", "10.0.0.100 is in InClusterIPPool machines")
        await site.condition(NutanixCluster, NAME, "ControlPlaneEndpointFree", "False", *words)
        assert site.vms() == []
        assert await site.list(IPAddressClaim) == []
        await site.patch(InClusterIPPool, "machines", {"spec": {"excludedAddresses": ["10.0.0.100"]}})
        await site.running(NAME, 1)


@virtual
async def test_what_a_subnet_can_not_give_is_refused_before_there_is_a_machine() -> None:
    async with nutanix_site() as site:
        await site.have(*from_pool(manifest.cluster_objects(NAME, 1, 0), "dhcp-network"))
        text = "InClusterIPPool default/machines does not exist yet"
        await site.condition(NutanixCluster, NAME, "ReferencesResolved", "False", "WaitingForPool", text)
        await site.have(pool("10.0.0.20-10.0.0.24"))
        text = "subnet 'dhcp-network' has no IP address management"
        await site.condition(NutanixCluster, NAME, "ReferencesResolved", "False", "SubnetNotManaged", text)
        assert site.vms() == []


@virtual
async def test_a_pool_outside_of_the_subnet_is_refused_before_there_is_a_machine() -> None:
    async with nutanix_site() as site:
        await site.have(
            pool("10.9.0.20-10.9.0.24", gateway="10.9.0.1"), *from_pool(manifest.cluster_objects(NAME, 1, 0))
        )
        text = "10.9.0.20-10.9.0.24 is outside the network 10.0.0.0/22 of subnet 'vm-network'"
        await site.condition(NutanixCluster, NAME, "ReferencesResolved", "False", "AddressOutsideSubnet", text)
        assert site.vms() == []


@virtual
async def test_an_address_that_somebody_else_has_is_reported_and_taken_when_it_is_free() -> None:
    async with nutanix_site() as site:
        stranger = await _stranger(site, "10.0.0.20")
        await site.have(pool("10.0.0.20-10.0.0.24"), *from_pool(manifest.cluster_objects(NAME, 1, 0)))
        await site.until(NutanixCluster, NAME, lambda c: c.status.ready)
        (machine,) = await _machines(site)
        words = ("InUse", "10.0.0.20 of InClusterIPPool machines", "exclude it from the pool")
        await site.condition(NutanixMachine, machine, "Ready", "False", *words, timeout=300)
        site.prism.core.drop(site.prism.world.vms, stranger)
        await site.running(NAME, 1)


async def _stranger(site: Site, address: str) -> str:
    """A machine that nobody here made."""
    from homeport.sim.prism.entity import Nic, Vm

    subnet = next(each for each in site.prism.world.subnets if each.name == "vm-network")
    nic = Nic(ext_id="n-1", subnet=subnet.ext_id, mac="50:6b:8d:99:99:99", address=address)
    vm = Vm(ext_id="6f6e0000-0000-4000-8000-000000000001", name="stranger", cluster=subnet.clusters[0], nics=(nic,))
    site.prism.core.put(site.prism.world.vms, vm)
    return vm.ext_id


async def _machines(site: Site) -> list[str]:
    while True:
        found = [each.metadata.name for each in await site.list(NutanixMachine)]
        if found:
            return found
        await asyncio.sleep(1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_controllers_that_die_give_no_address_twice(seed: int) -> None:
    _killed(seed)


@virtual
async def _killed(seed: int) -> None:
    rng = random.Random(seed)
    async with witnessed(start=False) as site:
        await site.have(pool("10.0.0.20-10.0.0.23"), *from_pool(manifest.cluster_objects(NAME, 1, 3)))
        await _die(site, [rng.randint(1, 30) for _ in range(10)])
        await site.running(NAME, 1, 3)
        held = await given(site)
        assert sorted(held.values()) == [f"10.0.0.{n}" for n in range(20, 24)]
        assert sorted(address for each in by_vm(site).values() for address in each) == sorted(held.values())
        await site.plane.stop()
        await site.delete(Cluster, NAME)
        await _die(site, [rng.randint(1, 10) for _ in range(5)])
        await site.gone(Cluster, NAME)
        await site.until(InClusterIPPool, "machines", lambda p: p.status.addresses.free == 4)
        await site.empty(NAME)


async def _die(site: Site, lives: list[int]) -> None:
    """The controllers are killed right after so many writes, time and again; those that come last live on."""
    for life in lives:
        killer = Killer(repeat(life).__next__)
        site.plane.manager = Manager(killer.wrap(site.plane.server.client()), clock=site.clock)
        site.install(site.plane.manager)
        await site.plane.start()
        await killer.death(120.0)
        await site.plane.stop()
    await site.begin()


# -- both families -----------------------------------------------------------------------------------------------


def dual_world() -> WorldFile:
    file = default_world()
    subnets = tuple(
        msgspec.structs.replace(each, ipv6="fd00:14::/64") if each.name == "vm-network" else each
        for each in file.subnets
    )
    return msgspec.structs.replace(file, subnets=subnets)


@pytest.mark.parametrize(
    ("services", "first"),
    [(["10.96.0.0/12", "fd00:96::/112"], "10.0."), (["fd00:96::/112", "10.96.0.0/12"], "fd00:14:")],
)
def test_machines_and_nodes_have_addresses_of_both_families(services: list[str], first: str) -> None:
    _dual(services, first)


@virtual
async def _dual(services: list[str], first: str) -> None:
    async with nutanix_site(world=dual_world()) as site:
        objects = manifest.cluster_objects(NAME, 1, 1)
        network = objects[0]["spec"]["clusterNetwork"]
        pods = ["192.168.0.0/16", "fd00:2::/56"]
        network["services"]["cidrBlocks"] = services
        network["pods"]["cidrBlocks"] = pods if first.startswith("10") else pods[::-1]
        await site.have(*objects)
        for machine in await site.running(NAME, 1, 1):
            found = [each.address for each in machine.status.addresses if each.type == "InternalIP"]
            assert len(found) == 2
            assert found[0].startswith(first)
            assert {each.partition(":")[0] == "fd00" for each in found} == {True, False}
            (workload,) = site.fleet.clusters()
            shown = await _shown(workload.client(), present(machine.status.node_ref).name, len(found))
            assert sorted(shown) == sorted(found)
            assert shown[0].startswith(first)
        assert await site.events("AddressChanged") == []


async def _shown(client: Any, name: str, count: int) -> list[str]:
    """The internal addresses of a Node, once there are so many."""
    async with asyncio.timeout(600):
        while True:
            node = await client.get(NODE, Key("", name))
            found = [each["address"] for each in node["status"]["addresses"] if each["type"] == "InternalIP"]
            if len(found) == count:
                return found
            await asyncio.sleep(5.0)


@virtual
async def test_a_cluster_may_know_nothing_but_ipv6() -> None:
    file = default_world()
    plain = {"cidr": "", "pools": (), "gateway": "", "dhcp_server": "", "ipv6": "fd00:14::/64"}
    subnets = tuple(
        msgspec.structs.replace(each, **plain) if each.name == "vm-network" else each for each in file.subnets
    )
    async with nutanix_site(world=msgspec.structs.replace(file, subnets=subnets)) as site:
        objects = manifest.cluster_objects(NAME, 3, 0, host="fd00:14:0::100")
        network = objects[0]["spec"]["clusterNetwork"]
        network["services"]["cidrBlocks"], network["pods"]["cidrBlocks"] = ["fd00:96::/112"], ["fd00:2::/56"]
        await site.have(*objects)
        for machine in await site.running(NAME, 3):
            found = [each.address for each in machine.status.addresses if each.type == "InternalIP"]
            # The control plane's own address wanders, and is nobody's.
            assert len(found) == 1
            assert found[0].startswith("fd00:14::526b:8dff:")
        kubeconfig = base64.b64decode((await site.get(SECRET, f"{NAME}-kubeconfig"))["data"]["value"]).decode()
        assert "server: https://[fd00:14:0::100]:6443" in kubeconfig


@virtual
async def test_claims_of_a_machine_that_was_let_go_by_hand_are_given_back() -> None:
    async with nutanix_site() as site:
        await site.have(pool("10.0.0.20-10.0.0.24"))
        await site.have(*from_pool(manifest.cluster_objects(NAME, 1, 0)))
        (machine,) = await site.running(NAME, 1, 0)
        name = present(machine.spec.infrastructure_ref).name
        assert f"{name}-0" in await given(site)
        await site.client.patch(NutanixMachine, Key("default", name), MergePatch({"metadata": {"finalizers": None}}))
        await site.client.delete(NutanixMachine, Key("default", name))
        await site.gone(IPAddressClaim, f"{name}-0")
