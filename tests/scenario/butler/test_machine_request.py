"""MachineRequests: one VM on any provider, made once, followed, and gone when the request is gone."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from conformance.provider.harvester import open_harvester
from conformance.provider.nutanix import open_nutanix
from conformance.provider.vendor import Open
from homeport.api.butler.v1alpha1 import MachineRequest, ProviderConfig
from homeport.capi.name import DELETE_FOR_MOVE
from homeport.client.errors import Unavailable
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from homeport.platforms.butler.machine.adoption import Refused, adopt, check, choose, remove
from homeport.platforms.butler.machine.record import CONFIG_MAP, RECORDS, Lost, find_lost, record_name
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


async def forced_away(i: Infrastructure, key: Key = ONE) -> Lost:
    """Its finalizers are removed while no controller runs; the record of its VM, once the provider was asked."""
    await i.client.patch(MachineRequest, key, MergePatch({"metadata": {"finalizers": None}}))
    await i.client.delete(MachineRequest, key)
    await i.plane.gone(MachineRequest, key, 60)

    def found(record: Any) -> bool:
        return "vm" in record["data"]

    (lost,) = await find_lost(i.client)
    await i.plane.until(CONFIG_MAP, lost.record, found, 900, what="being found")
    (lost,) = await find_lost(i.client)
    return lost


@virtual
async def test_a_vm_without_its_request_is_adopted_by_a_request_like_the_one_before(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine(userData="#cloud-config\npassword: secret-word\n")
        before = await i.running()
        lost = await forced_away(i)
        assert (lost.deleted, lost.provider_id) == (True, before.status.provider_id)
        assert "secret-word" not in json.dumps(dict(await i.client.get(CONFIG_MAP, lost.record)))
        check(lost, remove=False, force=False)
        await adopt(i.client, lost)
        after = await i.running()
        assert after.metadata.uid != before.metadata.uid
        assert after.status.provider_id == before.status.provider_id
        assert after.status.ip_address == before.status.ip_address
        assert (after.spec.cpu, after.spec.machine_name, after.spec.paused) == (2, "one", False)
        assert await find_lost(i.client) == []
        assert len(i.vendor.machines()) == 1
        assert await find_lost(i.client) == []
        again = await forced_away(i)  # the VM still has the mark of the first request
        assert again.vm == lost.vm
        await remove(i.client, again)
        await i.plane.gone(MachineRequest, ONE, 1800)
        assert i.vendor.machines() == []
        assert (await i.client.list(CONFIG_MAP, RECORDS)).items == []


@virtual
async def test_an_adoption_that_was_interrupted_is_finished_by_the_next_one_and_makes_no_vm(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine()
        await i.running()
        lost = await forced_away(i)
        killer = Killer(lambda: 1)  # each process dies after its first write
        for _ in range(4):
            with pytest.raises(Unavailable):
                await adopt(killer.wrap(i.client), lost)
            await i.pass_time(60)
        await adopt(killer.wrap(i.client), lost)
        await i.running()
        assert await find_lost(i.client) == []
        assert i.vendor.created == ["one"]


@virtual
async def test_a_vm_that_may_be_in_use_is_neither_adopted_nor_removed_without_force(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine(role="control-plane")
        await i.running()
        lost = await forced_away(i)
        check(lost, remove=False, force=False)
        with pytest.raises(Refused, match="may run etcd"):
            check(lost, remove=True, force=False)
        unseen = replace(lost, deleted=False)  # as after a restore, or a move
        for removing in (False, True):
            with pytest.raises(Refused, match="did not see the deletion"):
                check(unseen, remove=removing, force=False)
            check(unseen, remove=removing, force=True)
        with pytest.raises(Refused, match="no VM without its MachineRequest is called so"):
            await choose(i.client, ["two"], NAMESPACE)
        assert await choose(i.client, ["one", lost.vm, str(ONE)], NAMESPACE) == [lost] * 3
        await i.plane.stop()
        await i.machine(machineName="another")
        with pytest.raises(Refused, match="is for another VM"):
            await adopt(i.client, lost)


@virtual
async def test_a_deletion_for_a_move_is_not_a_deletion_that_was_seen(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.machine()
        await i.running()
        mark = MergePatch({"metadata": {"annotations": {DELETE_FOR_MOVE: ""}}})
        await i.client.patch(MachineRequest, ONE, mark)
        lost = await forced_away(i)
        assert not lost.deleted
