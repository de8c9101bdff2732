"""Machines on Harvester whose KubevirtCluster is already gone: they have the credentials for their own deletion."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.api.meta import Resource
from homeport.capi.name import PAUSED
from homeport.client.protocol import Key, MergePatch
from homeport.infra.machine.location import LOCATION
from homeport.providers.harvester.infracluster.resource import CLAIM, DATA_VOLUME, NAMESPACE, SECRET, VM, VMI
from homeport.runtime.testing import virtual
from scenario.harvester import manifest
from scenario.harvester.site import TOKEN, Site, harvester_site

NAME = "one"
EVENT = Resource("", "v1", "Event", "events")


async def lose(site: Site, *kinds: Any) -> None:
    """Somebody removes the finalizers and deletes the objects while no controller runs."""
    await site.plane.stop()
    for kind in kinds:
        await site.patch(kind, NAME, {"metadata": {"finalizers": None}})
        await site.delete(kind, NAME)
        await site.gone(kind, NAME)


@virtual
async def test_a_cluster_goes_without_a_trace_though_its_infrastructure_object_went_first() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        await lose(site, KubevirtCluster)
        await site.restart()
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty()


@virtual
async def test_machines_are_deleted_though_their_cluster_is_gone_too() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        names = [each.metadata.name for each in await site.running(NAME, 1, 1)]
        await lose(site, KubevirtCluster, Cluster)
        for name in names:
            await site.delete(KubevirtMachine, name)
        await site.restart()
        for name in names:
            await site.gone(KubevirtMachine, name)
        for kind in (VM, VMI, CLAIM, DATA_VOLUME, SECRET):
            assert [each.name for each in await site.there(kind)] == [], kind.kind


@virtual
async def test_a_machine_without_credentials_of_its_own_stays_and_says_what_is_missing() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        (machine,) = await site.running(NAME, 1)
        name = machine.metadata.name
        await site.patch(KubevirtMachine, name, {"spec": {"infraClusterSecretRef": None}})
        await lose(site, KubevirtCluster)
        await site.restart()
        await site.delete(KubevirtMachine, name)
        await site.condition(
            KubevirtMachine, name, "Ready", "False", "WaitingForInfrastructureCluster", "create it again"
        )
        await asyncio.sleep(600)
        assert [each.name for each in await site.there(VM)] == [name]
        # The advice helps: the KubevirtCluster that is created again wakes the machine.
        (again,) = [each for each in manifest.cluster_objects(NAME, 1, 0) if each["kind"] == "KubevirtCluster"]
        await site.have(again)
        await site.gone(KubevirtMachine, name)
        assert name not in [each.name for each in await site.there(VM)]


@virtual
async def test_a_machine_stays_while_its_credentials_lead_to_another_place() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        (machine,) = await site.running(NAME, 1)
        name = machine.metadata.name
        await site.infra.create({"metadata": {"name": "elsewhere"}}, kind=NAMESPACE)
        await site.patch(SECRET, "harvester-kubeconfig", {"stringData": {"namespace": "elsewhere"}})
        await site.delete(KubevirtMachine, name)
        await site.condition(KubevirtMachine, name, "Ready", "False", "InfrastructureChanged", "elsewhere")
        await asyncio.sleep(600)
        assert [each.name for each in await site.there(VM)] == [name]
        # The credentials lead back: the VM is found, deleted and seen to be gone.
        await site.patch(SECRET, "harvester-kubeconfig", {"data": {"namespace": None}})
        await site.gone(KubevirtMachine, name)
        assert name not in [each.name for each in await site.there(VM)]


@virtual
async def test_a_machine_stays_while_its_credentials_lead_to_another_harvester_with_the_same_address() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        (machine,) = await site.running(NAME, 1)
        name = machine.metadata.name
        here = (await site.infra.get(NAMESPACE, Key("", "kube-system"))).uid
        found = await site.client.get(KubevirtMachine, Key(manifest.NAMESPACE, name))
        recorded = found.metadata.annotations[LOCATION]
        assert recorded.endswith(f", identity {here}")
        # As if it had been created in another Harvester: this one has no such VM.
        await site.plane.stop()
        other = {LOCATION: recorded.replace(here, "another-uid")}
        await site.patch(KubevirtMachine, name, {"metadata": {"annotations": other}})
        for vm in await site.there(VM):
            await site.infra.delete(VM, Key(vm.namespace, vm.name))
        await site.restart()
        await site.delete(KubevirtMachine, name)
        await site.condition(KubevirtMachine, name, "Ready", "False", "InfrastructureChanged", "another-uid")
        await asyncio.sleep(600)
        assert (await site.client.get(KubevirtMachine, Key(manifest.NAMESPACE, name))).metadata.finalizers
        await site.patch(KubevirtMachine, name, {"metadata": {"annotations": {LOCATION: None}}})
        await site.gone(KubevirtMachine, name)


@virtual
async def test_a_machine_is_deleted_where_it_is_found_though_it_was_recorded_elsewhere() -> None:
    """As after a change of the vendor's address, where the deletion comes before anything else."""
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        (machine,) = await site.running(NAME, 1)
        name = machine.metadata.name
        await site.plane.stop()
        await site.patch(KubevirtMachine, name, {"metadata": {"annotations": {LOCATION: "the old address"}}})
        await site.delete(KubevirtMachine, name)
        await site.restart()
        await site.gone(KubevirtMachine, name)
        assert name not in [each.name for each in await site.there(VM)]


