"""Capacity is real: what is full refuses."""

from __future__ import annotations

from typing import Any

from homeport.sim.engine.fault import parse_faults
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.world import parse_world
from unit.sim.prism.prism_caller import VMS, Caller

SMALL = """
clusters:
- name: nutanix-cluster-1
  hosts:
  - {name: h1, memoryBytes: 10737418240, cores: 4, threads: 8}
  - {name: h2, memoryBytes: 10737418240, cores: 4, threads: 8}
containers:
- {name: SelfServiceContainer, cluster: nutanix-cluster-1, capacityBytes: 107374182400}
subnets:
- {name: vm-network, clusters: [nutanix-cluster-1], cidr: 10.0.0.0/24, pools: [10.0.0.10-10.0.0.12]}
images:
- {name: ubuntu-22.04-kube-v1.28.0, sizeBytes: 10737418240}
projects:
- {name: small, vcpuLimit: 5}
gpus:
- {name: T4, cluster: nutanix-cluster-1, host: h1, deviceId: 7864, count: 1}
users:
- {name: admin, passwords: [password]}
"""


def caller() -> Caller:
    return Caller(Prism(parse_world(SMALL)))


async def test_memory_of_hosts_runs_out_at_power_on_and_comes_back() -> None:
    call = caller()
    ids = [await call.make(f"vm-{number}", nics=[], memorySizeBytes=6 * 1024**3) for number in range(3)]
    assert [(await call.power(each, "power-on"))["status"] for each in ids] == ["SUCCEEDED", "SUCCEEDED", "FAILED"]
    hosts = {(await call.vm(each))[0]["host"]["extId"] for each in ids[:2]}
    assert len(hosts) == 2  # spread over both
    failed = (await call.power(ids[2], "power-on"))["errorMessages"][0]
    assert failed["code"] == "VMM-34418"
    await call.power(ids[0], "power-off")
    assert (await call.power(ids[2], "power-on"))["status"] == "SUCCEEDED"


async def test_a_machine_larger_than_any_host_is_never_placed() -> None:
    call = caller()
    sizes: tuple[dict[str, Any], ...] = ({"memorySizeBytes": 11 * 1024**3}, {"numSockets": 9})
    for more in sizes:
        ext_id = await call.make("big", nics=[], **more)
        assert (await call.power(ext_id, "power-on"))["status"] == "FAILED"


async def test_a_full_container_fails_the_task_and_keeps_nothing() -> None:
    call = caller()
    disk = {"$objectType": "vmm.v4.ahv.config.VmDisk", "diskSizeBytes": 60 * 1024**3}
    await call.make("one", disks=[{"backingInfo": disk}])
    held = dict(call.prism.core.usage.held(call.subnet()))
    task = await call.task(await call.create("two", disks=[{"backingInfo": disk}]))
    assert task["status"] == "FAILED"
    assert "SelfServiceContainer" in task["errorMessages"][0]["message"]
    assert len(call.prism.world.vms) == 1
    assert call.prism.core.usage.held(call.subnet()) == held


async def test_a_pool_without_addresses_fails_the_task_until_one_is_free() -> None:
    call = caller()
    ids = [await call.make(f"vm-{number}", disks=[]) for number in range(3)]
    assert (await call.task(await call.create("fourth", disks=[])))["status"] == "FAILED"
    _, etag = await call.vm(ids[1])
    await call("DELETE", f"{VMS}/{ids[1]}", if_match=etag)
    assert (await call.task(await call.create("fourth", disks=[])))["status"] == "SUCCEEDED"


async def test_a_machine_with_two_nics_gives_its_first_address_back_when_there_is_no_second() -> None:
    call = caller()
    await call.make("one", disks=[])
    await call.make("two", disks=[])
    nic = {"networkInfo": {"subnet": {"extId": call.subnet()}}}
    assert (await call.task(await call.create("three", disks=[], nics=[nic, nic])))["status"] == "FAILED"
    await call.make("four", disks=[])


async def test_the_last_gpu_is_given_once() -> None:
    call = caller()
    gpu = {"mode": "PASSTHROUGH_COMPUTE", "deviceId": 7864, "vendor": "NVIDIA"}
    first = await call.make("one", nics=[], gpus=[gpu])
    assert (await call.task(await call.create("two", nics=[], gpus=[gpu])))["status"] == "FAILED"
    profiles = f"/api/clustermgmt/v4.3/config/clusters/{call.cluster()}/physical-gpu-profiles"
    shown = (await call("GET", profiles)).body["data"][0]["physicalGpuConfig"]
    assert (shown["isInUse"], shown["assignable"]) == (True, 0)
    await call.power(first, "power-on")
    vm, _ = await call.vm(first)
    host = next(host for cluster in call.prism.world.clusters for host in cluster.hosts if host.name == "h1")
    assert vm["host"]["extId"] == host.ext_id


async def test_a_project_over_its_quota_refuses() -> None:
    call = caller()
    project = {"extId": next(each.ext_id for each in call.prism.world.projects)}
    await call.make("one", nics=[], numSockets=4, project=project)
    task = await call.task(await call.create("two", nics=[], numSockets=2, project=project))
    assert task["errorMessages"][0]["code"] == "VMM-31802"


async def test_a_running_machine_grows_no_further_than_its_host() -> None:
    call = caller()
    ext_id = await call.make("web", nics=[], on=True)
    for memory, status in ((10 * 1024**3, "SUCCEEDED"), (11 * 1024**3, "FAILED")):
        _, etag = await call.vm(ext_id)
        answer = await call("PUT", f"{VMS}/{ext_id}", {"memorySizeBytes": memory}, if_match=etag)
        assert (await call.task(answer))["status"] == status


async def test_one_address_left_can_not_be_changed_for_another() -> None:
    call = caller()
    call.prism.faults.set(parse_faults("faults: [{match: {entity: last}, effect: {kind: address-change}}]"))
    for name in ("one", "two"):
        await call.make(name, disks=[])
    ext_id = await call.make("last", disks=[], on=True)
    vm, _ = await call.vm(ext_id)
    assert vm["powerState"] == "ON"
    assert "ipv4Config" not in vm["nics"][0]["networkInfo"]
