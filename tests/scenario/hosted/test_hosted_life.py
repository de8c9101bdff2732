"""Clusters whose control plane is a StewardControlPlane and whose workers are VMs: from nothing to nothing again."""

from __future__ import annotations

import asyncio

import pytest

from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.meta import Resource
from homeport.ccm.manifest import NAME as MANAGER
from homeport.ccm.manifest import NAMESPACE as MANAGER_NAMESPACE
from homeport.ccm.node import initialised
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import NODE
from present import present
from scenario.hosted.hosted_site import DEPLOYMENT, NAME, PLACES, PLANE, SECRET, HostedSite, Place

SERVICE = Resource("", "v1", "Service", "services")
PODS = Resource("apps", "v1", "Deployment", "deployments")
CLAIM = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")


async def upgrade(on: HostedSite) -> None:
    """The control plane first, then the workers."""
    site = on.site
    await site.patch(PLANE, NAME, {"spec": {"version": on.new}})
    await site.until(PLANE, NAME, lambda p: p.status.version == on.new and p.status.ready, what="upgraded")
    await site.have(on.newer_template())
    spec = {"version": on.new, "infrastructureRef": {"name": "newer"}}
    await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"template": {"spec": spec}}})
    await site.until(MachineDeployment, DEPLOYMENT, _rolled_out, what="rolled out")


def _rolled_out(deployment: MachineDeployment) -> bool:
    status = deployment.status
    return status.observed_generation == deployment.metadata.generation and (
        status.up_to_date_replicas == status.replicas == deployment.spec.replicas
    )


async def all_initialised(on: HostedSite) -> None:
    """A Node may be ready a moment before its cloud controller manager has seen it."""
    for _ in range(30):
        if all(initialised(each) for each in await on.nodes()):
            return
        await asyncio.sleep(1)
    raise AssertionError("not all Nodes are initialised after 30 s")


async def leaves_nothing(on: HostedSite) -> None:
    site = on.site
    await site.delete(Cluster, NAME)
    await site.gone(Cluster, NAME)
    await on.nothing_is_left()
    await asyncio.sleep(60)  # of garbage collection
    for kind in (SECRET, SERVICE, PODS, CLAIM):
        found = (await site.client.list(kind, Query(namespace="default"))).items
        assert [each.name for each in found if each.name.startswith(NAME)] == [], kind.kind
    keys = on.estate.keys()
    assert sorted(keys.users) == ["root"]
    assert [name for name in keys.keys if NAME in name] == []
    assert site.fleet.clusters() == []


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_cluster_becomes_available_scales_upgrades_and_leaves_nothing(place: Place) -> None:
    @virtual
    async def run() -> None:
        async with place.enter() as on:
            await on.site.have(*on.objects(2))
            await on.available(2)
            await on.site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": 3}})
            old = {each.metadata.name for each in await on.available(3)}
            await upgrade(on)
            machines = await on.available(3)
            assert not {each.metadata.name for each in machines} & old
            nodes = await on.nodes()
            assert {each["status"]["nodeInfo"]["kubeletVersion"] for each in nodes} == {on.new}
            assert sorted(each.name for each in nodes) == sorted(
                present(each.status.node_ref).name for each in machines
            )
            assert len(on.site.created) == len(set(on.site.created)), "every VM was created once"
            await leaves_nothing(on)

    run()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_nodes_are_initialised_from_the_plane_and_no_credential_is_in_the_cluster(place: Place) -> None:
    @virtual
    async def run() -> None:
        async with place.enter() as on:
            await on.site.have(*on.objects(2))
            machines = await on.available(2)
            by_name = {each.status.node_ref.name: each for each in machines if each.status.node_ref is not None}
            await all_initialised(on)
            for node in await on.nodes():
                assert initialised(node)
                assert node["spec"]["providerID"] == by_name[node.name].spec.provider_id
                assert "node.kubernetes.io/instance-type" in node["metadata"]["labels"]
                assert any(each["type"] == "InternalIP" for each in node["status"]["addresses"])
            canary = {"metadata": {"name": "canary", "namespace": "default"}, "stringData": {"a": "x canary-word"}}
            await on.workload.client().create(canary, kind=SECRET)
            held = await on.held()
            assert "canary-word" in held
            for word in on.credentials:
                assert word not in held
            found = (await on.workload.client().list(PODS, Query(namespace=MANAGER_NAMESPACE))).items
            assert MANAGER not in [each.name for each in found]

    run()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_node_whose_vm_is_gone_is_removed_also_after_a_restart_of_the_plane(place: Place) -> None:
    @virtual
    async def run() -> None:
        async with place.enter() as on:
            await on.site.have(*on.objects(2))
            await on.available(2)
            await on.site.restart()
            await on.available(2)
            body = {"spec": {"providerID": "nutanix://0a1b2c3d-0000-4000-8000-000000000000"}}
            if place.name == "harvester":
                body = {"spec": {"providerID": "harvester://0a1b2c3d-0000-4000-8000-000000000000"}}
            ghost = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost"}, **body}
            client = on.workload.client()
            await client.create(ghost, kind=NODE)
            lost = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}
            await client.patch(NODE, Key("", "ghost"), MergePatch(lost), subresource="status")
            async with asyncio.timeout(600):
                while "ghost" in {each.name for each in await on.nodes()}:  # noqa: ASYNC110
                    await asyncio.sleep(1)
            assert len(await on.nodes()) == 2

    run()