@virtual
async def test_a_vm_that_stays_in_deletion_is_reported_as_that_with_its_finalizer() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        (machine,) = await site.running(NAME, 1)
        name = machine.metadata.name
        vm = Key(manifest.NAMESPACE, name)
        held = {"metadata": {"finalizers": ["backup.example.com/hold"]}}
        await site.infra.patch(VM, vm, MergePatch(held))
        await site.infra.delete(VM, vm)
        words = ("VMDeleting", f"VM {vm} is being deleted since", "held by", "backup.example.com/hold")
        await site.condition(KubevirtMachine, name, "Ready", "False", *words, "delete the Machine to replace it")
        await site.delete(Cluster, NAME)
        await site.condition(KubevirtMachine, name, "Ready", "False", "Deleting", *words[1:], timeout=300)
        await site.infra.patch(VM, vm, MergePatch({"metadata": {"finalizers": None}}))
        await site.gone(Cluster, NAME)
        await site.empty()


@virtual
async def test_a_paused_machine_that_is_deleted_says_what_its_deletion_waits_for() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        machines = await site.running(NAME, 1, 1)
        name = next(each.metadata.name for each in machines if "-md-0" in each.metadata.name)
        await site.patch(KubevirtMachine, name, {"metadata": {"annotations": {PAUSED: ""}}})
        await site.delete(Machine, name)
        words = (PAUSED, "its deletion continues when this is undone")
        await site.condition(KubevirtMachine, name, "Paused", "True", *words, timeout=300)
        await site.condition(Machine, name, "Deleting", "True", f"it is paused: remove its annotation {PAUSED}")
        assert name in [each.name for each in await site.there(VM)]
        await site.patch(KubevirtMachine, name, {"metadata": {"annotations": {PAUSED: None}}})
        await site.gone(Machine, name)


@virtual
async def test_a_machine_whose_credentials_never_existed_is_deleted() -> None:
    """Nothing was ever asked of the infrastructure: there is nothing to look for with other credentials."""
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        await site.have(*manifest.bare_machine(NAME, "pet", infraClusterSecretRef={"name": "mistyped"}))
        words = ("spec.infraClusterSecretRef: Secret default/mistyped does not exist",)
        await site.condition(KubevirtMachine, "pet", "Ready", "False", *words)
        await site.delete(Machine, "pet")
        await site.gone(KubevirtMachine, "pet")
        await site.gone(Machine, "pet")


@virtual
async def test_a_machine_that_another_process_may_have_created_waits_for_its_credentials() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        await site.have(*manifest.bare_machine(NAME, "pet", infraClusterSecretRef={"name": "mistyped"}))
        await site.condition(KubevirtMachine, "pet", "Ready", "False", "Secret default/mistyped does not exist")
        await site.restart()
        await site.delete(Machine, "pet")
        await site.condition(Machine, "pet", "Deleting", "True", "Secret default/mistyped does not exist", timeout=300)
        await site.have(manifest.secret(manifest.kubeconfig(site.harvester.server.pki.ca_pem, TOKEN), "mistyped"))
        await site.gone(Machine, "pet")


@virtual
async def test_a_secret_that_is_deleted_while_a_cluster_needs_it_says_why_it_stays() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        await site.delete(SECRET, "harvester-kubeconfig")
        await asyncio.sleep(60)
        events = [each for each in (await site.client.list(EVENT)).items if each.get("reason") == "CredentialsInUse"]
        (found,) = events
        regarding = found["involvedObject"]
        assert (regarding["kind"], regarding["name"]) == ("Secret", "harvester-kubeconfig")
        assert "it is in use by the infrastructure of default/one" in found["message"]
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.gone(SECRET, "harvester-kubeconfig")
        await site.empty()
