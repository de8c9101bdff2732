"""Nodes of a simulated Harvester: VMs that are evicted, moved, or lost with their node; and faults of VMs and images."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from homeport.client.errors import TooManyRequests
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import parse_faults
from homeport.sim.harvester.fault import VOCABULARY
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.kind import IMAGE, MIGRATION, NODE, POD, VM, VMI
from homeport.sim.harvester.pace import Pace
from unit.sim.harvester.harvester_kit import class_of, harvester, vm_manifest

NODE_0 = Key("default", "node-0")
Json = dict[str, Any]


async def run_vm(made: Harvester, eviction: str = "", *, shared: bool = True, strategy: str = "Always") -> Json:
    manifest = vm_manifest("node-0", await class_of(made), strategy=strategy)
    if eviction:
        manifest["spec"]["template"]["spec"]["evictionStrategy"] = eviction
    if not shared:
        notes = manifest["metadata"]["annotations"]
        notes.update({key: value.replace("ReadWriteMany", "ReadWriteOnce") for key, value in notes.items()})
    await made.client().create(manifest, kind=VM)
    return await instance(made)


async def instance(made: Harvester) -> Json:
    await made.settled()
    return await made.client().get(VMI, NODE_0)


def inject(made: Harvester, text: str) -> None:
    made.faults.set(parse_faults(f"faults: [{text}]", vocabulary=VOCABULARY))
    made.meet_faults()


async def later(seconds: float) -> None:
    """In virtual time."""
    await asyncio.sleep(seconds)


async def pods(made: Harvester) -> list[Json]:
    await made.settled()
    found = (await made.client().list(POD)).items
    return [pod for pod in found if pod["metadata"]["name"].startswith("virt-launcher-")]


async def evict(made: Harvester) -> None:
    (pod,) = await pods(made)
    key = Key("default", pod["metadata"]["name"])
    body = {"metadata": {"name": key.name, "namespace": "default"}}
    await made.client().create(body, kind=POD, key=key, subresource="eviction")


@virtual
async def test_an_evicted_vm_is_moved_to_another_node_and_keeps_its_address() -> None:
    async with harvester(pace=Pace(migrate=20.0)) as made:
        before = await run_vm(made, "LiveMigrate")
        with pytest.raises(TooManyRequests, match='Eviction triggered evacuation of VMI "default/node-0"'):
            await evict(made)
        moving = await instance(made)
        assert moving["status"]["evacuationNodeName"] == before["status"]["nodeName"]
        (migration,) = (await made.client().list(MIGRATION)).items
        assert migration["metadata"]["name"].startswith("kubevirt-evacuation-")
        assert migration["status"]["phase"] == "Running"
        assert (await made.client().get(VM, NODE_0))["status"]["printableStatus"] == "Migrating"
        await later(21)
        after = await instance(made)
        assert after["status"]["nodeName"] != before["status"]["nodeName"]
        assert after["metadata"]["labels"]["kubevirt.io/nodeName"] == after["status"]["nodeName"]
        assert "evacuationNodeName" not in after["status"]
        assert after["status"]["migrationState"]["completed"]
        assert after["status"]["interfaces"][0]["ipAddress"] == before["status"]["interfaces"][0]["ipAddress"]
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        (pod,) = await pods(made)
        assert pod["spec"]["nodeName"] == after["status"]["nodeName"]


@virtual
async def test_an_external_strategy_marks_the_vm_and_leaves_the_rest_to_others() -> None:
    async with harvester() as made:
        before = await run_vm(made, "External")
        with pytest.raises(TooManyRequests, match="Eviction triggered evacuation"):
            await evict(made)
        with pytest.raises(TooManyRequests, match="Evacuation in progress"):
            await evict(made)
        marked = await instance(made)
        assert marked["status"]["evacuationNodeName"] == marked["status"]["nodeName"]
        assert not (await made.client().list(MIGRATION)).items
        await made.client().patch(
            NODE, Key("", before["status"]["nodeName"]), MergePatch({"spec": {"unschedulable": True}})
        )
        await made.client().delete(VMI, NODE_0)
        fresh = await instance(made)
        assert fresh["metadata"]["uid"] != before["metadata"]["uid"]
        assert fresh["status"]["nodeName"] != before["status"]["nodeName"]


@virtual
async def test_a_vm_that_must_but_cannot_be_moved_refuses_its_eviction() -> None:
    async with harvester() as made:
        await run_vm(made, "LiveMigrate", shared=False)
        with pytest.raises(
            TooManyRequests, match="VMI node-0 is configured with an eviction strategy but is not live-"
        ):
            await evict(made)


@virtual
async def test_a_migration_by_hand_moves_the_vm() -> None:
    async with harvester() as made:
        before = await run_vm(made)
        made_by_hand = {"metadata": {"name": "m", "namespace": "default"}, "spec": {"vmiName": "node-0"}}
        await made.client().create(made_by_hand, kind=MIGRATION)
        after = await instance(made)
        assert after["status"]["nodeName"] != before["status"]["nodeName"]
        assert (await made.client().get(MIGRATION, Key("default", "m")))["status"]["phase"] == "Succeeded"


@virtual
async def test_a_migration_waits_while_no_other_node_takes_the_vm() -> None:
    async with harvester() as made:
        vmi = await run_vm(made)
        for node in (await made.client().list(NODE)).items:
            if node["metadata"]["name"] != vmi["status"]["nodeName"]:
                cordoned = MergePatch({"spec": {"unschedulable": True}})
                await made.client().patch(NODE, Key("", node["metadata"]["name"]), cordoned)
        request = {"metadata": {"name": "m", "namespace": "default"}, "spec": {"vmiName": "node-0"}}
        await made.client().create(request, kind=MIGRATION)
        assert (await instance(made))["status"]["phase"] == "Running"
        assert (await made.client().get(MIGRATION, Key("default", "m")))["status"]["phase"] == "Scheduling"


@virtual
async def test_maintenance_empties_a_node_and_says_when_it_is_done() -> None:
    async with harvester() as made:
        vmi = await run_vm(made, "LiveMigrateIfPossible")
        name = Key("", vmi["status"]["nodeName"])
        asked = {"metadata": {"annotations": {"harvesterhci.io/drain-requested": "true"}}}
        await made.client().patch(NODE, name, MergePatch(asked))
        await made.settled()
        await later(6)
        await made.settled()
        node = await made.client().get(NODE, name)
        assert node["spec"]["unschedulable"]
        assert node["metadata"]["annotations"]["harvesterhci.io/maintain-status"] == "completed"
        assert "harvesterhci.io/drain-requested" not in node["metadata"]["annotations"]
        assert (await instance(made))["status"]["nodeName"] != name.name


@virtual
async def test_maintenance_is_refused_for_vms_that_cannot_be_moved_unless_forced() -> None:
    async with harvester() as made:
        vmi = await run_vm(made, "LiveMigrateIfPossible", shared=False)
        name = Key("", vmi["status"]["nodeName"])
        asked = {"harvesterhci.io/drain-requested": "true"}
        await made.client().patch(NODE, name, MergePatch({"metadata": {"annotations": asked}}))
        await made.settled()
        node = await made.client().get(NODE, name)
        assert not node["spec"].get("unschedulable")
        assert "harvesterhci.io/drain-requested" not in (node["metadata"].get("annotations") or {})
        forced = {**asked, "harvesterhci.io/drain-forced": "true"}
        await made.client().patch(NODE, name, MergePatch({"metadata": {"annotations": forced}}))
        await made.settled()
        await later(6)
        await made.settled()
        assert (await made.client().get(VM, NODE_0))["status"]["printableStatus"] == "Stopped"
        notes = (await made.client().get(NODE, name))["metadata"]["annotations"]
        assert notes["harvesterhci.io/maintain-status"] == "completed"


@virtual
@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure"])
async def test_vms_of_a_lost_node_start_again_elsewhere(strategy: str) -> None:
    async with harvester(pace=Pace(lost=300.0)) as made:
        before = await run_vm(made, strategy=strategy)
        name = before["status"]["nodeName"]
        inject(made, f"{{match: {{kind: node, entity: {name}}}, effect: {{kind: outage}}}}")
        await made.settled()
        node = await made.client().get(NODE, Key("", name))
        assert next(each for each in node["status"]["conditions"] if each["type"] == "Ready")["status"] == "Unknown"
        assert (await instance(made))["metadata"]["uid"] == before["metadata"]["uid"]
        await later(302)
        await made.settled()
        await later(60)  # a VM that failed starts again with a pause
        after = await instance(made)
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert after["status"]["nodeName"] != name
        inject(made, "")
        await made.settled()
        node = await made.client().get(NODE, Key("", name))
        assert next(each for each in node["status"]["conditions"] if each["type"] == "Ready")["status"] == "True"
        assert not node["spec"].get("taints")


@virtual
async def test_a_vm_that_runs_once_has_failed_if_its_node_is_lost() -> None:
    async with harvester() as made:
        name = (await run_vm(made, strategy="Once"))["status"]["nodeName"]
        inject(made, f"{{match: {{kind: node, entity: {name}}}, effect: {{kind: outage}}}}")
        assert (await instance(made))["status"]["phase"] == "Failed"


@virtual
@pytest.mark.parametrize("effect", ["agent-silence", "address-late"])
async def test_a_silent_agent_reports_no_address_until_its_time(effect: str) -> None:
    async with harvester() as made:
        inject(made, f"{{match: {{kind: vm, entity: 'node-*'}}, effect: {{kind: {effect}, seconds: 60}}}}")
        silent = await run_vm(made)
        assert silent["status"]["phase"] == "Running"
        assert "ipAddress" not in silent["status"]["interfaces"][0]
        await later(61)
        assert (await instance(made))["status"]["interfaces"][0]["ipAddress"].startswith("10.40.")


@virtual
async def test_an_image_import_fails_as_often_as_the_fault_says() -> None:
    async with harvester() as made:
        inject(made, "{match: {kind: image, entity: flaky}, effect: {kind: import-failure}, times: 2}")
        spec = {"displayName": "flaky", "sourceType": "download", "url": "https://images.example.com/a.qcow2"}
        await made.client().create({"metadata": {"name": "flaky", "namespace": "default"}, "spec": spec}, kind=IMAGE)
        await made.settled()
        image = await made.client().get(IMAGE, Key("default", "flaky"))
        assert image["status"]["failed"] == 1
        await later(30)
        await made.settled()
        image = await made.client().get(IMAGE, Key("default", "flaky"))
        assert (image["status"]["failed"], image["status"]["progress"]) == (2, 100)
