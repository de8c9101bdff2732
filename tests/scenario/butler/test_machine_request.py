"""MachineRequests: one VM on any provider, made once, followed, and gone when the request is gone."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any

import pytest

from conformance.provider.harvester import open_harvester
from conformance.provider.nutanix import open_nutanix
from conformance.provider.vendor import Open
from homeport.api.butler.v1alpha1 import MachineRequest, ProviderConfig
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from homeport.platforms.butler.machine.record import CONFIG_MAP, RECORDS, find_lost, record_name
from homeport.runtime.testing import virtual
from scenario.butler.infrastructure import NAMESPACE, SECRET, Infrastructure, infrastructure
from scenario.capi.fault import Killer, Late
from scenario.harvester import manifest as harvester_manifest

VENDORS: dict[str, Open] = {
    "nutanix-v4": partial(open_nutanix, version="v4"),
    "nutanix-v3": partial(open_nutanix, version="v3"),
    "harvester": open_harvester,
}
ONE = Key(NAMESPACE, "one")


@pytest.fixture(params=list(VENDORS))
def vendor(request: pytest.FixtureRequest) -> Open:
    return VENDORS[request.param]


@virtual
async def test_a_machine_runs_has_an_address_and_goes(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine()
        request = await i.running()
        status = request.status
        assert status.provider == i.type
        assert status.provider_id
        (found,) = i.vendor.machines()
        assert (status.ip_address, status.ip_addresses) == (found.addresses[0], list(found.addresses))
        assert condition.is_true(status.conditions, "Ready")
        assert request.metadata.finalizers == [f"machinerequest.butler.butlerlabs.dev/{i.type}-finalizer"]
        await i.deleted()
        assert i.vendor.machines() == []
        assert i.vendor.created == ["one"]
        assert i.vendor.cluster_objects("one") == []


@virtual
async def test_the_other_spelling_makes_the_same_machine(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        size = {"cpu": 2, "memory": "4Gi", "disk": "40Gi"}
        more: dict[str, Any] = {"providerRef": None, "cpu": None, "memoryMB": None, "diskGB": None}
        await i.machine(providerConfigRef={"name": "main"}, role="controlplane", resources=size, **more)
        await i.running()
        assert i.vendor.created == ["one"]


@virtual
async def test_a_machine_waits_for_its_provider(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.machine()
        request = await i.phase("one", "Failed", words='ProviderConfig "main" not found')
        assert request.status.next_attempt
        assert not request.metadata.finalizers
        await i.provider()
        await i.running()


@virtual
async def test_a_failure_says_when_it_is_tried_again_and_is_never_final(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        undo = await i.vendor.remove_image()
        await i.machine()
        request = await i.phase("one", "Failed", words="image")
        assert request.status.failure_reason == "NotFound"
        assert request.status.failure_message
        assert request.status.next_attempt
        assert f"ProviderConfig {NAMESPACE}/main" in str(request.status.conditions)
        await i.pass_time(900)
        assert i.vendor.machines() == []
        await undo()
        request = await i.running()
        assert not request.status.failure_reason
        assert request.status.next_attempt is None
        assert i.vendor.created == ["one"]


@virtual
async def test_a_failed_request_can_be_corrected(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine(image="no-such-image")
        await i.phase("one", "Failed", words="no-such-image")
        await i.client.patch(MachineRequest, ONE, MergePatch({"spec": {"image": None}}))
        await i.running(timeout=120)


@virtual
async def test_no_room_is_reported_and_over_when_there_is_some(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        undo = await i.vendor.fill_hosts()
        await i.machine()
        await i.phase("one", "Failed", "Creating", words=": ")
        await i.pass_time(300)
        await undo()
        await i.running()
        assert len(i.vendor.machines()) == 1


@virtual
async def test_an_outage_makes_a_running_machine_unknown_and_it_is_running_again_afterwards(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine()
        before = (await i.running()).status.ip_address
        i.vendor.refuse(503)
        request = await i.phase("one", "Unknown", words="Unreachable", timeout=3600)
        assert request.status.ip_address == before
        i.vendor.clear_faults()
        await i.running()
        assert i.vendor.created == ["one"]


@virtual
async def test_a_machine_that_somebody_stopped_is_reported_and_not_started(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine()
        await i.running()
        await i.vendor.power_off("one")
        await i.phase("one", "Unknown", words="PoweredOff", timeout=1200)
        await i.pass_time(600)
        assert not i.vendor.machines()[0].on
        await i.vendor.power_on("one")
        await i.running()


@virtual
async def test_a_machine_that_somebody_deleted_is_reported_and_not_made_again(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine()
        await i.running()
        await i.vendor.delete_machine("one")
        await i.phase("one", "Unknown", words="InstanceNotFound", timeout=1200)
        await i.pass_time(900)
        assert i.vendor.created == ["one"]
        await i.deleted()


@virtual
async def test_a_machine_of_others_is_neither_adopted_nor_deleted(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        foreign = await i.vendor.create_foreign("one")
        await i.machine()
        await i.phase("one", "Running", "Failed")
        await i.deleted()
        assert [each.id for each in i.vendor.machines()] == [foreign]


@virtual
async def test_a_request_that_is_deleted_while_its_machine_is_made_leaves_nothing(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        i.vendor.slow_operations(20.0)
        await i.provider()
        await i.machine()
        await i.phase("one", "Creating")
        await i.deleted()
        await i.pass_time(300)
        assert i.vendor.machines() == []


@virtual
async def test_a_password_that_changes_is_no_obstacle(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine()
        await i.running()
        await i.vendor.change_password("another")
        await i.client.delete(MachineRequest, ONE)
        await i.phase("one", "Deleting", words="credentials", timeout=3600)
        await i.secret("another")
        await i.plane.gone(MachineRequest, ONE)
        assert i.vendor.machines() == []


@virtual
async def test_a_deletion_without_credentials_says_what_it_waits_for(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine()
        await i.running()
        await i.client.delete(SECRET, Key(NAMESPACE, "credentials"))
        await i.client.delete(MachineRequest, ONE)
        words = f"Secret {NAMESPACE}/credentials does not exist"
        request = await i.phase("one", "Deleting", words=words)
        assert f"remove the finalizer machinerequest.butler.butlerlabs.dev/{i.type}-finalizer" in str(request.status)
        await i.secret()
        await i.plane.gone(MachineRequest, ONE)
        assert i.vendor.machines() == []


@virtual
async def test_a_machine_stays_when_its_provider_becomes_one_of_another_type() -> None:
    async with infrastructure(VENDORS["nutanix-v4"]) as i:
        await i.provider()
        await i.machine()
        await i.running()
        kubeconfig = json.dumps(harvester_manifest.kubeconfig(b"", "token", "https://127.0.0.1:1"))
        await i.plane.have(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "other", "namespace": NAMESPACE},
                "stringData": {"kubeconfig": kubeconfig},
            }
        )
        part = {"credentialsRef": {"name": "other"}, "networkName": "default/workloads"}
        other = MergePatch({"spec": {"type": "harvester", "harvester": part}})
        await i.client.patch(ProviderConfig, Key(NAMESPACE, "main"), other)
        await i.phase("one", "Unknown", words="the VM of this request is on nutanix")
        await i.client.delete(MachineRequest, ONE)
        await i.phase("one", "Deleting", words="the VM of this request is on nutanix")
        assert len(i.vendor.machines()) == 1
        await i.client.patch(ProviderConfig, Key(NAMESPACE, "main"), MergePatch({"spec": {"type": "nutanix"}}))
        await i.plane.gone(MachineRequest, ONE, 1800)
        assert i.vendor.machines() == []


@virtual
async def test_a_provider_with_machines_is_not_deleted_before_them(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine()
        await i.running()
        await i.client.delete(ProviderConfig, Key(NAMESPACE, "main"))
        await i.says("Ready", "False", "InUse", f"MachineRequest {NAMESPACE}/one")
        await i.deleted()
        await i.plane.gone(ProviderConfig, Key(NAMESPACE, "main"))


@virtual
async def test_user_data_comes_from_a_secret(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine(userData=None, userDataSecretRef={"name": "data"})
        await i.phase("one", "Failed", words=f"spec.userDataSecretRef: Secret {NAMESPACE}/data does not exist")
        meta = {"name": "data", "namespace": NAMESPACE}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"userData": "#cloud-config\n"}}
        await i.plane.have(body)
        await i.running(timeout=120)


@virtual
async def test_a_paused_request_is_left_alone(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine(paused=True)
        await i.pass_time(300)
        assert i.vendor.machines() == []
        await i.client.patch(MachineRequest, ONE, MergePatch({"spec": {"paused": False}}))
        await i.running()


async def phase_of(i: Infrastructure, key: Key, phase: str) -> MachineRequest:
    def fits(request: MachineRequest) -> bool:
        return request.status.phase == phase

    found: MachineRequest = await i.plane.until(MachineRequest, key, fits, 900)
    return found


@virtual
async def test_a_provider_of_a_team_refuses_requests_of_other_namespaces(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        own = {**i.vendor.platform_part(), "credentialsRef": {"name": "credentials"}}
        scope = {"type": "team", "teamRef": {"name": "red"}}
        await i.secret()
        await i.config({"type": i.type, i.type: own, "scope": scope})
        await i.ready()
        for namespace, phase in (("blue", "Failed"), ("red", "Running")):
            spec = {"providerRef": {"name": "main", "namespace": NAMESPACE}, "machineName": namespace, "role": "worker"}
            body = {
                "apiVersion": "butler.butlerlabs.dev/v1alpha1",
                "kind": "MachineRequest",
                "metadata": {"name": namespace, "namespace": namespace},
                "spec": spec,
            }
            await i.plane.have(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
                body,
            )
            found = await phase_of(i, Key(namespace, namespace), phase)
            assert ('is for team "red" alone' in str(found.status)) == (phase == "Failed")
        assert i.vendor.created == ["red"]


@virtual
async def test_a_provider_in_the_namespace_of_a_team_is_for_that_namespace() -> None:
    async with infrastructure(VENDORS["nutanix-v4"]) as i:
        await i.secret()
        own = {**i.vendor.platform_part(), "credentialsRef": {"name": "credentials", "namespace": NAMESPACE}}
        meta = {"apiVersion": "butler.butlerlabs.dev/v1alpha1"}
        await i.plane.have(
            *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}} for each in ("red", "blue")),
            {**meta, "kind": "Team", "metadata": {"name": "red"}, "spec": {}},
            {
                **meta,
                "kind": "ProviderConfig",
                "metadata": {"name": "own", "namespace": "red"},
                "spec": {"type": i.type, i.type: own},
            },
        )
        for namespace, phase in (("blue", "Failed"), ("red", "Running")):
            spec = {"providerRef": {"name": "own", "namespace": "red"}, "machineName": namespace, "role": "worker"}
            place = {"name": namespace, "namespace": namespace}
            await i.plane.have({**meta, "kind": "MachineRequest", "metadata": place, "spec": spec})
            found = await phase_of(i, Key(namespace, namespace), phase)
            assert ('ProviderConfig red/own belongs to team "red"' in str(found.status)) == (phase == "Failed")
        assert i.vendor.created == ["red"]


# Less than the time between two probes of a ProviderConfig: each writes when it was.
QUIET = 250


# -- trouble ---------------------------------------------------------------------------------------------------------


def test_controllers_that_never_live_longer_than_one_write_make_one_machine(vendor: Open) -> None:
    @virtual
    async def run() -> None:
        killer = Killer(lambda: 1)
        async with infrastructure(vendor, wrap=killer.wrap) as i:
            i.vendor.slow_operations(3.0)
            await i.provider()
            await i.machine()
            while await killer.death(within=QUIET):
                await i.restart()
            found = await i.client.get(MachineRequest, ONE)
            assert found.status.phase == "Running"
            assert i.vendor.created == ["one"]
            await i.client.delete(MachineRequest, ONE)
            while await killer.death(within=QUIET):
                await i.restart()
            await i.plane.gone(MachineRequest, ONE)
            assert i.vendor.machines() == []
            assert killer.kills > 5

    run()


@pytest.mark.parametrize("seed", range(3))
def test_late_watches_make_no_second_machine(vendor: Open, seed: int) -> None:
    @virtual
    async def run() -> None:
        rng = random.Random(seed)
        async with infrastructure(vendor, wrap=lambda client: Late(client, rng, 20.0)) as i:
            i.vendor.slow_operations(5.0)
            await i.provider()
            for name in ("one", "two", "three"):
                await i.machine(name)
            for name in ("one", "two", "three"):
                await i.running(name)
            for name in ("one", "two", "three"):
                await i.client.delete(MachineRequest, Key(NAMESPACE, name))
            for name in ("one", "two", "three"):
                await i.plane.gone(MachineRequest, Key(NAMESPACE, name), 1800)
            assert sorted(i.vendor.created) == ["one", "three", "two"]
            assert i.vendor.machines() == []

    run()


@virtual
async def test_a_vm_whose_request_was_removed_by_force_is_listed_until_it_is_gone(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine()
        request = await i.running()
        assert await find_lost(i.client) == []
        await i.plane.stop()
        await i.client.delete(MachineRequest, ONE)
        await i.client.patch(MachineRequest, ONE, MergePatch({"metadata": {"finalizers": None}}))
        await i.start()
        (lost,) = await find_lost(i.client)
        assert (lost.request, lost.uid, lost.machine) == (ONE, request.metadata.uid, request.spec.machine_name)
        record = Key(NAMESPACE, record_name(lost.uid))
        await i.plane.until(CONFIG_MAP, record, lambda each: "vm" in each["data"], 900, what="being found")
        (lost,) = await find_lost(i.client)
        assert lost.vm in request.status.provider_id
        assert lost.state == "power on"
        assert len(i.vendor.machines()) == 1  # nothing deletes it but the user
        await i.vendor.delete_machine("one")
        await i.plane.gone(CONFIG_MAP, record, 900)
        assert await find_lost(i.client) == []


@virtual
async def test_a_request_that_is_deleted_leaves_no_record(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine()
        request = await i.running()
        record = Key(NAMESPACE, record_name(request.metadata.uid))
        await i.client.delete(CONFIG_MAP, record)  # as after a move, or from an earlier release
        await i.client.patch(MachineRequest, ONE, MergePatch({"spec": {"labels": {"a": "b"}}}))
        await i.plane.until(CONFIG_MAP, record, lambda each: True, 900, what="being written again")
        await i.deleted()
        assert await find_lost(i.client) == []
        assert (await i.client.list(CONFIG_MAP, RECORDS)).items == []
