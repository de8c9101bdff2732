"""Tenant clusters in trouble: wrong configuration with its cure, outages, kills between writes, late caches, a deletion at
any moment. The end is as if nothing had happened, and nothing is left behind."""

from __future__ import annotations

import asyncio
import random

import pytest

from campaign import CAMPAIGN
from homeport.api.butler.v1alpha1 import ProviderConfig, TenantCluster
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Status
from scenario.butler.stage import NAMESPACE, SECRET, SPACE, Stage, tenants
from scenario.capi.fault import Killer, Late

SEEDS = range(8) if CAMPAIGN else range(1)
CREDENTIALS = Key(SYSTEM_NAMESPACE, "site-credentials")
CONFIG = Key(SYSTEM_NAMESPACE, "site")


async def nothing_left(stage: Stage, before: list[str]) -> None:
    assert await stage.vms() == before
    spaces = [each.name for each in (await stage.client.list(NAMESPACE, Query())).items]
    assert not [each for each in spaces if each.startswith("shop")]
    assert not (await stage.client.list(Cluster, Query())).items


# -- wrong configuration ---------------------------------------------------------------------------------------------


@virtual
async def test_a_provider_that_does_not_exist_is_named_and_used_as_soon_as_it_does() -> None:
    async with tenants("harvester") as stage:
        await stage.client.delete(ProviderConfig, CONFIG)
        await stage.plane.gone(ProviderConfig, CONFIG, 60)
        await stage.have(stage.tenant("shop"))
        await stage.waits("shop", "ProviderNotFound", 'ProviderConfig "site" not found')
        found = await stage.client.get(TenantCluster, Key(SPACE, "shop"))
        assert (found.status.phase, await stage.vms()) == ("Failed", [])
        await stage.have(stage.config())
        await stage.ready("shop")


@virtual
async def test_a_wrong_password_is_reported_with_its_cure_on_the_tenant_cluster() -> None:
    async with tenants("nutanix") as stage:
        wrong = MergePatch({"stringData": {"NUTANIX_PASSWORD": "old"}})
        await stage.client.patch(SECRET, CREDENTIALS, wrong)
        await stage.have(stage.tenant("shop"))
        cure = "correct the user name, password or API key"
        text = await stage.waits("shop", "CredentialsInvalid", "Secret butler-system/site-credentials", cure)
        assert "old" not in text
        right = MergePatch({"stringData": {"NUTANIX_PASSWORD": "password"}})
        await stage.client.patch(SECRET, CREDENTIALS, right)
        await stage.ready("shop")


@virtual
async def test_a_name_that_the_provider_does_not_know_is_reported_before_any_vm() -> None:
    async with tenants("nutanix") as stage:
        await stage.configure({"nutanix": {"subnet": {"name": "workload-subnt"}}})
        await stage.have(stage.tenant("shop"))
        await stage.waits("shop", "NotFound", "spec.nutanix.subnet", "did you mean 'workload-subnet'?")
        assert not [each for each in await stage.vms() if each.startswith("shop")]
        await stage.configure({"nutanix": {"subnet": {"name": "workload-subnet"}}})
        await stage.ready("shop")


@virtual
async def test_without_an_image_that_fits_no_vm_is_created() -> None:
    async with tenants("nutanix") as stage:
        await stage.have(stage.tenant("shop", workers={"machineTemplate": {"os": {"type": "flatcar"}}}))
        await stage.waits("shop", "ImageNotFound", "the provider has no image for that", kind="ImageReady")
        assert not [each for each in await stage.vms() if each.startswith("shop")]
        await stage.patch("shop", {"workers": {"machineTemplate": {"os": {"type": "rocky"}}}})
        await stage.ready("shop")


@virtual
async def test_a_version_too_far_is_refused_and_the_cluster_stays_as_it_is() -> None:
    async with tenants("harvester") as stage:
        await stage.have(stage.tenant("shop", kubernetesVersion="v1.32.0"))
        await stage.ready("shop")
        with pytest.raises(Invalid, match="upgrade one minor version at a time"):
            await stage.patch("shop", {"kubernetesVersion": "v1.34.0"})
        found = await stage.deployment("shop")
        assert found.spec.template.spec.version == "v1.32.0"
        await stage.patch("shop", {"kubernetesVersion": "v1.33.0"})
        await stage.ready("shop")
        await stage.patch("shop", {"kubernetesVersion": "v1.34.0"})
        assert (await stage.ready("shop")).status.phase == "Ready"


# -- drift, pause, observe -------------------------------------------------------------------------------------------


