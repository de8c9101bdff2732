"""Each kind of fault does what it says, in the words of the vendor."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from homeport.runtime.clock import LoopClock, run_virtual
from homeport.sim.engine.call import Dropped
from homeport.sim.engine.fault import Fault, parse_faults
from homeport.sim.engine.guest import Machine
from homeport.sim.engine.progress import Progress
from homeport.sim.prism.pace import Pace
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.world import default_world
from unit.sim.prism.prism_caller import VMS, Caller, HandClock, code_of

IMAGES = "/api/vmm/v4.3/content/images"


def faults(text: str) -> tuple[Fault, ...]:
    return parse_faults(f"faults:\n{text}")


def caller(text: str, **more: Any) -> Caller:
    return Caller(Prism(faults=faults(text), **more))


async def test_a_status_comes_with_the_error_body_of_either_api() -> None:
    call = caller("- {effect: {kind: status, status: 503, code: VMM-10011, message: upgrading}, times: 2}")
    new = await call("GET", IMAGES)
    assert (new.status, code_of(new)) == (503, "VMM-10011")
    assert new.body["$objectType"] == "vmm.v4.content.ListImagesApiResponse"
    old = await call("POST", "/api/nutanix/v3/vms/list", {})
    assert (old.status, old.body["code"], old.body["message_list"][0]["message"]) == (503, 503, "upgrading")
    assert (await call("GET", IMAGES)).status == 200


async def test_throttling_says_when_to_come_back() -> None:
    call = caller("- {match: {method: POST, every: 2}, effect: {kind: throttle, retryAfter: 3}}")
    statuses = [(await call.create(f"vm-{number}")).status for number in range(4)]
    assert statuses == [202, 429, 202, 429]
    throttled = await call("POST", "/api/nutanix/v3/vms/list", {})
    assert throttled.status == 200
    throttled = await call("POST", "/api/nutanix/v3/vms/list", {})
    assert throttled.headers["Retry-After"] == "3"


def test_a_delay_takes_its_time() -> None:
    async def run() -> float:
        clock = LoopClock()
        call = Caller(Prism(clock=clock, faults=faults("- {effect: {kind: delay, seconds: 40}}")))
        before = clock.monotonic()
        assert (await call("GET", IMAGES)).status == 200
        assert call.prism.journal.newest(1)[0].seconds == pytest.approx(40)
        return clock.monotonic() - before

    assert run_virtual(run()) == pytest.approx(40)


@pytest.mark.parametrize(("when", "machines"), [("before", 0), ("after", 1)])
async def test_a_connection_drops_before_or_after_the_request_took_effect(when: str, machines: int) -> None:
    call = caller(f"- {{match: {{method: POST, nth: 1}}, effect: {{kind: drop, when: {when}}}}}")
    request, body = str(uuid.uuid4()), call.vm_body("web")
    with pytest.raises(Dropped):
        await call("POST", VMS, body, ntnx_request_id=request)
    assert len(call.prism.world.vms) == machines
    assert call.prism.journal.newest(1)[0].status == 0
    again = await call("POST", VMS, body, ntnx_request_id=request)  # the client tries again with the same id
    assert again.status == 202
    assert len(call.prism.world.vms) == 1


async def test_a_stale_read_shows_the_past() -> None:
    clock = HandClock()
    call = caller(
        "- {match: {method: GET, route: '*/vms*', nth: [2, 4]}, effect: {kind: stale, seconds: 5}}", clock=clock
    )
    await call.make("old")
    clock.pass_by(10)
    ext_id = await call.make("new")
    assert (await call("GET", f"{VMS}/{ext_id}")).status == 200
    assert (await call("GET", f"{VMS}/{ext_id}")).status == 404  # five seconds ago there was no such machine
    assert (await call("GET", VMS)).body["metadata"]["totalAvailableResults"] == 2
    assert [vm["name"] for vm in (await call("GET", VMS)).body["data"]] == ["old"]


async def test_a_session_expires_and_credentials_open_another() -> None:
    call = caller("- {match: {nth: 3}, effect: {kind: session-expiry}}")
    assert (await call("GET", IMAGES)).status == 200
    assert (await call("GET", IMAGES, auth=False)).status == 200
    assert (await call("GET", IMAGES, auth=False)).status == 401
    assert (await call("GET", IMAGES, auth=False)).status == 401
    assert (await call("GET", IMAGES)).status == 200
    assert (await call("GET", IMAGES, auth=False)).status == 200


async def test_a_task_fails_with_what_the_fault_says_and_changes_nothing() -> None:
    call = caller(
        "- match: {operation: kVmCreate, entity: web-*, nth: 1}\n"
        "  effect: {kind: task-failure, code: VMM-34418, message: no host}\n"
    )
    task = await call.task(await call.create("web-1"))
    assert task["status"] == "FAILED"
    assert (task["errorMessages"][0]["code"], task["errorMessages"][0]["message"]) == ("VMM-34418", "no host")
    assert len(call.prism.world.vms) == 0
    assert task["entitiesAffected"][0]["rel"] == "vmm:ahv:config:vm"  # of a machine that never was
    await call.make("web-2")


async def test_a_task_hangs_for_a_while_or_for_ever() -> None:
    clock = HandClock()
    call = caller(
        "- {match: {entity: slow}, effect: {kind: task-hang, seconds: 30}}\n"
        "- {match: {entity: stuck}, effect: {kind: task-hang}}\n",
        clock=clock,
    )
    slow, stuck = await call.create("slow"), await call.create("stuck")
    clock.pass_by(29)
    assert (await call.task(slow))["status"] == "RUNNING"
    clock.pass_by(1)
    assert (await call.task(slow))["status"] == "SUCCEEDED"
    clock.pass_by(1e6)
    assert (await call.task(stuck))["status"] == "RUNNING"


async def test_one_cluster_is_out_and_the_others_go_on() -> None:
    clock = HandClock()
    call = caller("- {match: {cluster: nutanix-cluster-1, after: 10, until: 60}, effect: {kind: outage}}", clock=clock)
    ext_id = await call.make("web", on=True)
    clock.pass_by(10)
    assert (await call.vm(ext_id))[0]["powerState"] == "UNDETERMINED"
    cluster = (await call("GET", f"/api/clustermgmt/v4.3/config/clusters/{call.cluster()}")).body["data"]
    assert cluster["config"]["isAvailable"] is False
    waiting = await call.create("waits")
    other = await call.create("other", cluster={"extId": call.cluster("cluster-01")}, nics=[])
    assert (await call.task(waiting))["status"] == "QUEUED"
    assert (await call.task(other))["status"] == "SUCCEEDED"
    clock.pass_by(50)
    assert (await call.vm(ext_id))[0]["powerState"] == "ON"
    assert (await call.task(waiting))["status"] == "SUCCEEDED"


async def test_a_full_disk_takes_no_machine_and_no_volume() -> None:
    call = caller("- {match: {cluster: nutanix-cluster-1}, effect: {kind: full-disk}}")
    assert (await call.task(await call.create("web")))["status"] == "FAILED"
    group = {"name": "vg", "clusterReference": call.cluster(), "disks": [{"diskSizeBytes": 1024}]}
    made = await call("POST", "/api/volumes/v4.3/config/volume-groups", group)
    assert (await call.task(made))["status"] == "FAILED"
    await call.make("diskless", disks=[])


class Log:
    """Guests that write down what they are told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def powered_on(self, machine: Machine) -> None:
        self.lines.append(f"on {machine.name} {','.join(machine.addresses)}".rstrip())

    def powered_off(self, ext_id: str, *, crashed: bool) -> None:
        self.lines.append("crashed" if crashed else "off")

    def readdressed(self, ext_id: str, addresses: tuple[str, ...]) -> None:
        self.lines.append(f"now {','.join(addresses)}".rstrip())

    def removed(self, ext_id: str) -> None:
        self.lines.append("removed")


