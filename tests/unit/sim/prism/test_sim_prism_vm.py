"""Machines over v4: what is made, what is refused, what is shown."""

from __future__ import annotations

import base64
import uuid

import pytest

from homeport.sim.engine.guest import Machine
from homeport.sim.engine.progress import Progress
from homeport.sim.prism.pace import Pace
from homeport.sim.prism.prism import Prism
from unit.sim.prism.prism_caller import VMS, Caller, HandClock, code_of


@pytest.fixture
def call() -> Caller:
    return Caller(Prism())


async def test_a_vm_is_made_off_and_gets_what_the_cluster_adds(call: Caller) -> None:
    ext_id = await call.make("web")
    vm, etag = await call.vm(ext_id)
    assert (vm["powerState"], vm["biosUuid"], vm["$objectType"]) == ("OFF", ext_id, "vmm.v4.ahv.config.Vm")
    assert vm["project"]["extId"] == call.prism.world.default_project()
    assert vm["disks"][0]["backingInfo"]["storageContainer"]["extId"]
    assert vm["nics"][0]["backingInfo"]["macAddress"].startswith("50:6b:8d:")
    assert etag


async def test_both_generations_of_nic_fields_say_the_same(call: Caller) -> None:
    vm, _ = await call.vm(await call.make("web", on=True))
    nic = vm["nics"][0]
    old, new = nic["networkInfo"], nic["nicNetworkInfo"]
    assert old["ipv4Config"] == new["ipv4Config"]
    assert new["ipv4Info"]["learnedIpAddresses"][0]["value"] == new["ipv4Config"]["ipAddress"]["value"]
    assert nic["$nicNetworkInfoItemDiscriminator"] == new["$objectType"]


async def test_without_address_management_an_address_is_learned_after_the_boot(call: Caller) -> None:
    nic = {"networkInfo": {"subnet": {"extId": call.subnet("dhcp-network")}}}
    ext_id = await call.make("web", nics=[nic])
    before, _ = await call.vm(ext_id)
    assert "ipv4Info" not in before["nics"][0]["networkInfo"]
    await call.power(ext_id, "power-on")
    after, _ = await call.vm(ext_id)
    info = after["nics"][0]["networkInfo"]
    assert "ipv4Config" not in info
    assert info["ipv4Info"]["learnedIpAddresses"][0]["value"].startswith("10.0.200.")


async def test_an_address_may_be_asked_for_and_is_given_once(call: Caller) -> None:
    info = {
        "subnet": {"extId": call.subnet()},
        "ipv4Config": {"shouldAssignIp": True, "ipAddress": {"value": "10.0.0.120"}},
    }
    vm, _ = await call.vm(await call.make("one", nics=[{"networkInfo": info}]))
    assert vm["nics"][0]["networkInfo"]["ipv4Config"]["ipAddress"]["value"] == "10.0.0.120"
    task = await call.task(await call.create("two", nics=[{"networkInfo": info}]))
    assert task["status"] == "FAILED"
    assert "10.0.0.120" in task["errorMessages"][0]["message"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"powerState": "ON"}, "VMM-30109"),
        ({"numSockets": 0}, "VMM-30102"),
        ({"cluster": {"extId": str(uuid.uuid4())}}, "VMM-30106"),
        ({"cluster": None}, "VMM-30106"),
        ({"nics": [{"networkInfo": {"subnet": {"extId": str(uuid.uuid4())}}}]}, "VMM-30604"),
        ({"nics": [{"networkInfo": {}}]}, "VMM-30604"),
        ({"project": {"extId": str(uuid.uuid4())}}, "VMM-31701"),
    ],
)
async def test_what_is_wrong_is_refused_with_the_code_of_the_vendor(
    call: Caller, change: dict[str, object], code: str
) -> None:
    answer = await call.create("web", **change)
    assert (answer.status, code_of(answer)) == (400, code)
    assert len(call.prism.world.tasks) == 0