@virtual
async def test_what_others_change_is_changed_back_unless_the_cluster_is_paused_or_only_observed() -> None:
    async with tenants("harvester") as stage:
        await stage.have(stage.tenant("shop"))
        await stage.ready("shop")
        key = Key(await stage.namespace("shop"), "shop-workers")
        three = MergePatch({"spec": {"replicas": 3}})
        await stage.client.patch(MachineDeployment, key, three)
        await stage.plane.until(MachineDeployment, key, lambda each: each.spec.replicas == 1, 60)
        await stage.patch("shop", {"managementPolicy": {"mode": "Observe"}})
        await stage.ready("shop")
        await stage.client.patch(MachineDeployment, key, three)
        await stage.until("shop", lambda each: each.status.worker_nodes_ready == 3, "3 workers", 600)
        await stage.patch("shop", {"managementPolicy": {"mode": "Active"}, "paused": True})
        cluster = Key(key.namespace, "shop")
        await stage.plane.until(Cluster, cluster, lambda each: bool(each.spec.paused), 60)
        await stage.delete("shop")
        await stage.waits("shop", "Paused", "set it to false")
        await stage.patch("shop", {"paused": False})
        await stage.gone("shop")
        await nothing_left(stage, [])


@virtual
async def test_a_cluster_that_is_only_observed_stays_when_its_tenant_cluster_goes() -> None:
    async with tenants("harvester") as stage:
        await stage.have(stage.tenant("shop"))
        await stage.ready("shop")
        namespace = await stage.namespace("shop")
        await stage.patch("shop", {"managementPolicy": {"mode": "Observe"}})
        await stage.ready("shop")
        await stage.delete("shop")
        await stage.gone("shop")
        assert (await stage.client.get(Cluster, Key(namespace, "shop"))).metadata.deletion_timestamp is None
        assert len(await stage.vms()) == 1


# -- outages, kills, late caches ---------------------------------------------------------------------------------------


@virtual
async def test_a_namespace_that_somebody_deletes_takes_its_machines_along_and_comes_back() -> None:
    async with tenants("harvester") as stage:
        await stage.have(stage.tenant("shop"))
        await stage.ready("shop")
        before, space = await stage.vms(), Key("", await stage.namespace("shop"))
        await stage.client.delete(NAMESPACE, space)
        await stage.plane.gone(NAMESPACE, space, 300)
        assert await stage.vms() == []
        await stage.ready("shop", timeout=300)
        assert await stage.vms() not in ([], before)


@virtual
async def test_a_cluster_stays_while_its_provider_is_away_and_changes_when_it_is_back() -> None:
    async with tenants("nutanix") as stage:
        await stage.have(stage.tenant("shop"))
        await stage.ready("shop")
        stage.site.fault(Status(503))
        await stage.until(
            "shop", lambda each: _status(each, "ProviderReady") == "False", "an unreachable provider", 3600
        )
        held = await stage.client.get(TenantCluster, Key(SPACE, "shop"))
        assert (_status(held, "ControlPlaneReady"), _status(held, "WorkersReady")) == ("True", "True")
        await stage.patch("shop", {"workers": {"replicas": 2}})
        await asyncio.sleep(60)
        stage.site.clear_faults()
        await stage.ready("shop", timeout=3600)
        assert len(await stage.machines("shop")) == 2


def _status(tenant: TenantCluster, kind: str) -> str:
    return str((condition.find(tenant.status.conditions, kind) or {}).get("status"))


@pytest.mark.parametrize("seed", SEEDS)
def test_controllers_that_die_between_writes_end_where_others_do(seed: int) -> None:
    rng = random.Random(seed)

    @virtual
    async def run() -> None:
        killer = Killer(lambda: rng.randint(3, 60))
        async with tenants("harvester", wrap=killer.wrap) as stage:
            await stage.have(stage.tenant("shop", workers={"replicas": 2}))
            while await killer.death(within=120.0):
                await stage.restart()
            await stage.ready("shop")
            assert len(await stage.vms()) == 2
            assert len(stage.site.created) == 2, "a VM was made twice"
            await stage.delete("shop")
            while await killer.death(within=120.0):
                await stage.restart()
            await stage.gone("shop")
            await nothing_left(stage, [])
            assert killer.kills > 5, "the faults did not strike"

    run()


@pytest.mark.parametrize("seed", SEEDS)
def test_late_caches_change_nothing(seed: int) -> None:
    rng = random.Random(seed)

    @virtual
    async def run() -> None:
        async with tenants("harvester", wrap=lambda client: Late(client, rng, 5.0)) as stage:
            await stage.have(stage.tenant("shop", workers={"replicas": 2}))
            await stage.ready("shop")
            await stage.patch("shop", {"kubernetesVersion": "v1.35.0", "workers": {"replicas": 1}})
            await stage.ready("shop")
            assert len(await stage.vms()) == 1
            await stage.delete("shop")
            await stage.gone("shop")
            await nothing_left(stage, [])

    run()


@pytest.mark.parametrize("seconds", [0.0, 0.5, 4.0, 20.0])
def test_a_cluster_that_is_deleted_while_it_comes_up_leaves_nothing(seconds: float) -> None:
    @virtual
    async def run() -> None:
        async with tenants("nutanix") as stage:
            before = await stage.vms()
            await stage.have(stage.tenant("shop", workers={"replicas": 2}))
            await asyncio.sleep(seconds)
            await stage.delete("shop")
            await stage.gone("shop")
            await nothing_left(stage, before)

    run()
