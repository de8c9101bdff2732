"""The world of the simulated Harvester: what it begins with, from which file, and that it goes on after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.clock import LoopClock
from homeport.runtime.testing import shared_pki, virtual
from homeport.sim.engine.document import DocumentError
from homeport.sim.harvester.definition import definitions
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.kind import (
    CLAIM,
    CLUSTER_NETWORK,
    DATA_VOLUME,
    DEPLOYMENT,
    IMAGE,
    KEY_PAIR,
    NAD,
    NODE,
    SETTING,
    STORAGE_CLASS,
    VM,
    VMI,
)
from homeport.sim.harvester.world import default_world, parse_world
from unit.sim.harvester.harvester_kit import class_of, harvester, vm_manifest

NODE_0 = Key("default", "node-0")


def descriptions(schema: Any, *, names: bool = False) -> list[Any]:
    """Texts in a schema; a field may be called description."""
    if isinstance(schema, list):
        return [found for each in schema for found in descriptions(each)]
    if not isinstance(schema, dict):
        return []
    own = [schema["description"]] if not names and isinstance(schema.get("description"), str) else []
    return own + [
        found for key, each in schema.items() for found in descriptions(each, names=not names and key == "properties")
    ]


def test_the_kinds_are_facts_without_prose() -> None:
    assert descriptions(list(definitions())) == []
    names = {each["metadata"]["name"] for each in definitions()}
    assert {
        "virtualmachines.kubevirt.io",
        "virtualmachineimages.harvesterhci.io",
        "datavolumes.cdi.kubevirt.io",
    } <= names


@virtual
async def test_the_default_world_has_what_the_guide_names() -> None:
    async with harvester() as made:
        client = made.client()
        assert len((await client.list(NODE)).items) == 3
        network = await client.get(NAD, Key("default", "workloads"))
        assert network["metadata"]["labels"]["network.harvesterhci.io/vlan-id"] == "40"
        assert network["metadata"]["labels"]["network.harvesterhci.io/clusternetwork"] == "mgmt"
        for kind, key in (
            (CLUSTER_NETWORK, Key("", "mgmt")),
            (KEY_PAIR, Key("default", "butler-ssh")),
            (STORAGE_CLASS, Key("", "harvester-longhorn")),
            (DEPLOYMENT, Key("harvester-system", "harvester")),
            (DEPLOYMENT, Key("harvester-system", "harvester-harvester")),
        ):
            await client.get(kind, key)
        for name in ("talos-1.9", "rocky-9-cloud"):
            status = (await client.get(IMAGE, Key("default", name)))["status"]
            assert status["progress"] == 100
            await client.get(STORAGE_CLASS, Key("", status["storageClassName"]))
        assert (await client.get(SETTING, Key("", "server-version")))["value"] == default_world().version
        assert [vlan.id for vlan in made.world.vlans] == [20, 30, 40, 50]


@virtual
async def test_dhcp_leaves_the_addresses_of_the_guide_free() -> None:
    async with harvester() as made:
        taken = {
            made.core.leases.take(40, f"02:00:00:00:{number // 256:02x}:{number % 256:02x}") for number in range(2_000)
        }
        assert len(taken) == 2_000
        assert "10.40.0.200" not in taken
        assert not taken & {f"10.40.1.{number}" for number in range(51)}


def test_a_mistake_in_a_world_is_reported_with_its_place() -> None:
    with pytest.raises(DocumentError, match=r"world:2: networks\[0\].clusterNetwork: no entry of clusterNetworks"):
        parse_world("networks:\n- {name: lab, vlan: 7, clusterNetwork: fabric}\n")
    with pytest.raises(DocumentError, match=r"world:2: vlans\[0\]: dhcp: 10.8.0.1-10.8.0.9 is outside the subnet"):
        parse_world("vlans:\n- {id: 7, subnet: 10.7.0.0/24, dhcp: [10.8.0.1-10.8.0.9]}\n")
    with pytest.raises(DocumentError, match="invalid version 'latest'"):
        parse_world("version: latest\n")


@virtual
async def test_a_world_brings_objects_of_any_kind() -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "namespace": "default"}}
    async with harvester(world=msgspec.structs.replace(default_world(), objects=(settings,))) as made:
        served, _ = made.server.registry.find("", "v1", "configmaps")
        assert made.server.store.get(served.bucket, "default/own") is not None


@virtual
async def test_vms_go_on_after_a_restart(tmp_path: Path) -> None:
    clock, database = LoopClock(), tmp_path / "world.db"
    first = await Harvester.open(shared_pki(), clock=clock, database=database)
    await first.client().create(vm_manifest("node-0", await class_of(first)), kind=VM)
    await first.settled()
    before = await first.client().get(VMI, NODE_0)
    await first.close()
    second = await Harvester.open(shared_pki(), clock=clock, database=database)
    try:
        client = second.client()
        await client.create(vm_manifest("node-1", await class_of(second)), kind=VM)
        await second.settled()
        after = await client.get(VMI, NODE_0)
        assert after.uid == before.uid
        assert after["status"]["interfaces"] == before["status"]["interfaces"]
        other = await client.get(VMI, Key("default", "node-1"))
        assert other["status"]["interfaces"][0]["ipAddress"] != before["status"]["interfaces"][0]["ipAddress"]
        assert len((await client.list(NODE)).items) == 3
    finally:
        await second.close()


@virtual
async def test_two_worlds_live_side_by_side() -> None:
    async with harvester() as one, harvester() as other:
        await one.client().create(vm_manifest("node-0", await class_of(one)), kind=VM)
        await one.settled()
        assert not (await other.client().list(VM)).items


def kubevirt_manifest() -> dict[str, Any]:
    """A VM as users of KubeVirt without Harvester write one."""
    disk = {"name": "root", "disk": {"bus": "virtio"}}
    return {
        "metadata": {"name": "node-0", "namespace": "default"},
        "spec": {
            "runStrategy": "Always",
            "dataVolumeTemplates": [
                {
                    "metadata": {"name": "node-0-root"},
                    "spec": {
                        "source": {"http": {"url": "https://images.example.com/ubuntu-22.04-kube-v1.30.2.img"}},
                        "storage": {"resources": {"requests": {"storage": "20Gi"}}},
                    },
                }
            ],
            "template": {
                "spec": {
                    "domain": {
                        "memory": {"guest": "2Gi"},
                        "devices": {"disks": [disk], "interfaces": [{"name": "default", "masquerade": {}}]},
                    },
                    "networks": [{"name": "default", "pod": {}}],
                    "volumes": [{"name": "root", "dataVolume": {"name": "node-0-root"}}],
                }
            },
        },
    }


@virtual
async def test_plain_kubevirt_has_vms_but_nothing_of_harvester() -> None:
    async with harvester(world=msgspec.structs.replace(default_world(), harvester=False)) as made:
        client = made.client()
        with pytest.raises(NotFound):
            await client.list(IMAGE)
        await client.create(kubevirt_manifest(), kind=VM)
        await made.settled()
        assert (await client.get(VM, NODE_0))["status"]["printableStatus"] == "Running"
        assert (await client.get(VMI, NODE_0))["status"]["interfaces"][0]["ipAddress"].startswith("10.52.")
        volume = await client.get(DATA_VOLUME, Key("default", "node-0-root"))
        assert (volume["status"]["phase"], volume["status"]["progress"]) == ("Succeeded", "100.0%")
        assert "requests" not in (await client.get(VM, NODE_0))["spec"]["template"]["spec"]["domain"].get(
            "resources", {}
        )
        await client.delete(VM, NODE_0)
        await made.settled()
        await asyncio.sleep(1)  # owners are gone: the garbage collector takes what they owned
        assert not (await client.list(DATA_VOLUME)).items
        assert not (await client.list(CLAIM)).items
