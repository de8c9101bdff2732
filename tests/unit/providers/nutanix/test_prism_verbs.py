"""The verbs on Prism Central, in both versions of its API, against the simulator over TLS."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from homeport.client.dial import DialOptions
from homeport.infra.error import Denied, Exhausted, Misconfigured, Missing, Rejected, Taken, Throttled, Unreachable
from homeport.infra.vendor.endpoint import Endpoint
from homeport.infra.vendor.task import Task
from homeport.providers.nutanix.client import Client, Credentials, failed_task
from homeport.providers.nutanix.prism.record import Category, Disk, NewNic, NewVm, Prism
from homeport.providers.nutanix.prism.v3 import PrismV3
from homeport.providers.nutanix.prism.v4 import probe_v4
from homeport.runtime.clock import SystemClock
from homeport.sim.engine.fault import parse_faults
from unit.providers.nutanix.prism_site import Site, prism_site

BOTH = pytest.mark.parametrize("version", ["v4", "v3"])


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with prism_site(tmp_path) as made:
        yield made


async def over(prism: Prism, task_id: str) -> Task:
    async with asyncio.timeout(10):
        while True:
            (task,) = await prism.tasks([task_id])
            if task.status in ("succeeded", "failed"):
                return task
            await asyncio.sleep(0.01)


async def new_vm(prism: Prism, name: str = "one", **more: object) -> NewVm:
    element = next(each for each in await prism.elements() if each.name == "nutanix-cluster-1")
    subnet = next(each for each in await prism.subnets() if each.name == "vm-network")
    image = next(each for each in await prism.images() if each.name == "ubuntu-22.04-kube-v1.28.0")
    category = await prism.find_category("KubernetesClusterName", "c") or await prism.create_category(
        "KubernetesClusterName", "c", "for tests"
    )
    return NewVm(
        name=name,
        cluster_id=element.id,
        sockets=2,
        cores_per_socket=1,
        memory_bytes=4 << 30,
        disks=[Disk(40 << 30, image_id=image.id)],
        nics=[NewNic(subnet.id)],
        categories=[category],
        user_data=b"#cloud-config\n",
        meta_data=b"{}",
        marks=["homeport-machine:u-1"],
        boot="legacy",
        **more,  # type: ignore[arg-type]
    )


@BOTH
async def test_what_there_is_is_listed_whole(site: Site, version: str) -> None:
    prism = await site.verbs(version)
    elements = {each.name: each for each in await prism.elements()}
    assert elements["prism-central"].is_central
    assert not elements["nutanix-cluster-1"].is_central
    subnet = next(each for each in await prism.subnets() if each.name == "vm-network")
    assert subnet.cluster_ids == (elements["nutanix-cluster-1"].id,)
    assert subnet.pools == (("10.0.0.110", "10.0.0.250"), ("10.0.1.1", "10.0.3.250"))
    assert subnet.cidr == "10.0.0.0/22"
    kinds = {each.name: each.kind for each in await prism.images()}
    assert kinds["talos-1.9"] == "disk"
    assert kinds["talos-1.9-iso"] == "iso"
    assert "kubernetes-project" in {each.name for each in await prism.projects()}
    gpus = await prism.gpus(elements["nutanix-cluster-1"].id)
    assert {each.name for each in gpus} >= {"Tesla T4 compute"}
    memory = sum(each.memory_bytes for each in await prism.hosts(elements["nutanix-cluster-1"].id))
    assert memory > 100 << 30


@BOTH
async def test_a_machine_is_created_and_deleted(site: Site, version: str) -> None:
    prism = await site.verbs(version)
    task = await over(prism, await prism.create_vm(await new_vm(prism), str(uuid.uuid4())))
    assert task.status == "succeeded"
    (found,) = await prism.find_vms(names=["one"])
    vm = await prism.vm(found.id)
    assert vm is not None
    if version == "v3":  # which can make machines that are on
        assert vm.power == "on"
        site.prism.power.off(vm.id)
        vm = await prism.vm(found.id)
        assert vm is not None
    assert vm.power == "off"
    assert vm.mark("homeport-machine") == "u-1"
    category = await prism.find_category("KubernetesClusterName", "c")
    assert category is not None
    assert [each.id for each in await prism.find_vms() if category.id in each.category_ids] == [vm.id]
    with pytest.raises(Taken):
        await prism.delete_category(category)
    assert (await over(prism, await prism.power_on(vm))).status == "succeeded"
    vm = await prism.vm(found.id)
    assert vm is not None
    assert vm.power == "on"
    assert vm.addresses[0].startswith("10.0.")
    assert (await over(prism, await prism.delete_vm(vm))).status == "succeeded"
    assert await prism.vm(found.id) is None
    await prism.delete_category(category)
    assert await prism.find_category("KubernetesClusterName", "c") is None


async def test_a_create_that_is_sent_twice_makes_one_machine(site: Site) -> None:
    prism = await site.verbs("v4")
    vm, request = await new_vm(prism), str(uuid.uuid4())
    first, second = await prism.create_vm(vm, request), await prism.create_vm(vm, request)
    assert first == second
    await over(prism, first)
    assert len(await prism.find_vms(names=["one"])) == 1


@BOTH
async def test_many_tasks_are_asked_for_at_once(site: Site, version: str) -> None:
    prism = await site.verbs(version)
    vms = [await new_vm(prism, f"m{number}") for number in range(5)]
    ids = [await prism.create_vm(vm, str(uuid.uuid4())) for vm in vms]
    before = len(site.prism.journal)
    found = await prism.tasks(ids)
    assert {each.id for each in found} == set(ids)
    if version == "v4":
        assert len(site.prism.journal) == before + 1


@BOTH
async def test_a_full_cluster_is_reported_as_exhausted(site: Site, version: str) -> None:
    prism = await site.verbs(version)
    huge = dataclasses.replace(await new_vm(prism), memory_bytes=2 << 40)
    task = await over(prism, await prism.create_vm(huge, str(uuid.uuid4())))
    if task.status == "succeeded":  # room is looked for when it is powered on
        (vm,) = await prism.find_vms(names=["one"])
        task = await over(prism, await prism.power_on(vm))
    assert task.status == "failed"
    assert isinstance(failed_task(task.error, task.codes, "VM one"), Exhausted)


async def probed(client: Client) -> None:
    found = await probe_v4(client)
    assert found is not None
    await found.elements()


@BOTH
async def test_wrong_credentials_are_denied_and_not_shown(site: Site, version: str) -> None:
    client = site.client(Credentials("admin", "wrong-secret", origin="Secret default/creds"))
    with pytest.raises(Denied, match="Secret default/creds") as caught:
        await (PrismV3(client).elements() if version == "v3" else probed(client))
    assert "wrong-secret" not in str(caught.value)
    assert "wrong-secret" not in repr(client.__dict__)


async def test_an_untrusted_certificate_says_which_field_to_fill(site: Site) -> None:
    client = site.client(dial=DialOptions())
    with pytest.raises(Misconfigured, match="additionalTrustBundle"):
        await client.call("GET", "/api/nutanix/v3/users/me")


async def test_a_refused_connection_is_unreachable_and_the_breaker_opens(site: Site) -> None:
    endpoint = Endpoint("Prism Central 127.0.0.1:1", SystemClock())
    client = Client("127.0.0.1", 1, Credentials("a", "b"), endpoint, dial=DialOptions())
    for _ in range(5):
        with pytest.raises(Unreachable, match="can't be reached"):
            await client.call("GET", "/x")
    assert endpoint.open
    with pytest.raises(Unreachable, match="can't be reached"):
        await client.call("GET", "/x")
    await client.close()


async def test_an_expired_session_is_renewed_in_silence(site: Site) -> None:
    prism = await site.verbs("v4")
    assert await prism.elements()
    site.prism.sessions.end_all()
    assert await prism.elements()


async def test_throttling_says_when_to_come_back(tmp_path: Path) -> None:
    faults = parse_faults("faults:\n- match: {method: GET}\n  effect: {kind: throttle, retryAfter: 7}\n")
    async with prism_site(tmp_path, faults) as site:
        with pytest.raises(Throttled) as caught:
            await site.client().call("GET", "/api/nutanix/v3/users/me")
        assert caught.value.after == 7


@BOTH
async def test_what_is_not_there_is_missing_or_none(site: Site, version: str) -> None:
    prism = await site.verbs(version)
    assert await prism.vm(str(uuid.uuid4())) is None
    assert await prism.tasks([str(uuid.uuid4())]) == []
    await prism.delete_category(Category(str(uuid.uuid4()) if version == "v4" else "no/thing", "no", "thing"))
    nowhere = dataclasses.replace(await new_vm(prism), cluster_id=str(uuid.uuid4()))
    with pytest.raises((Missing, Rejected)):
        await prism.create_vm(nowhere, str(uuid.uuid4()))
