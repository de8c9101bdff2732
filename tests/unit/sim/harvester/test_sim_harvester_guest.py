"""Guests of the simulated Harvester: they boot only if their data would boot, and their agent tells their addresses."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import yaml

from homeport.client.protocol import Key
from homeport.runtime.clock import LoopClock
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import AddressChange, AddressLate, AddressLoss, Fault, Match
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.kind import SECRET, VM, VMI
from homeport.sim.harvester.object import condition
from homeport.sim.harvester.pace import Pace
from homeport.sim.harvester.world import WorldImage, default_world
from homeport.sim.machine.fleet import Fleet
from homeport.sim.network import Network
from unit.sim.harvester.harvester_kit import class_of, harvester, press, vm_manifest
from unit.sim.machine.sim_kit import PACE, Secrets, init_data, kube_vip
from unit.sim.machine.test_sim_talos_machine import talos_config

NODE_0 = Key("default", "node-0")
UBUNTU = WorldImage("ubuntu", display_name="ubuntu-22.04-kube-v1.30.2")
NO_AGENT = WorldImage("plain", display_name="ubuntu-22.04", agent=False)
OPENSTACK = WorldImage("talos-openstack", url="https://factory.example.com/openstack-amd64.raw.xz", os="talos")
VIP = "10.40.0.200"


@asynccontextmanager
async def site(**options: Any) -> AsyncIterator[tuple[Harvester, Fleet]]:
    network, clock = Network(), LoopClock()
    fleet = Fleet(network, clock, pace=PACE)
    images = (*default_world().images, UBUNTU, NO_AGENT, OPENSTACK)
    world = msgspec.structs.replace(default_world(), images=images)
    async with harvester(world=world, guests=fleet, network=network, **options) as made:
        try:
            yield made, fleet
        finally:
            await fleet.close()


async def boot(made: Harvester, fleet: Fleet, image: str, **source: Any) -> str:
    """Runs a VM until it has done what it can; gives its console."""
    manifest = vm_manifest("node-0", await class_of(made, image), image=image, **source)
    await made.client().create(manifest, kind=VM)
    await made.settled()
    await asyncio.sleep(30)
    await made.settled()
    machine = fleet.find("node-0")
    return "" if machine is None else machine.console.text()


def inline(kind: str, data: bytes) -> dict[str, Any]:
    return {kind: {"userDataBase64": base64.b64encode(data).decode()}}


async def stored(made: Harvester, kind: str, data: bytes) -> dict[str, Any]:
    """In a Secret: what stands in the VM itself may have 2048 bytes."""
    encoded = {"userdata": base64.b64encode(data).decode()}
    await made.client().create(
        {"metadata": {"name": "node-0-data", "namespace": "default"}, "data": encoded}, kind=SECRET
    )
    return {kind: {"secretRef": {"name": "node-0-data"}}}


async def interface(made: Harvester) -> dict[str, Any]:
    found: dict[str, Any] = (await made.client().get(VMI, NODE_0))["status"]["interfaces"][0]
    return found


@virtual
async def test_a_control_plane_boots_from_the_data_of_its_secret() -> None:
    async with site() as (made, fleet):
        data = init_data(Secrets.make(LoopClock()), vip=kube_vip(VIP), endpoint=f"{VIP}:6443")
        source = await stored(made, "cloudInitNoCloud", data)
        console = await boot(made, fleet, "ubuntu", **source)
        assert "initialized successfully" in console, console
        cluster = fleet.clusters()[0]
        assert set(cluster.control_planes) == {"node-0"}
        assert fleet.network.find("outside", VIP, 6443)


@pytest.mark.parametrize(
    ("image", "source", "expected"),
    [
        ("talos-1.9", "cloudInitNoCloud", "talosctl bootstrap"),
        ("talos-1.9", "cloudInitConfigDrive", "no machine configuration"),
        ("talos-openstack", "cloudInitConfigDrive", "talosctl bootstrap"),
        ("talos-openstack", "cloudInitNoCloud", "no machine configuration"),
    ],
)
@virtual
async def test_a_talos_image_reads_its_own_platform_alone(image: str, source: str, expected: str) -> None:
    async with site() as (made, fleet):
        data = talos_config(Secrets.make(LoopClock()), "controlplane")
        assert expected in await boot(made, fleet, image, **await stored(made, source, data))


@pytest.mark.parametrize("source", ["cloudInitNoCloud", "cloudInitConfigDrive"])
@virtual
async def test_cloud_init_reads_both_kinds_of_sources(source: str) -> None:
    async with site() as (made, fleet):
        console = await boot(made, fleet, "rocky-9-cloud", **inline(source, b"#cloud-config\nruncmd: [echo hello]\n"))
        assert "hello" in console


@pytest.mark.parametrize(
    "data",
    [
        {"version": 2, "ethernets": {"enp1s0": {"addresses": ["10.40.1.60/16"], "gateway4": "10.40.0.1"}}},
        {"network": {"version": 2, "ethernets": {"enp1s0": {"addresses": ["10.40.1.60/16"]}}}},
        {
            "version": 1,
            "config": [
                {"type": "physical", "name": "enp1s0", "subnets": [{"type": "static", "address": "10.40.1.60/16"}]}
            ],
        },
    ],
)
@virtual
async def test_network_data_gives_a_guest_its_address(data: dict[str, Any]) -> None:
    async with site() as (made, fleet):
        source = {"cloudInitNoCloud": {"userData": "#cloud-config\n", "networkData": yaml.safe_dump(data)}}
        await boot(made, fleet, "rocky-9-cloud", **source)
        assert (await interface(made))["ipAddress"] == "10.40.1.60"
        holder = fleet.network.holder("10.40.1.60")
        assert holder is not None
        assert holder.name == "node-0"


@virtual
async def test_a_guest_without_an_agent_has_an_address_that_nobody_reports() -> None:
    async with site() as (made, fleet):
        await boot(made, fleet, "plain")
        shown = await interface(made)
        assert "ipAddress" not in shown
        assert shown["infoSource"] == "domain, multus-status"
        machine = fleet.find("node-0")
        assert machine is not None
        assert machine.address.startswith("10.40.")
        assert not condition(await made.client().get(VMI, NODE_0), "AgentConnected")


@virtual
async def test_a_vlan_that_the_switches_do_not_carry_has_no_addresses() -> None:
    vlans = tuple(msgspec.structs.replace(each, trunked=each.id != 40) for each in default_world().vlans)
    async with harvester(world=msgspec.structs.replace(default_world(), vlans=vlans)) as made:
        await made.client().create(vm_manifest("node-0", await class_of(made)), kind=VM)
        await made.settled()
        assert (await made.client().get(VM, NODE_0))["status"]["printableStatus"] == "Running"
        assert "ipAddress" not in await interface(made)


@virtual
async def test_the_agent_reports_a_while_after_the_boot() -> None:
    async with harvester(pace=Pace(agent=40.0)) as made:
        await made.client().create(vm_manifest("node-0", await class_of(made)), kind=VM)
        await asyncio.sleep(39)
        await made.settled()
        assert "ipAddress" not in await interface(made)
        await asyncio.sleep(2)
        await made.settled()
        assert (await interface(made))["ipAddress"]


@virtual
async def test_addresses_come_late_change_and_go() -> None:
    faults = [
        Fault(AddressLate(seconds=100.0), Match(kind="vm")),
        Fault(AddressChange(seconds=200.0), Match(kind="vm")),
        Fault(AddressLoss(seconds=300.0), Match(kind="vm")),
    ]
    async with harvester(faults=faults) as made:
        await made.client().create(vm_manifest("node-0", await class_of(made)), kind=VM)
        seen = []
        for seconds in (99, 2, 100, 100):
            await asyncio.sleep(seconds)
            await made.settled()
            seen.append((await interface(made)).get("ipAddress", ""))
        assert seen[0] == ""
        assert seen[1].startswith("10.40.")
        assert seen[2].startswith("10.40.")
        assert seen[2] != seen[1]
        assert seen[3] == ""


@virtual
async def test_a_reboot_silences_the_agent_and_keeps_the_disk() -> None:
    async with site(pace=Pace(agent=20.0)) as (made, fleet):
        console = await boot(
            made, fleet, "rocky-9-cloud", **inline("cloudInitNoCloud", b"#cloud-config\nruncmd: [echo once]\n")
        )
        assert console.count("once") == 1
        await press(made, "node-0", "softreboot", plural="virtualmachineinstances")
        await made.settled()
        assert "ipAddress" not in await interface(made)
        await asyncio.sleep(30)
        await made.settled()
        assert (await interface(made))["ipAddress"]
        machine = fleet.find("node-0")
        assert machine is not None
        assert machine.console.text().count("once") == 1


@virtual
async def test_a_removed_vm_takes_its_guest_with_it() -> None:
    async with site() as (made, fleet):
        await boot(made, fleet, "rocky-9-cloud")
        assert fleet.find("node-0") is not None
        await made.client().delete(VM, NODE_0)
        await made.settled()
        assert fleet.find("node-0") is None