def address_of(vm: dict[str, Any]) -> str:
    return str(vm["nics"][0]["networkInfo"].get("ipv4Config", {}).get("ipAddress", {}).get("value", ""))


async def test_a_machine_crashes_some_time_after_its_power_on() -> None:
    clock, log = HandClock(), Log()
    call = caller("- {match: {entity: web, nth: 1}, effect: {kind: crash, seconds: 20}}", clock=clock, guests=log)
    ext_id = await call.make("web", on=True)
    clock.pass_by(19)
    assert (await call.vm(ext_id))[0]["powerState"] == "ON"
    clock.pass_by(1)
    assert (await call.vm(ext_id))[0]["powerState"] == "OFF"
    assert log.lines[1:] == ["crashed"]
    assert (await call.power(ext_id, "power-on"))["status"] == "SUCCEEDED"
    clock.pass_by(100)
    assert (await call.vm(ext_id))[0]["powerState"] == "ON"


async def test_a_guest_never_boots_though_the_machine_is_on() -> None:
    log = Log()
    call = caller("- {match: {kind: vm, entity: bad-*}, effect: {kind: no-boot}}", guests=log)
    bad = await call.make("bad-1", on=True)
    await call.make("good-1", on=True)
    vm, _ = await call.vm(bad)
    assert vm["powerState"] == "ON"
    assert "ipv4Info" not in vm["nics"][0]["networkInfo"]
    assert [line.split()[1] for line in log.lines] == ["good-1"]


async def test_an_address_comes_late_or_never() -> None:
    clock, log = HandClock(), Log()
    call = caller(
        "- {match: {entity: late}, effect: {kind: address-late, seconds: 30}}\n"
        "- {match: {entity: none}, effect: {kind: address-late}}\n",
        clock=clock,
        guests=log,
    )
    late, none = await call.make("late", on=True), await call.make("none", on=True)
    assert address_of((await call.vm(late))[0]) == ""
    clock.pass_by(30)
    address = address_of((await call.vm(late))[0])
    assert address.startswith("10.0.")
    assert log.lines == [f"on late {address}"]
    clock.pass_by(1e6)
    assert address_of((await call.vm(none))[0]) == ""


