"""A Harvester that is restarted, changed and half broken under a running cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import orjson
import pytest

from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.api.meta import Resource
from homeport.client.errors import Invalid
from homeport.client.protocol import Client, Key, MergePatch
from homeport.providers.harvester.infracluster.resource import CLAIM, MACHINE_UID, SECRET, VM, VMI
from homeport.providers.harvester.machine.drain import CORDONED
from homeport.runtime.cache import labels_of
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Status, WatchCut
from scenario.harvester import manifest
from scenario.harvester.site import NAMESPACE, Site, harvester_site, world

NAME = "one"
NODE = Resource("", "v1", "Node", "nodes", namespaced=False)


async def worker_of(site: Site) -> str:
    (found,) = [each for each in await site.there(VM) if labels_of(each)["cluster.x-k8s.io/role"] == "worker"]
    return str(found.name)


@virtual
async def test_a_node_is_drained_before_its_vm_leaves_a_host() -> None:
    async with harvester_site() as site:
        objects = manifest.cluster_objects(NAME, 1, 1)
        inner = objects[-2]["spec"]["template"]["spec"]["virtualMachineTemplate"]["spec"]["template"]["spec"]
        inner["evictionStrategy"] = "External"
        await site.have(*objects)
        await site.running(NAME, 1, 1)
        name = await worker_of(site)
        before = await site.infra.get(VMI, Key(NAMESPACE, name))
        cluster = site.fleet.clusters()[0]
        cordoned: list[bool] = []

        def follow(key: str, new: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
            """What the Node was like when the instance was deleted."""
            if new is not None and "deletionTimestamp" in new["metadata"] and not cordoned:
                record = cluster.server.store.get("nodes", name)
                assert record is not None
                cordoned.append(bool(orjson.loads(record.value)["spec"].get("unschedulable")))

        site.harvester.core.mirror.on(VMI, follow)
        host = before["status"]["nodeName"]
        await site.infra.patch(VMI, Key(NAMESPACE, name), MergePatch({"status": {"evacuationNodeName": host}}))
        await reached(lambda: _renewed(site, name, before.uid), 700)
        assert cordoned == [True]
        await site.running(NAME, 1, 1)
        workload = cluster.server.client()
        await reached(lambda: _schedulable(workload, name), 300)
        assert site.created.count(name) == 1


async def _renewed(site: Site, name: str, before: str) -> bool:
    found = [each for each in await site.there(VMI) if each.name == name]
    return bool(found) and found[0].uid != before


async def _schedulable(workload: Client, name: str) -> bool:
    node = await workload.get(NODE, Key("", name))
    return not node["spec"].get("unschedulable") and CORDONED not in (node.metadata.get("annotations") or {})


async def reached(state: Callable[[], Awaitable[bool]], seconds: float) -> None:
    """Virtual seconds go by until it is so."""
    for _ in range(int(seconds * 2)):
        if await state():
            return
        await asyncio.sleep(0.5)
    raise AssertionError("it did not come true in time")


@virtual
async def test_watches_that_end_all_the_time_lose_nothing() -> None:
    async with harvester_site() as site:
        site.fault(WatchCut(seconds=3.0), verb="watch")
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty()


@virtual
async def test_machines_that_run_report_a_broken_watch_though_they_look_only_every_five_minutes() -> None:
    async with harvester_site() as site:
        site.fault(WatchCut(seconds=20.0), verb="watch")
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        site.fault(Status(503))
        for each in await site.all(KubevirtMachine):
            words = ("InfrastructureReachable", "False", "Unreachable")
            await site.condition(KubevirtMachine, each.metadata.name, *words, timeout=40)


@virtual
async def test_all_machines_share_one_connection_and_one_set_of_watches() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 2))
        await site.running(NAME, 1, 2)
        before = site.journal.total
        await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"replicas": 8}})
        await site.running(NAME, 1, 8)
        calls = site.calls(before)
        assert calls["POST virtualmachines"] == calls["POST secrets"] == 6
        # Nothing is polled: each machine costs its two objects and a few looks at what the watch had not shown yet.
        assert site.journal.total - before <= 6 * 8, calls
        quiet = site.journal.total
        await asyncio.sleep(500)
        assert site.journal.total - quiet <= 20, site.calls(quiet)


@virtual
async def test_a_vm_of_somebody_else_is_never_adopted_and_never_touched() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        other = {
            "metadata": {"name": "taken", "namespace": NAMESPACE},
            "spec": {
                "runStrategy": "Halted",
                "template": {"spec": {"domain": {"devices": {}, "resources": {"limits": {"memory": "1Gi"}}}}},
            },
        }
        foreign = await site.infra.create(other, kind=VM)
        await site.have(*single_machine("taken"))
        found = await site.condition(KubevirtMachine, "taken", "Ready", "False", "InUse")
        assert "VM default/taken exists and was not created for this machine" in found["message"]
        await site.delete(KubevirtMachine, "taken")
        await site.gone(KubevirtMachine, "taken")
        kept = await site.infra.get(VM, Key(NAMESPACE, "taken"))
        assert kept.uid == foreign.uid
        assert [each.name for each in await site.there(SECRET) if each.name.startswith("taken")] == []


def single_machine(name: str) -> list[dict[str, Any]]:
    labels = {"cluster.x-k8s.io/cluster-name": NAME}
    ref = {"apiGroup": manifest.INFRA.partition("/")[0], "kind": "KubevirtMachine", "name": name}
    machine: dict[str, Any] = {
        "apiVersion": manifest.CAPI,
        "kind": "Machine",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "clusterName": NAME,
            "version": manifest.VERSION,
            "bootstrap": {"dataSecretName": f"{name}-data"},
            "infrastructureRef": ref,
        },
    }
    infra: dict[str, Any] = {
        "apiVersion": manifest.INFRA,
        "kind": "KubevirtMachine",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": manifest.machine_spec(),
    }
    data: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-data", "namespace": NAMESPACE},
        "stringData": {"value": "#cloud-config\n", "format": "cloud-config"},
    }
    return [data, infra, machine]


@virtual
async def test_a_machine_keeps_the_secret_of_its_cluster() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        (machine,) = await site.all(KubevirtMachine)
        assert machine.spec.infra_cluster_secret_ref.name == "harvester-kubeconfig"


@virtual
async def test_what_belongs_to_a_machine_follows_it_to_another_plane() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        (machine,) = await site.all(KubevirtMachine)
        # As if it had been created on another plane, under another UID.
        for kind in (VM, CLAIM, SECRET):
            (found,) = await site.there(kind)
            body = {"metadata": {"labels": {MACHINE_UID: "another"}}}
            await site.infra.patch(kind, Key(NAMESPACE, found.name), MergePatch(body))
        await site.restart()

        async def marked() -> bool:
            found = [each for kind in (VM, CLAIM, SECRET) for each in await site.there(kind)]
            return {labels_of(each)[MACHINE_UID] for each in found} == {machine.metadata.uid}

        await reached(marked, 120)
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty()


@virtual
async def test_kubevirt_without_harvester_runs_a_cluster_from_data_volumes() -> None:
    plain = msgspec.structs.replace(world(), harvester=False)
    async with harvester_site(world_file=plain) as site:
        objects = manifest.cluster_objects(NAME, 1, 1)
        objects[1] = manifest.infra_cluster(NAME, "10.52.200.200")
        for each in objects:
            if each["kind"] == "KubevirtMachineTemplate":
                each["spec"]["template"]["spec"] = manifest.container_machine()
        await site.have(*objects)
        machines = await site.running(NAME, 1, 1)
        assert {each.spec.provider_id for each in machines} == {
            f"kubevirt://{each.uid}" for each in await site.there(VM)
        }
        (infra,) = await site.all(KubevirtCluster)
        assert infra.status.ready
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty()


@virtual
async def test_a_service_among_the_services_of_its_own_cluster_is_reported_and_corrected() -> None:
    async with harvester_site() as site:
        objects = manifest.cluster_objects(NAME, 1, 0)
        objects[1] = manifest.infra_cluster(NAME, "", controlPlaneServiceTemplate={"spec": {"type": "ClusterIP"}})
        await site.have(*objects)
        words = (
            "EndpointNotUsable",
            "KubevirtCluster one offers the endpoint 10.96.",
            "is in 10.96.0.0/12 of spec.clusterNetwork.services.cidrBlocks[0]",
            "or spec.clusterNetwork of the Cluster",
        )
        await site.condition(Cluster, NAME, "InfrastructureReady", "False", *words)
        await site.condition(Cluster, NAME, "Available", "False", *words[1:])
        assert await site.there(VM) == []
        await site.patch(Cluster, NAME, {"spec": {"clusterNetwork": {"services": {"cidrBlocks": ["10.112.0.0/16"]}}}})
        await site.condition(Cluster, NAME, "InfrastructureReady", "True")
        found = await site.until(Cluster, NAME, lambda c: c.spec.control_plane_endpoint.host)
        assert found.spec.control_plane_endpoint.host.startswith("10.96.")
        await reached(lambda: _has_vms(site), 60)


async def _has_vms(site: Site) -> bool:
    return bool(await site.there(VM))


@virtual
async def test_a_machine_without_a_volume_to_boot_from_says_so() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        diskless = manifest.bare_machine(NAME, "ghost")
        del diskless[1]["spec"]["bootDisk"]
        await site.have(*diskless)
        required = ("InvalidConfiguration", "spec.bootDisk: is required", "no volume to boot from")
        await site.condition(KubevirtMachine, "ghost", "Ready", "False", *required)


@virtual
async def test_another_endpoint_of_a_running_cluster_is_refused() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        before = await site.client.get(Cluster, Key(NAMESPACE, NAME))
        host = before.spec.control_plane_endpoint.host
        other = {"spec": {"controlPlaneEndpoint": {"host": "10.40.0.222"}}}
        with pytest.raises(Invalid, match=f"certificates and kubeconfigs name {host}:6443"):
            await site.patch(KubevirtCluster, NAME, other)
        after = await site.client.get(Cluster, Key(NAMESPACE, NAME))
        assert after.spec.control_plane_endpoint == before.spec.control_plane_endpoint
