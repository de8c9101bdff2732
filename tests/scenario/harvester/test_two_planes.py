"""Planes, and namespaces of a plane, that share a Harvester and use the same names: each keeps to its own."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.api.meta import Resource, Unstructured
from homeport.ccm.node import initialised
from homeport.ccm.service import SERVICE as WORKLOAD_SERVICE
from homeport.client.protocol import Key, Query
from homeport.providers.harvester.infracluster.resource import (
    CLAIM,
    CLUSTER_UID,
    IP_POOL,
    LOAD_BALANCER,
    SECRET,
    SERVICE_UID,
    VM,
    VMI,
)
from homeport.runtime.cache import labels_of
from homeport.runtime.testing import virtual
from scenario.ccm.test_harvester_services import pool, service
from scenario.harvester import manifest
from scenario.harvester.site import Site, another_plane, harvester_site
from scenario.harvester.test_trouble import reached

NAME = "one"
OTHER_VIP = "10.40.0.201"
Json = dict[str, Any]
KINDS = (VM, VMI, CLAIM, SECRET, LOAD_BALANCER)


def objects(vip: str = manifest.VIP, namespace: str = manifest.NAMESPACE) -> list[Json]:
    made = manifest.cluster_objects(NAME, 1, 1)
    made[1] = manifest.infra_cluster(NAME, vip) if vip else _balanced()
    for each in made:
        each["metadata"]["namespace"] = namespace
    return made


def _balanced() -> Json:
    return manifest.infra_cluster(NAME, "", controlPlaneLoadBalancer={"ipam": "pool", "ipPool": "workloads"})


async def _uid(site: Site, namespace: str = manifest.NAMESPACE) -> str:
    found = await site.client.get(KubevirtCluster, Key(namespace, NAME))
    return str(found.metadata.uid)


async def belongings(site: Site, uid: str) -> dict[str, Json]:
    """What a cluster has on Harvester: what its provider wrote, and not what Harvester reports."""
    found = {}
    for kind in KINDS:
        for each in (await site.infra.list(kind, Query(namespace=manifest.NAMESPACE))).items:
            if labels_of(each).get(CLUSTER_UID) == uid:
                found[f"{kind.kind} {each.name}"] = _written(each)
    return found


def _written(obj: Unstructured) -> Json:
    meta = {name: obj.metadata.get(name) for name in ("uid", "labels", "deletionTimestamp")}
    return {"metadata": meta, "spec": obj.get("spec"), "data": obj.get("data")}


@virtual
async def test_two_planes_with_a_cluster_of_the_same_name_leave_each_others_machines_alone() -> None:
    async with harvester_site() as first, another_plane(first) as second:
        await first.have(*objects())
        await first.running(NAME, 1, 1)
        before = await belongings(first, await _uid(first))
        assert {each.partition(" ")[0] for each in before} == {each.kind for each in KINDS} - {"LoadBalancer"}
        await second.have(*objects(OTHER_VIP))
        await second.running(NAME, 1, 1)
        await first.restart()
        await asyncio.sleep(900)  # long enough for every look at what nobody owns
        for site in (first, second):
            await site.condition(KubevirtCluster, NAME, "NoOrphanedMachines", "True")
        assert await belongings(first, await _uid(first)) == before
        await second.delete(Cluster, NAME)
        await second.gone(Cluster, NAME)
        assert await belongings(first, await _uid(first)) == before
        assert len(await first.there(VM)) == 2
        await first.running(NAME, 1, 1)
        await first.delete(Cluster, NAME)
        await first.gone(Cluster, NAME)
        await first.empty()


@virtual
async def test_a_load_balancer_of_another_planes_cluster_is_neither_used_nor_deleted() -> None:
    async with harvester_site() as first, another_plane(first) as second:
        await first.infra.create(pool("workloads", "10.40.1.0", "10.40.1.50"), kind=IP_POOL)
        await first.have(*objects(""))
        await first.running(NAME, 1, 1)
        before = await belongings(first, await _uid(first))
        await second.have(*objects(""))
        words = (
            "LoadBalancer default/one-lb exists and was not created for this cluster",
            "it belongs to Cluster 'one', which another plane or namespace has",
            "rename this Cluster, or use another namespace",
        )
        said = await second.condition(KubevirtCluster, NAME, "Ready", "False", *words)
        assert "delete" not in said["message"]
        await second.delete(Cluster, NAME)
        await second.gone(Cluster, NAME)
        assert await belongings(first, await _uid(first)) == before


@virtual
async def test_a_copy_of_a_cluster_does_not_take_the_load_balancer_of_the_original() -> None:
    """Whoever copies a manifest from a plane copies the endpoint that the first one got."""
    async with harvester_site() as first, another_plane(first) as second:
        await first.infra.create(pool("workloads", "10.40.1.0", "10.40.1.50"), kind=IP_POOL)
        await first.have(*objects(""))
        await first.running(NAME, 1, 1)
        before = await belongings(first, await _uid(first))
        infra = await first.client.get(KubevirtCluster, Key(manifest.NAMESPACE, NAME))
        copied = objects("")
        copied[1]["spec"]["controlPlaneEndpoint"] = {"host": infra.spec.control_plane_endpoint.host, "port": 6443}
        await second.have(*copied)
        await second.condition(KubevirtCluster, NAME, "Ready", "False", "was not created for this cluster")
        await second.delete(Cluster, NAME)
        await second.gone(Cluster, NAME)
        assert await belongings(first, await _uid(first)) == before


@virtual
async def test_a_vm_of_another_planes_machine_is_not_to_be_deleted() -> None:
    async with harvester_site() as first, another_plane(first) as second:
        await first.have(*objects())
        await first.running(NAME, 1, 1)
        await first.have(*manifest.bare_machine(NAME, "pet"))
        await reached(lambda: _exists(first, "pet"), 300)
        await first.harvester.settled()
        before = await belongings(first, await _uid(first))
        await second.have(*objects(OTHER_VIP), *manifest.bare_machine(NAME, "pet"))
        words = ("exists and was not created for this machine", "belongs to machine default/pet of Cluster 'one'")
        said = await second.condition(KubevirtMachine, "pet", "Ready", "False", *words, timeout=900)
        assert "delete the Machine" in said["message"]
        assert "delete it" not in said["message"]
        await second.delete(Machine, "pet")
        await second.gone(KubevirtMachine, "pet")
        assert await belongings(first, await _uid(first)) == before


async def _exists(site: Site, name: str) -> bool:
    return name in [each.name for each in await site.there(VM)]


@virtual
async def test_load_balancers_of_services_lead_to_the_machines_of_their_own_cluster() -> None:
    """Clusters of two namespaces have the same name, and their VMs the same namespace."""
    async with harvester_site() as site:
        await site.infra.create(pool("workloads", "10.40.1.0", "10.40.1.50"), kind=IP_POOL)
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant"}}
        credentials = {**site.secret(), "metadata": {"name": "harvester-kubeconfig", "namespace": "tenant"}}
        await site.have(space, credentials)
        await site.have(*manifest.external(objects()), *manifest.external(objects(OTHER_VIP, "tenant")))
        await reached(lambda: _have_nodes(site, 4), 1800)
        for cluster in site.fleet.clusters():
            await cluster.server.client().create(service((80, 30080)), kind=WORKLOAD_SERVICE)
        await reached(lambda: _have_balancers(site, 2), 300)
        for namespace in ("default", "tenant"):
            uid = await _uid(site, namespace)
            own = await belongings(site, uid)
            (balancer,) = [each for name, each in own.items() if name.startswith("LoadBalancer")]
            chosen = balancer["spec"]["backendServerSelector"]
            instances = (await site.infra.list(VMI, Query(namespace="default"))).items
            matching = {each.name for each in instances if _matches(chosen, labels_of(each))}
            assert matching == {name.partition(" ")[2] for name in own if name.startswith("VirtualMachineInstance ")}


def _matches(selector: dict[str, list[str]], labels: Any) -> bool:
    return all(labels.get(name) in values for name, values in selector.items())


async def _have_nodes(site: Site, count: int) -> bool:
    nodes = Resource("", "v1", "Node", "nodes", namespaced=False)
    clients = [cluster.server.client() for cluster in site.fleet.clusters()]
    listed = [each for client in clients for each in (await client.list(nodes)).items]
    return sum(initialised(each) for each in listed) == count


async def _have_balancers(site: Site, count: int) -> bool:
    found = (await site.infra.list(LOAD_BALANCER, Query(namespace="default"))).items
    return sum(SERVICE_UID in labels_of(each) for each in found) == count
