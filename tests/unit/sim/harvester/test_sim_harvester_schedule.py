"""Where VMs of the simulated Harvester run, and what they wait for."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from homeport.client.errors import Conflict, Internal, Invalid
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.harvester.kind import CLAIM, IMAGE, NODE, POD, SECRET, VM, VMI
from homeport.sim.harvester.object import condition
from homeport.sim.harvester.pace import Pace
from homeport.sim.harvester.world import ClusterNetwork, VmNetwork, default_world
from unit.sim.harvester.harvester_kit import claim_template, class_of, harvester, vm_manifest

NODE_0 = Key("default", "node-0")


def template(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return found


@virtual
async def test_a_vm_that_no_node_has_room_for_says_so_until_there_is_room() -> None:
    small = tuple(msgspec.structs.replace(node, memory_bytes=5 * 1024**3) for node in default_world().nodes[:1])
    async with harvester(world=msgspec.structs.replace(default_world(), nodes=small)) as made:
        client = made.client()
        for name in ("node-0", "node-1", "node-2"):
            await client.create(vm_manifest(name, await class_of(made)), kind=VM)
            await made.settled()
        shown = {vm["metadata"]["name"]: vm["status"]["printableStatus"] for vm in (await client.list(VM)).items}
        assert shown == {"node-0": "Running", "node-1": "ErrorUnschedulable", "node-2": "ErrorUnschedulable"}
        vm, vmi = await client.get(VM, Key("default", "node-1")), await client.get(VMI, Key("default", "node-1"))
        why = condition(vm, "PodScheduled")
        assert (why["status"], why["reason"]) == ("False", "Unschedulable")
        assert why["message"] == "0/1 nodes are available: 1 Insufficient memory."
        assert vmi["status"]["phase"] == "Scheduling"
        await client.delete(VM, NODE_0)
        await made.settled()
        running = [vm for vm in (await client.list(VM)).items if vm["status"]["printableStatus"] == "Running"]
        assert len(running) == 1
        assert not condition(running[0], "PodScheduled")


@virtual
async def test_a_vm_runs_only_where_its_network_is() -> None:
    world = msgspec.structs.replace(
        default_world(),
        cluster_networks=(ClusterNetwork("mgmt"), ClusterNetwork("fabric", nodes=("harvester-node-2",))),
        networks=(*default_world().networks, VmNetwork("fabric", 50, cluster_network="fabric")),
    )
    async with harvester(world=world) as made:
        client = made.client()
        manifest = vm_manifest("node-0", await class_of(made))
        template(manifest)["networks"][0]["multus"]["networkName"] = "default/fabric"
        await client.create(manifest, kind=VM)
        await made.settled()
        assert (await client.get(VMI, NODE_0))["status"]["nodeName"] == "harvester-node-2"


@virtual
async def test_vms_are_spread_and_keep_off_a_cordoned_node() -> None:
    async with harvester() as made:
        client = made.client()
        await client.patch(NODE, Key("", "harvester-node-1"), MergePatch({"spec": {"unschedulable": True}}))
        for number in range(4):
            await client.create(vm_manifest(f"node-{number}", await class_of(made)), kind=VM)
        await made.settled()
        where = sorted(vmi["status"]["nodeName"] for vmi in (await client.list(VMI)).items)
        assert where == ["harvester-node-0"] * 2 + ["harvester-node-2"] * 2


@virtual
async def test_a_vm_waits_for_a_claim_that_is_missing() -> None:
    async with harvester() as made:
        client = made.client()
        manifest = vm_manifest("node-0", await class_of(made))
        del manifest["metadata"]["annotations"]
        await client.create(manifest, kind=VM)
        await made.settled()
        assert (await client.get(VM, NODE_0))["status"]["printableStatus"] == "ErrorPvcNotFound"
        claim = claim_template("node-0-disk-0", await class_of(made))
        claim["metadata"]["namespace"] = "default"
        await client.create(claim, kind=CLAIM)
        await made.settled()
        assert (await client.get(VM, NODE_0))["status"]["printableStatus"] == "Running"


@virtual
async def test_a_vm_waits_for_the_image_of_its_claim() -> None:
    async with harvester() as made:
        client = made.client()
        manifest = vm_manifest("node-0", "harvester-longhorn", image="late")
        await client.create(manifest, kind=VM)
        await made.settled()
        assert not (await client.list(CLAIM)).items
        image = {
            "metadata": {"name": "late", "namespace": "default"},
            "spec": {"displayName": "late", "sourceType": "download", "url": "https://images.example.com/late.img"},
        }
        await client.create(image, kind=IMAGE)
        await made.settled()
        assert (await client.get(VM, NODE_0))["status"]["printableStatus"] == "Running"


@virtual
async def test_a_vm_waits_for_its_volume_and_for_its_secret() -> None:
    async with harvester(pace=Pace(bind=30.0)) as made:
        client = made.client()
        source: dict[str, Any] = {"cloudInitNoCloud": {"secretRef": {"name": "node-0-cloud-init"}}}
        await client.create(vm_manifest("node-0", await class_of(made), **source), kind=VM)
        await made.settled()
        vm = await client.get(VM, NODE_0)
        assert vm["status"]["printableStatus"] == "ErrorUnschedulable"
        assert "unbound immediate PersistentVolumeClaims" in condition(vm, "PodScheduled")["message"]
        await asyncio.sleep(31)
        await made.settled()
        assert (await client.get(VM, NODE_0))["status"]["printableStatus"] == "Starting"
        assert not condition((await pods(client))[0], "Ready")
        secret = {
            "metadata": {"name": "node-0-cloud-init", "namespace": "default"},
            "stringData": {"userdata": "#cloud-config\n"},
        }
        await client.create(secret, kind=SECRET)
        await asyncio.sleep(10)
        await made.settled()
        assert (await client.get(VM, NODE_0))["status"]["printableStatus"] == "Running"


async def pods(client: Any) -> list[Any]:
    return [pod for pod in (await client.list(POD)).items if pod["metadata"]["namespace"] == "default"]


@virtual
async def test_what_harvester_refuses_about_a_vm() -> None:
    async with harvester() as made:
        client = made.client()
        storage_class = await class_of(made)

        async def refused(manifest: dict[str, Any], error: type[Exception], text: str) -> None:
            with pytest.raises(error, match=text):
                await client.create(manifest, kind=VM)

        wrong = vm_manifest("node-0", storage_class, image="talos-1.9")
        await refused(wrong, Invalid, 'imageId "default/talos-1.9" in volume template does not match backing image')
        await refused(vm_manifest("node-0", "fast"), Internal, 'storageclasses.storage.k8s.io "fast" not found')
        wrong = vm_manifest("node-0", storage_class)
        template(wrong)["networks"][0]["multus"]["networkName"] = "default/nowhere"
        await refused(wrong, Internal, 'network-attachment-definitions.k8s.cni.cncf.io "nowhere" not found')
        wrong = vm_manifest("node-0", storage_class)
        template(wrong)["domain"]["resources"] = {}
        await refused(wrong, Invalid, "either memory.guest or resources.limits.memory must be set")
        wrong = vm_manifest("node-0", storage_class)
        wrong["metadata"]["annotations"]["harvesterhci.io/volumeClaimTemplates"] = "[{}]"
        await refused(wrong, Invalid, "the volumeClaimTemplates annotaion is invalid: PVC name is required")
        first = vm_manifest("node-0", storage_class)
        template(first)["domain"]["devices"]["interfaces"][0]["macAddress"] = "02:00:00:00:00:01"
        await client.create(first, kind=VM)
        await made.settled()
        twin = vm_manifest("node-1", storage_class)
        template(twin)["domain"]["devices"]["interfaces"][0]["macAddress"] = "02:00:00:00:00:01"
        await refused(twin, Internal, "duplicate mac address present for vm node-1 for cluster network mgmt")
        wrong = vm_manifest("node-1", storage_class)
        template(wrong)["volumes"][0]["persistentVolumeClaim"]["claimName"] = "node-0-disk-0"
        await refused(wrong, Invalid, "PVC default/node-0-disk-0 is already used by other VM")
        with pytest.raises(Conflict, match="which is currently attached to VM: default/node-0"):
            await client.delete(CLAIM, Key("default", "node-0-disk-0"))


@virtual
async def test_what_kubevirt_refuses_about_a_vm() -> None:
    async with harvester() as made:
        client = made.client()
        storage_class = await class_of(made)
        wrong = vm_manifest("node-0", storage_class, cloudInitNoCloud={"userData": "#" * 2049})
        with pytest.raises(Invalid, match="userdata exceeds 2048 byte limit"):
            await client.create(wrong, kind=VM)
        wrong = vm_manifest("node-0", storage_class, strategy="Sometimes")
        wrong["spec"]["running"] = True
        template(wrong)["domain"]["devices"]["disks"].append({"name": "data", "disk": {"bus": "virtio"}})
        template(wrong)["networks"][0]["name"] = "other"
        with pytest.raises(Invalid) as refused:
            await client.create(wrong, kind=VM)
        assert [cause.field for cause in refused.value.causes] == [
            "spec.running",
            "spec.runStrategy",
            "spec.template.spec.domain.devices.disks[2].name",
            "spec.template.spec.networks[0].name",
            "spec.template.spec.domain.devices.interfaces[0].name",
        ]


@virtual
async def test_labels_of_the_template_follow_to_the_instance_that_runs() -> None:
    async with harvester() as made:
        client = made.client()
        await client.create(vm_manifest("node-0", await class_of(made)), kind=VM)
        await made.settled()
        labels = {"role": "worker", "harvesterhci.io/vmName": None}
        await client.patch(VM, NODE_0, MergePatch({"spec": {"template": {"metadata": {"labels": labels}}}}))
        await made.settled()
        found = (await client.get(VMI, NODE_0))["metadata"]["labels"]
        assert found["role"] == "worker"
        assert "harvesterhci.io/vmName" not in found
        assert found["kubevirt.io/nodeName"].startswith("harvester-node-")


@virtual
async def test_a_crowd_of_vms_takes_few_writes() -> None:
    async with harvester() as made:
        client = made.client()
        storage_class = await class_of(made)
        await asyncio.sleep(10)  # namespaces have what they get
        before = made.server.store.revision
        for number in range(50):
            await client.create(vm_manifest(f"node-{number}", storage_class), kind=VM)
        await made.settled()
        await asyncio.sleep(10)  # events are written
        running = [vm for vm in (await client.list(VM)).items if vm["status"]["printableStatus"] == "Running"]
        assert len(running) == 50
        assert (made.server.store.revision - before) / 50 <= 17
