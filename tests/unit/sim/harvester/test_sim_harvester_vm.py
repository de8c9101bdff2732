"""VMs of the simulated Harvester: from the manifest to a guest that reports its address, and to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.harvester.kind import CLAIM, VM, VMI, VOLUME
from unit.sim.harvester.harvester_kit import claim_template, class_of, harvester, press, vm_manifest

NODE_0 = Key("default", "node-0")


@virtual
async def test_a_vm_gets_a_claim_an_instance_and_an_address() -> None:
    async with harvester() as made:
        client = made.client()
        await client.create(vm_manifest("node-0", await class_of(made)), kind=VM)
        await made.settled()
        vm, vmi = await client.get(VM, NODE_0), await client.get(VMI, NODE_0)
        claim = await client.get(CLAIM, Key("default", "node-0-disk-0"))
        assert vm["status"]["printableStatus"] == "Running"
        assert vm["status"]["ready"]
        assert vmi["status"]["nodeName"].startswith("harvester-node-")
        assert vmi["status"]["interfaces"][0]["ipAddress"].startswith("10.40.")
        assert claim["status"]["phase"] == "Bound"
        (volume,) = (await client.list(VOLUME)).items
        assert volume["status"]["phase"] == "Bound"
        assert volume["spec"]["claimRef"]["uid"] == claim.uid


@virtual
async def test_a_deleted_vm_leaves_its_claim_unless_it_is_to_go_too() -> None:
    async with harvester() as made:
        client = made.client()
        await client.create(vm_manifest("node-0", await class_of(made)), kind=VM)
        gone = vm_manifest("node-1", await class_of(made))
        gone["metadata"]["annotations"]["harvesterhci.io/removedPersistentVolumeClaims"] = "node-1-disk-0"
        await client.create(gone, kind=VM)
        await made.settled()
        for name in ("node-0", "node-1"):
            await client.delete(VM, Key("default", name))
        await made.settled()
        assert not (await client.list(VM)).items
        assert not (await client.list(VMI)).items
        assert (await client.get(CLAIM, Key("default", "node-0-disk-0")))["status"]["phase"] == "Bound"
        with pytest.raises(NotFound):
            await client.get(CLAIM, Key("default", "node-1-disk-0"))


async def test_volumes_go_with_their_claim_even_if_the_simulator_ends_in_between(tmp_path: Path) -> None:
    database, named = tmp_path / "world.db", Key("default", "data")
    async with harvester(database=database) as made:
        body = claim_template("data", "harvester-longhorn")
        del body["metadata"]["annotations"]
        await made.client().create({**body, "metadata": {"name": "data", "namespace": "default"}}, kind=CLAIM)
        await made.settled()
        (volume,) = (await made.client().list(VOLUME)).items
        reserved = {**volume["spec"], "claimRef": {"namespace": "default", "name": "data"}}
        await made.client().create({"metadata": {"name": "reserved"}, "spec": reserved}, kind=VOLUME)
        await made.loops["claim"].close()
        await made.client().delete(CLAIM, named)
        assert len((await made.client().list(VOLUME)).items) == 2
    async with harvester(database=database) as made:
        await made.settled()
        assert [each.name for each in (await made.client().list(VOLUME)).items] == ["reserved"]


@virtual
async def test_admission_rewrites_a_vm_as_harvester_does() -> None:
    async with harvester() as made:
        client = made.client()
        manifest = vm_manifest("node-0", await class_of(made))
        limits = manifest["spec"]["template"]["spec"]["domain"]["resources"]["limits"]
        limits.update(cpu="4", memory="8Gi")
        spec = (await client.create(manifest, kind=VM))["spec"]["template"]["spec"]
        assert spec["domain"]["resources"]["requests"] == {"cpu": "400m", "memory": "5461Mi"}
        assert spec["domain"]["memory"] == {"guest": "8Gi"}
        assert spec["domain"]["cpu"] == {"cores": 2, "sockets": 1, "threads": 1, "maxSockets": 1}
        assert spec["terminationGracePeriodSeconds"] == 120
        mac = spec["domain"]["devices"]["interfaces"][0]["macAddress"]
        assert int(mac[:2], 16) & 3 == 2
        term = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        wanted = {"key": "network.harvesterhci.io/mgmt", "operator": "In", "values": ["true"]}
        assert term == {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}


@virtual
async def test_a_vm_keeps_its_mac_though_a_manifest_without_it_is_applied_again() -> None:
    async with harvester() as made:
        client = made.client()
        manifest = vm_manifest("node-0", await class_of(made))
        await client.create(manifest, kind=VM)
        await made.settled()
        before = (await client.get(VMI, NODE_0))["status"]["interfaces"][0]
        await client.patch(VM, NODE_0, MergePatch({"spec": manifest["spec"]}))
        await press(made, "node-0", "restart")
        await made.settled()
        after = (await client.get(VMI, NODE_0))["status"]["interfaces"][0]
        assert (after["mac"], after["ipAddress"]) == (before["mac"], before["ipAddress"])
