"""Nodes of clusters on Harvester, looked after by the cloud controller manager that came with them."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.ccm.manifest import NAME as MANAGER
from homeport.ccm.manifest import SECRET_NAME
from homeport.ccm.node import SHUTDOWN, initialised
from homeport.client.protocol import Key, MergePatch
from homeport.providers.harvester.infracluster.resource import SECRET, VM, VMI
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Status
from homeport.sim.machine.workload.kind import LEASE
from scenario.ccm.cloud import nodes, until_node, workload
from scenario.harvester import manifest
from scenario.harvester.site import harvester_site, world

NAME = "one"


def taints(node: Any) -> set[str]:
    return {each["key"] for each in (node.get("spec") or {}).get("taints") or ()}


@virtual
async def test_nodes_get_the_provider_id_zone_and_addresses_of_their_vms_and_nothing_is_left_behind() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.external(manifest.cluster_objects(NAME, 3, 2)))
        machines = await site.running(NAME, 3, 2)
        vms = {each.name: each for each in await site.there(VM)}
        hosts = {each.name: each["status"]["nodeName"] for each in await site.there(VMI)}
        zones = {each.name: each.zone for each in site.harvester.world.nodes}
        # The provider sets provider IDs, too, and may be faster: Machines run before their Nodes are initialised.
        found = {each.metadata.name: await until_node(site, each.metadata.name, initialised) for each in machines}
        for name, node in found.items():
            assert node["spec"]["providerID"] == f"harvester://{vms[name].uid}"
            labels = node["metadata"]["labels"]
            assert labels["topology.kubernetes.io/zone"] == zones[hosts[name]] != ""
            assert labels["node.kubernetes.io/instance-type"] == "harvester-vm"
            inside = [each["address"] for each in node["status"]["addresses"] if each["type"] == "InternalIP"]
            assert inside
            assert manifest.VIP not in inside
        # The provider and the manager agree on what a Node is.
        assert {each.spec.provider_id for each in machines} == {each["spec"]["providerID"] for each in found.values()}
        lease = await workload(site).client().get(LEASE, Key("kube-system", MANAGER))
        assert str(lease["spec"]["holderIdentity"]).startswith(MANAGER)
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty()


@virtual
async def test_a_vm_that_is_stopped_keeps_its_node_and_one_that_is_deleted_loses_it() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.external(manifest.cluster_objects(NAME, 1, 2)))
        machines = await site.running(NAME, 1, 2)
        off, gone = sorted(each.metadata.name for each in machines if "-md-" in each.metadata.name)
        # Otherwise Machines would be repaired, too: here it is about the Nodes.
        await site.patch(Cluster, NAME, {"spec": {"paused": True}})
        for name in (off, gone):
            await until_node(site, name, initialised)
        halted = MergePatch({"spec": {"runStrategy": "Halted"}})
        await site.infra.patch(VM, Key("default", off), halted)
        await until_node(site, off, lambda n: SHUTDOWN in taints(n), what="tainted")
        await site.infra.delete(VM, Key("default", gone))
        await until_node(site, gone, lambda n: n is None, what="gone")
        assert SHUTDOWN in taints(await until_node(site, off, lambda n: n is not None))
        await site.infra.patch(VM, Key("default", off), MergePatch({"spec": {"runStrategy": "Always"}}))
        await until_node(site, off, lambda n: SHUTDOWN not in taints(n), what="without the taint")


@virtual
async def test_the_workload_cluster_gets_the_smaller_account_and_no_other_context() -> None:
    async with harvester_site() as site:
        small = manifest.kubeconfig(site.harvester.server.pki.ca_pem, "harvester-token")
        small["users"].append({"name": "other", "user": {"token": "secret-of-another"}})
        small["contexts"][0]["context"]["namespace"] = "elsewhere"
        await site.patch(SECRET, "harvester-kubeconfig", {"stringData": {"cloud-kubeconfig": json.dumps(small)}})
        await site.have(*manifest.external(manifest.cluster_objects(NAME, 1, 0)))
        await site.running(NAME, 1)
        secret = await workload(site).client().get(SECRET, Key("kube-system", SECRET_NAME))
        data = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
        assert data["namespace"] == "default"
        assert "secret-of-another" not in data["kubeconfig"]
        assert json.loads(data["kubeconfig"])["contexts"][0]["context"]["namespace"] == "elsewhere"


@virtual
async def test_kubevirt_without_harvester_is_enough() -> None:
    async with harvester_site(world_file=world(harvester=False)) as site:
        objects = manifest.external(manifest.cluster_objects(NAME, 1, 0))
        objects[1] = manifest.infra_cluster(NAME, "10.52.200.200")
        objects[3] = manifest.template(f"{NAME}-cp", manifest.container_machine())
        await site.have(*objects)
        (machine,) = await site.running(NAME, 1)
        node = await until_node(site, machine.metadata.name, initialised)
        assert node["spec"]["providerID"].startswith("kubevirt://")
        assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "kubevirt-vm"


@virtual
async def test_no_node_is_removed_while_harvester_does_not_answer() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.external(manifest.cluster_objects(NAME, 1, 1)))
        machines = await site.running(NAME, 1, 1)
        (worker,) = (each.metadata.name for each in machines if "-md-" in each.metadata.name)
        await site.patch(Cluster, NAME, {"spec": {"paused": True}})
        await until_node(site, worker, initialised)
        site.fault(Status(503))
        await site.infra.delete(VM, Key("default", worker))
        await asyncio.sleep(600)
        assert worker in await nodes(site)
