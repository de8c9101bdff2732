"""A cluster on Nutanix, from its manifest to running machines and back to nothing."""

from __future__ import annotations

import json

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from homeport.sim.prism.pace import REAL
from scenario.nutanix import manifest
from scenario.nutanix.site import nutanix_site

NAME = "my-nutanix-cluster"


@virtual
async def test_the_manifest_of_the_guide_becomes_a_running_cluster_and_goes_without_a_trace() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects())
        machines = await site.running(NAME, 3, 3)
        assert len(machines) == 6
        assert sorted(site.created) == sorted(each.metadata.name for each in machines)
        assert site.categories() == [NAME]
        (category,) = [each.ext_id for each in site.prism.world.categories if each.value == NAME]
        assert [vm.categories for vm in site.vms()] == [(category,)] * 6
        asked = site.prism.journal.total
        # What a cluster costs once, its cloud controller manager included, and six requests for each machine: look,
        # make, task, look and start, task, look.
        assert asked <= 30 + 6 * 6, site.calls()
        await site.until(Cluster, NAME, lambda c: c.status.phase == "Provisioned")
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        assert site.prism.journal.total - asked <= 8 + 5 * 6, site.calls(asked)
        await site.empty(NAME)


@virtual
async def test_a_release_without_the_newer_api_runs_the_same_manifest() -> None:
    async with nutanix_site(v4=False) as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        assert not [entry for entry in site.prism.journal if "/api/vmm/" in entry.path and entry.method != "OPTIONS"]
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty(NAME)


@virtual
async def test_an_api_key_is_as_good_as_a_password() -> None:
    async with nutanix_site() as site:
        objects = manifest.cluster_objects(NAME, 1, 0, with_secret=False)
        listed = [{"type": "api_key", "data": {"prismCentral": {"apiKey": "homeport-api-key"}}}]
        secret = manifest.secret()
        secret["stringData"] = {"credentials": json.dumps(listed)}
        await site.have(*objects, secret)
        await site.running(NAME, 1)
        assert {entry.user for entry in site.prism.journal if entry.status < 400} == {"homeport"}


@virtual
async def test_sessions_that_expire_all_the_time_are_renewed_without_a_word() -> None:
    async with nutanix_site(session_seconds=0.05) as site:
        objects = manifest.cluster_objects(NAME, 1, 1)
        for each in objects:
            if each["kind"] == "NutanixMachineTemplate":
                each["spec"]["template"]["spec"]["project"] = "kubernetes-project"
        await site.have(*objects)
        await site.running(NAME, 1, 1)
        assert sorted(site.created) == sorted(vm.name for vm in site.vms())
        assert await site.events("AccessDenied") == []


@virtual
async def test_a_cluster_on_hardware_that_takes_its_time_comes_up_and_goes() -> None:
    async with nutanix_site(pace=REAL, machine_pace=REALISTIC) as site:
        await site.have(*manifest.cluster_objects(NAME, 3, 3))
        await site.running(NAME, 3, 3)
        assert len(site.created) == 6
        asked = site.prism.journal.total
        assert asked <= 40 + 20 * 6, site.calls()
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty(NAME)


@virtual
async def test_both_contracts_find_what_they_look_for() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        infra = await site.get(NutanixCluster, NAME)
        (machine,) = await site.list(NutanixMachine)
        for each in (infra, machine):
            assert each.status.ready
            assert each.status.initialization.provisioned
            kinds = {found["type"] for found in each.status.conditions}
            assert {"Ready", "Paused"} <= kinds
        assert {"VMProvisioned", "VMAddressesAssigned"} <= {found["type"] for found in machine.status.conditions}
