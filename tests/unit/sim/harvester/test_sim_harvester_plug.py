"""Volumes that are plugged into VMs, and pulled out."""

from __future__ import annotations

import pytest

from homeport.client.errors import BadRequest, Conflict, NotFound
from homeport.runtime.testing import virtual
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.kind import CLAIM, VM, VMI
from unit.sim.harvester.harvester_kit import Json, harvester, press
from unit.sim.harvester.test_sim_harvester_run import NODE_0, started

PLUG = {
    "name": "data",
    "disk": {"disk": {"bus": "scsi"}},
    "volumeSource": {"persistentVolumeClaim": {"claimName": "data", "hotpluggable": True}},
}


async def prepared(made: Harvester) -> None:
    await started(made, "Always")
    spec = {"accessModes": ["ReadWriteMany"], "volumeMode": "Block", "resources": {"requests": {"storage": "1Gi"}}}
    await made.client().create({"metadata": {"name": "data", "namespace": "default"}, "spec": spec}, kind=CLAIM)
    await made.settled()


async def volumes(made: Harvester) -> tuple[list[str], list[str], list[str]]:
    """Names of the volumes of the VM, of its instance, and of those that the instance reports."""
    vm, vmi = await made.client().get(VM, NODE_0), await made.client().get(VMI, NODE_0)

    def names(found: list[Json]) -> list[str]:
        return [each["name"] for each in found]

    return (
        names(vm["spec"]["template"]["spec"]["volumes"]),
        names(vmi["spec"]["volumes"]),
        names(vmi["status"]["volumeStatus"]),
    )


@virtual
async def test_a_volume_is_plugged_into_a_running_vm_and_pulled_out_again() -> None:
    async with harvester() as made:
        await prepared(made)
        before = await volumes(made)
        await press(made, "node-0", "addvolume", PLUG)
        await made.settled()
        assert await volumes(made) == tuple([*each, "data"] for each in before)
        vm = await made.client().get(VM, NODE_0)
        assert vm["spec"]["template"]["spec"]["domain"]["devices"]["disks"][-1] == {**PLUG["disk"], "name": "data"}  # type: ignore[dict-item]
        with pytest.raises(Conflict, match="because volume with that name already exists"):
            await press(made, "node-0", "addvolume", PLUG)
        with pytest.raises(Conflict, match=r"volume source \[data\] because it already exists"):
            await press(made, "node-0", "addvolume", {**PLUG, "name": "again"})
        await press(made, "node-0", "removevolume", {"name": "data"})
        await made.settled()
        assert await volumes(made) == before
        with pytest.raises(Conflict, match="because it does not exist"):
            await press(made, "node-0", "removevolume", {"name": "data"})


@virtual
async def test_what_cannot_be_plugged_is_refused() -> None:
    async with harvester() as made:
        await prepared(made)
        absent = {"persistentVolumeClaim": {"claimName": "absent"}}
        with pytest.raises(NotFound, match="absent"):
            await press(made, "node-0", "addvolume", {**PLUG, "volumeSource": absent})
        with pytest.raises(BadRequest, match="requires name, disk and volumeSource"):
            await press(made, "node-0", "addvolume", {"name": "data"})
        own = (await volumes(made))[0][0]
        with pytest.raises(Conflict, match="because it is not hotpluggable"):
            await press(made, "node-0", "removevolume", {"name": own})