async def test_a_wrong_type_is_a_schema_error_that_names_the_attribute(call: Caller) -> None:
    answer = await call.create("web", numSockets="two")
    error = answer.body["data"]["error"]
    assert answer.status == 400
    assert error["$objectType"] == "vmm.v4.error.SchemaValidationError"
    assert error["validationErrorMessages"][0]["attributePath"] == "numSockets"


async def test_a_request_id_is_needed_and_replays(call: Caller) -> None:
    body = call.vm_body("web")
    assert code_of(await call("POST", VMS, body)) == "VMM-30400"
    assert code_of(await call("POST", VMS, body, ntnx_request_id="x")) == "VMM-30401"
    same = str(uuid.uuid4())
    first = await call("POST", VMS, body, ntnx_request_id=same)
    second = await call("POST", VMS, body, ntnx_request_id=same)
    assert first.body["data"]["extId"] == second.body["data"]["extId"]
    assert len(call.prism.world.vms) == 1


async def test_a_refusal_replays_too(call: Caller) -> None:
    same = str(uuid.uuid4())
    wrong = call.vm_body("web", cluster={"extId": str(uuid.uuid4())})
    assert (await call("POST", VMS, wrong, ntnx_request_id=same)).status == 400
    assert (await call("POST", VMS, call.vm_body("web"), ntnx_request_id=same)).status == 400


async def test_etags_move_with_every_change_and_old_ones_are_refused(call: Caller) -> None:
    ext_id = await call.make("web")
    _, first = await call.vm(ext_id)
    path = f"{VMS}/{ext_id}"
    update = {"description": "new"}
    assert (await call("PUT", path, update, if_match=first)).status == 202
    _, second = await call.vm(ext_id)
    assert second != first
    stale = await call("PUT", path, update, if_match=first)
    assert (stale.status, code_of(stale)) == (412, "VMM-30303")
    assert code_of(await call("PUT", path, update)) == "PLAT-10004"
    assert code_of(await call("PUT", path, update, if_match="*")) == "PLAT-10005"
    await call.power(ext_id, "power-on")
    assert (await call("DELETE", path, if_match=second)).status == 412  # power is a change as well


async def test_a_deleted_vm_is_gone_with_its_address(call: Caller) -> None:
    ext_id = await call.make("web", on=True)
    vm, etag = await call.vm(ext_id)
    address = vm["nics"][0]["networkInfo"]["ipv4Config"]["ipAddress"]["value"]
    assert address in call.prism.core.usage.held(call.subnet())
    assert (await call("DELETE", f"{VMS}/{ext_id}", if_match=etag)).status == 202
    gone = await call("GET", f"{VMS}/{ext_id}")
    assert (gone.status, code_of(gone)) == (404, "VMM-30100")
    assert address not in call.prism.core.usage.held(call.subnet())
    assert sum(call.prism.core.usage.memory.values()) == 0


async def test_power_on_of_a_running_vm_fails_as_a_task(call: Caller) -> None:
    ext_id = await call.make("web", on=True)
    task = await call.power(ext_id, "power-on")
    assert task["status"] == "FAILED"


async def test_a_running_vm_may_grow_and_not_shrink(call: Caller) -> None:
    ext_id = await call.make("web", on=True)
    for memory, status in ((6 * 1024**3, "SUCCEEDED"), (1024**3, "FAILED")):
        _, etag = await call.vm(ext_id)
        answer = await call("PUT", f"{VMS}/{ext_id}", {"memorySizeBytes": memory}, if_match=etag)
        assert (await call.task(answer))["status"] == status


async def test_disk_indexes_are_free_ones_and_never_shared(call: Caller) -> None:
    plain = {"backingInfo": {"$objectType": "vmm.v4.ahv.config.VmDisk", "diskSizeBytes": 1024**3}}
    placed = {**plain, "diskAddress": {"busType": "SCSI", "index": 0}}
    vm, _ = await call.vm(await call.make("web", disks=[plain, placed, plain]))
    assert sorted(disk["diskAddress"]["index"] for disk in vm["disks"]) == [0, 1, 2]
    twice = await call.create("two", disks=[placed, placed])
    assert twice.status == 400


