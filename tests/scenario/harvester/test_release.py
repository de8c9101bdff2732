"""Machines on Harvester whose KubevirtCluster is already gone: they have the credentials for their own deletion."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.providers.harvester.resource import CLAIM, DATA_VOLUME, SECRET, VM, VMI
from homeport.runtime.testing import virtual
from scenario.harvester import manifest
from scenario.harvester.site import Site, harvester_site

NAME = "one"


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
