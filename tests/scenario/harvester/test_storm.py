"""Clusters on a Harvester that refuses, loses and delays requests, while the controllers are killed and restarted."""

from __future__ import annotations

import asyncio

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.ipam.v1beta2 import IPAddressClaim
from homeport.api.kubevirt.v1alpha1 import KubevirtMachine
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Delay, Drop, Status, WatchCut
from homeport.sim.harvester.pace import Pace
from scenario.harvester import manifest
from scenario.harvester.site import Site, condition_of, harvester_site, world

NAME = "one"
SLOW = Pace(bind=2.0, launch=4.0, start=2.0, agent=10.0, shutdown=4.0)


def storm(site: Site) -> None:
    site.fault(Status(503), share=0.05)
    site.fault(Status(409), verb="create", share=0.1)
    site.fault(Drop("after"), verb="create", share=0.15)
    site.fault(Drop("before"), share=0.03)
    site.fault(Delay(3.0), share=0.05)
    site.fault(WatchCut(seconds=20.0, abrupt=True), verb="watch")


@virtual
async def test_a_cluster_comes_up_and_goes_in_a_storm_with_kills_and_leaves_nothing() -> None:
    async with harvester_site(pace=SLOW) as site:
        storm(site)
        await site.have(*manifest.cluster_objects(NAME, 3, 3))
        for _ in range(6):
            await asyncio.sleep(17)
            await site.restart()
        machines = await site.running(NAME, 3, 3, timeout=7200)
        assert sorted(set(site.created)) == sorted(site.created), "no VM was created twice"
        assert len(machines) == 6
        await site.delete(Cluster, NAME)
        for _ in range(4):
            await asyncio.sleep(11)
            await site.restart()
        await site.gone(Cluster, NAME, timeout=7200)
        await site.empty()


@virtual
async def test_machines_get_their_addresses_from_a_pool_though_no_agent_reports_them() -> None:
    async with harvester_site(world_file=world(agent=False)) as site:
        pool = {
            "apiVersion": "ipam.cluster.x-k8s.io/v1alpha2",
            "kind": "InClusterIPPool",
            "metadata": {"name": "nodes", "namespace": "default"},
            "spec": {"addresses": ["10.40.1.20-10.40.1.29"], "prefix": 16, "gateway": "10.40.0.1"},
        }
        objects = manifest.cluster_objects(NAME, 1, 1)
        for each in objects:
            if each["kind"] == "KubevirtMachineTemplate":
                spec = each["spec"]["template"]["spec"]
                spec["addressesFromPools"] = [{"kind": "InClusterIPPool", "name": "nodes"}]
        await site.have(pool, *objects)
        await site.running(NAME, 1, 1)
        await asyncio.sleep(700)  # they are looked at again
        machines = await site.all(KubevirtMachine)
        assert {condition_of(each, "VMAddressesAssigned")["status"] for each in machines} == {"True"}
        shown = {each.status.addresses[0].address for each in machines}
        assert shown == {"10.40.1.20", "10.40.1.21"}
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty()
        assert await site.all(IPAddressClaim) == []