async def test_user_data_reaches_the_guest_and_is_never_shown_again() -> None:
    seen: list[Machine] = []

    class Guests:
        def powered_on(self, machine: Machine) -> None:
            seen.append(machine)

        def powered_off(self, ext_id: str, *, crashed: bool) -> None:
            seen.append(Machine(ext_id, f"off {crashed}", ""))

        def readdressed(self, ext_id: str, addresses: tuple[str, ...]) -> None: ...

        def removed(self, ext_id: str) -> None:
            seen.append(Machine(ext_id, "removed", ""))

    call = Caller(Prism(guests=Guests()))
    script = {"$objectType": "vmm.v4.ahv.config.Userdata", "value": base64.b64encode(b"#cloud-config\n").decode()}
    custom = {"config": {"$objectType": "vmm.v4.ahv.config.CloudInit", "cloudInitScript": script}}
    ext_id = await call.make("web", on=True, guestCustomization=custom)
    vm, etag = await call.vm(ext_id)
    assert "guestCustomization" not in vm
    assert vm["cdRoms"][0]["isoType"] == "GUEST_CUSTOMIZATION"
    await call("DELETE", f"{VMS}/{ext_id}", if_match=etag)
    first = seen[0]
    assert (first.user_data, first.image_os, first.image_type) == (b"#cloud-config\n", "ubuntu", "DISK_IMAGE")
    assert first.addresses[0].startswith("10.0.")
    assert [machine.name for machine in seen[1:]] == ["off False", "removed"]


async def test_a_task_runs_for_its_time_and_shows_progress() -> None:
    clock = HandClock()
    call = Caller(Prism(clock=clock, pace=Pace(default=Progress(seconds=10))))
    answer = await call.create("web")
    running = await call.task(answer)
    assert (running["status"], running["progressPercentage"]) == ("RUNNING", 0)
    ext_id = running["entitiesAffected"][0]["extId"]
    assert (await call("GET", f"{VMS}/{ext_id}")).status == 404
    clock.pass_by(5)
    assert (await call.task(answer))["progressPercentage"] == 50
    clock.pass_by(60)
    done = await call.task(answer)
    assert (done["status"], done["progressPercentage"]) == ("SUCCEEDED", 100)
    assert done["completedTime"] == "2026-01-01T00:00:10.000000Z"  # when it came due, not when somebody looked


async def test_a_saved_world_goes_on_with_its_tasks() -> None:
    clock = HandClock()
    call = Caller(Prism(clock=clock, pace=Pace(default=Progress(seconds=10))))
    answer = await call.create("web")
    saved = call.prism.world.snapshot()
    again = Caller(Prism(saved, clock=clock))
    assert len(again.prism.world.vms) == 0
    clock.pass_by(10)
    assert (await again.task(answer))["status"] == "SUCCEEDED"
    assert [vm.name for vm in again.prism.world.vms] == ["web"]


async def test_a_canceled_task_changes_nothing() -> None:
    call = Caller(Prism(pace=Pace(default=Progress(never=True))))
    answer = await call.create("web")
    task = answer.body["data"]["extId"]
    assert (await call("POST", f"/api/prism/v4.3/config/tasks/{task}/$actions/cancel")).status == 200
    assert (await call.task(answer))["status"] == "CANCELED"
    assert len(call.prism.world.vms) == 0


async def test_the_same_seed_gives_the_same_world() -> None:
    ids = []
    for _ in range(2):
        call = Caller(Prism(seed=3))
        ids.append([await call.make(name) for name in ("a", "b")])
    assert ids[0] == ids[1]


async def test_a_clone_has_disks_and_identity_of_its_own(call: Caller) -> None:
    ext_id = await call.make("web")
    source, etag = await call.vm(ext_id)
    answer = await call("POST", f"{VMS}/{ext_id}/$actions/clone", {"name": "copy"}, if_match=etag)
    task = await call.task(answer)
    copy, _ = await call.vm(task["entitiesAffected"][0]["extId"])
    assert copy["name"] == "copy"
    assert copy["disks"][0]["extId"] != source["disks"][0]["extId"]
    assert copy["nics"][0]["backingInfo"]["macAddress"] != source["nics"][0]["backingInfo"]["macAddress"]