async def test_an_address_changes_and_the_old_one_is_free() -> None:
    clock, log = HandClock(), Log()
    call = caller("- {effect: {kind: address-change, seconds: 10}}", clock=clock, guests=log)
    ext_id = await call.make("web", on=True)
    before, etag = await call.vm(ext_id)
    clock.pass_by(10)
    after, later = await call.vm(ext_id)
    assert address_of(after) not in ("", address_of(before))
    assert etag != later
    assert address_of(before) not in call.prism.core.usage.held(call.subnet())
    assert log.lines[-1] == f"now {address_of(after)}"


async def test_an_address_is_lost() -> None:
    clock, log = HandClock(), Log()
    call = caller("- {effect: {kind: address-loss, seconds: 10}}", clock=clock, guests=log)
    ext_id = await call.make("web", on=True)
    clock.pass_by(10)
    vm, _ = await call.vm(ext_id)
    assert (vm["powerState"], address_of(vm)) == ("ON", "")
    assert log.lines[-1] == "now"


async def test_what_waits_for_a_machine_is_void_once_it_was_powered_off() -> None:
    clock, log = HandClock(), Log()
    pace = Pace(boot=Progress(seconds=60))
    call = caller("- {effect: {kind: crash, seconds: 90}, times: 1}", clock=clock, guests=log, pace=pace)
    ext_id = await call.make("web", on=True)
    clock.pass_by(10)
    await call.power(ext_id, "power-off")
    await call.power(ext_id, "power-on")
    clock.pass_by(55)
    await call.vm(ext_id)
    assert log.lines == ["off"]  # the first boot was due, and is not this one
    clock.pass_by(1000)
    assert (await call.vm(ext_id))[0]["powerState"] == "ON"
    assert len(log.lines) == 2


async def test_faults_meet_requests_about_entities_in_a_state() -> None:
    call = caller("- {match: {kind: vm, state: {powerState: ON}, method: DELETE}, effect: {kind: status, status: 500}}")
    running, stopped = await call.make("a", on=True), await call.make("b")
    answers = []
    for ext_id in (running, stopped):
        _, etag = await call.vm(ext_id)
        answers.append((await call("DELETE", f"{VMS}/{ext_id}", if_match=etag)).status)
    assert answers == [500, 202]


async def test_the_journal_names_the_faults_that_struck() -> None:
    call = caller("- {name: sorry, match: {nth: 2}, effect: {kind: status, status: 500}}")
    for _ in range(3):
        await call("GET", IMAGES, query="$limit=1")
    entries = call.prism.journal.newest(10)
    assert [(entry.status, entry.faults) for entry in entries] == [(200, ()), (500, ("sorry",)), (200, ())]
    assert (entries[0].user, entries[0].query, entries[0].route) == ("admin", "$limit=1", "/api/vmm/{v}/content/images")


async def test_the_journal_keeps_the_newest_alone() -> None:
    call = Caller(Prism(journal_size=3))
    for _ in range(5):
        await call("GET", IMAGES)
    assert [entry.number for entry in call.prism.journal] == [3, 4, 5]


async def test_guests_of_a_saved_world_start_again_in_the_next() -> None:
    first, second = Log(), Log()
    call = Caller(Prism(guests=first))
    await call.make("web", on=True)
    await call.make("off")
    saved = call.prism.world.snapshot()
    again = Prism(saved, guests=second)
    again.wake_guests()
    assert second.lines == first.lines
    again.restore(saved)
    assert second.lines == [*first.lines, "removed", *first.lines]


@pytest.mark.parametrize(
    ("subnet", "fault", "lacks"),
    [
        ((), "", ()),
        (("dns", "registry"), "", ("dns", "registry")),
        (("dns",), "- {match: {entity: web}, effect: {kind: isolation}}", ("dns", "internet")),
        ((), "- {match: {entity: other}, effect: {kind: isolation, lacks: [dns]}}", ()),
    ],
)
async def test_a_machine_lacks_what_its_subnet_and_its_faults_take_away(
    subnet: tuple[str, ...], fault: str, lacks: tuple[str, ...]
) -> None:
    class Kept(Log):
        lacks: tuple[str, ...] | None = None

        def powered_on(self, machine: Machine) -> None:
            self.lacks = machine.lacks

    world = default_world()
    subnets = tuple(msgspec.structs.replace(each, lacks=subnet) for each in world.subnets)
    kept = Kept()
    given = faults(fault) if fault else ()
    call = Caller(Prism(msgspec.structs.replace(world, subnets=subnets), faults=given, guests=kept))
    await call.make("web", on=True)
    assert kept.lacks == lacks
