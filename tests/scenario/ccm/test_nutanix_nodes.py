"""Nodes of clusters on Nutanix, looked after by the cloud controller manager that came with them."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.ccm.cloud import POOL
from homeport.ccm.manifest import DEPLOYMENT, NAME
from homeport.ccm.node import SHUTDOWN, UNINITIALIZED
from homeport.ccm.service import SERVICE, ingress
from homeport.client.protocol import Key, Query
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import LEASE, POD
from homeport.sim.prism.entity import User
from scenario.ccm.cloud import administrator, nodes, until_node, workload
from scenario.nutanix import manifest
from scenario.nutanix.site import SECRET, Site, nutanix_site

CLUSTER = "my-nutanix-cluster"
VIP = "10.0.0.100"


def taints(node: Any) -> set[str]:
    return {each["key"] for each in (node.get("spec") or {}).get("taints") or ()}


async def holder(site: Site) -> str:
    """The Pod that works."""
    lease = await workload(site).client().get(LEASE, Key("kube-system", NAME))
    return str(lease["spec"]["holderIdentity"])


async def pods(site: Site) -> dict[str, str]:
    found = await workload(site).client().list(POD, Query(namespace="kube-system"))
    return {each.name: each["spec"].get("nodeName", "") for each in found.items if each.name.startswith(NAME)}


@virtual
async def test_the_manifest_of_the_guide_gets_nodes_that_know_their_machines_and_leaves_nothing_behind() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects())
        await site.running(CLUSTER, 3, 3)
        ids = {vm.name: vm.ext_id for vm in site.vms()}
        found = await nodes(site)
        assert len(found) == 6
        for name, node in found.items():
            assert node["spec"]["providerID"] == f"nutanix://{ids[name]}"
            assert UNINITIALIZED not in taints(node)
            labels = node["metadata"]["labels"]
            assert labels["node.kubernetes.io/instance-type"] == "ahv-vm"
            assert labels["topology.kubernetes.io/zone"] == "nutanix-cluster-1"
            assert labels["topology.kubernetes.io/region"] == "prism-central"
            assert VIP not in [each["address"] for each in node["status"]["addresses"]]
        assert list(await pods(site)) == [await holder(site)]
        await site.delete(Cluster, CLUSTER)
        await site.gone(Cluster, CLUSTER)
        await site.empty(CLUSTER)


@virtual
async def test_a_prism_central_without_v4_is_enough() -> None:
    async with nutanix_site(v4=False) as site:
        await site.have(*manifest.cluster_objects(worker_count=1, control_planes=1))
        await site.running(CLUSTER, 1, 1)
        assert all(UNINITIALIZED not in taints(node) for node in (await nodes(site)).values())


@virtual
async def test_a_machine_that_is_switched_off_keeps_its_node_and_one_that_is_removed_loses_it() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(worker_count=2, control_planes=1))
        machines = await site.running(CLUSTER, 1, 2)
        off, gone = sorted(each.metadata.name for each in machines if "-md-" in each.metadata.name)
        # Whoever looks after Machines would act, too: here it is about the Nodes.
        await site.patch(Cluster, CLUSTER, {"spec": {"paused": True}})
        ids = {vm.name: vm.ext_id for vm in site.vms()}
        async with administrator(site, CLUSTER) as prism:
            for name in (off, gone):
                site.prism.power.off(ids[name])
            await until_node(site, off, lambda n: SHUTDOWN in taints(n), what="tainted")
            await until_node(site, gone, lambda n: SHUTDOWN in taints(n), what="tainted")
            vm = await prism.vm(ids[gone])
            assert vm is not None
            await prism.delete_vm(vm)
            await until_node(site, gone, lambda n: n is None, what="gone")
            assert SHUTDOWN in taints(await until_node(site, off, lambda n: n is not None))
            vm = await prism.vm(ids[off])
            assert vm is not None
            await prism.power_on(vm)
            await until_node(site, off, lambda n: SHUTDOWN not in taints(n), what="without the taint")


@virtual
async def test_a_steady_cluster_costs_few_calls_of_prism_central() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects())
        await site.running(CLUSTER, 3, 3)
        await site.patch(Cluster, CLUSTER, {"spec": {"paused": True}})
        await asyncio.sleep(60)
        total = site.prism.journal.total
        await asyncio.sleep(1800)
        asked = site.calls(since=total)
        assert 0 < sum(asked.values()) <= 12, asked


@virtual
async def test_another_control_plane_takes_over_when_the_one_it_ran_on_is_lost() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(worker_count=1))
        await site.running(CLUSTER, 3, 1)
        await site.patch(Cluster, CLUSTER, {"spec": {"paused": True}})
        ((pod, node),) = (await pods(site)).items()
        ids = {vm.name: vm.ext_id for vm in site.vms()}
        site.prism.power.off(ids[node])
        await until_node(site, node, lambda n: SHUTDOWN in taints(n), 600, what="tainted by the next one")
        assert await holder(site) != pod


@virtual
async def test_new_credentials_reach_the_workload_cluster_and_it_goes_on_with_them() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(worker_count=1, control_planes=1))
        await site.running(CLUSTER, 1, 1)
        before = await pods(site)
        site.prism.world.users.put(User(ext_id="operator", name="operator", passwords=("other",)))
        fresh = manifest.secret(user="operator", password="other")
        await site.patch(SECRET, "nutanix-credentials", {"stringData": fresh["stringData"]})
        await asyncio.sleep(800)
        users = {entry.user for entry in site.prism.journal if entry.time > site.clock.now() - 400}
        assert users == {"operator"}
        assert await pods(site) == before


@virtual
async def test_a_service_gets_an_address_of_the_cluster_s_pool() -> None:
    async with nutanix_site() as site:
        objects = manifest.cluster_objects(worker_count=0, control_planes=1)
        objects[0]["metadata"]["annotations"] = {POOL: "10.0.0.200-10.0.0.210"}
        await site.have(*objects)
        await site.running(CLUSTER, 1)
        client = workload(site).client()
        body = {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        }
        await client.create(body, kind=SERVICE)
        await asyncio.sleep(5)
        assert ingress(await client.get(SERVICE, Key("default", "web"))) == ["10.0.0.200"]
        deployment = await client.get(DEPLOYMENT, Key("kube-system", NAME))
        assert deployment["status"]["readyReplicas"] == 1
