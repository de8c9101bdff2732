"""A cluster on Harvester, from its manifest to running machines and back to nothing."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.api.meta import Unstructured
from homeport.client.protocol import Key
from homeport.providers.harvester.infracluster.resource import CLAIM, IP_POOL, LOAD_BALANCER, SECRET, VM
from homeport.runtime.testing import virtual
from scenario.harvester import manifest
from scenario.harvester.site import condition_of, harvester_site

NAME = "one"


@virtual
async def test_a_cluster_is_created_scaled_and_deleted_without_a_trace() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 3, 3))
        machines = await site.running(NAME, 3, 3)
        assert sorted(site.created) == sorted(each.metadata.name for each in machines)
        assert {each.spec.provider_id for each in machines} == {
            f"harvester://{each.uid}" for each in await site.there(VM)
        }
        assert len(await site.there(CLAIM)) == len(await site.there(SECRET)) == 6
        infra = await site.client.get(KubevirtCluster, Key("default", NAME))
        zones = [each["name"] for each in infra.status.failure_domains]
        assert zones == ["zone-a", "zone-b", "zone-c"]
        planes = [each for each in machines if "cluster.x-k8s.io/control-plane" in each.metadata.labels]
        assert sorted(each.spec.failure_domain or "" for each in planes) == zones
        await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"replicas": 1}})
        await site.running(NAME, 3, 1)
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty()


@virtual
async def test_the_first_machine_of_a_harvester_is_followed_as_soon_as_it_is_created() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        (machine,) = await site.running(NAME, 1)
        infra = await site.client.get(KubevirtMachine, Key("default", machine.metadata.name))
        (vm,) = await site.there(VM)
        created = datetime.fromisoformat(str(vm.metadata["creationTimestamp"]))
        ready = datetime.fromisoformat(str(condition_of(infra, "Ready")["lastTransitionTime"]))
        assert (ready - created).total_seconds() < 0.5  # by its watch, not by the look every 30 s


@virtual
async def test_a_machine_whose_vm_is_deleted_behind_its_back_is_replaced() -> None:
    async with harvester_site() as site:
        check = {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "MachineHealthCheck",
            "metadata": {"name": NAME, "namespace": "default"},
            "spec": {
                "clusterName": NAME,
                "selector": {"matchLabels": {"cluster.x-k8s.io/deployment-name": f"{NAME}-md-0"}},
                "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 60}]},
            },
        }
        await site.have(*manifest.cluster_objects(NAME, 1, 2), check)
        before = await site.running(NAME, 1, 2)
        lost = next(each for each in before if "cluster.x-k8s.io/control-plane" not in each.metadata.labels)
        await site.infra.delete(VM, Key("default", lost.metadata.name))
        await site.condition(KubevirtMachine, lost.metadata.name, "Ready", "False", "InstanceGone", timeout=300)
        await site.gone(Machine, lost.metadata.name, timeout=1800)
        await site.running(NAME, 1, 2)
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty()


@virtual
async def test_a_cluster_gets_its_endpoint_from_a_load_balancer() -> None:
    async with harvester_site() as site:
        pool = {
            "apiVersion": "loadbalancer.harvesterhci.io/v1beta1",
            "kind": "IPPool",
            "metadata": {"name": "workloads"},
            "spec": {"ranges": [{"subnet": "10.40.0.0/16", "rangeStart": "10.40.1.0", "rangeEnd": "10.40.1.50"}]},
        }
        await site.infra.create(pool, kind=IP_POOL)
        objects = manifest.cluster_objects(NAME, 1, 0)
        objects[1] = manifest.infra_cluster(NAME, "", controlPlaneLoadBalancer={"ipam": "pool", "ipPool": "workloads"})
        await site.have(*objects)
        await site.running(NAME, 1)
        infra = await site.client.get(KubevirtCluster, Key("default", NAME))
        assert infra.spec.control_plane_endpoint.host.startswith("10.40.1.")
        assert condition_of(infra, "LoadBalancerAvailable")["status"] == "True"
        (balancer,) = await site.there(LOAD_BALANCER)
        await site.infra.delete(LOAD_BALANCER, Key("default", balancer.name))
        await asyncio.sleep(90)
        (again,) = await site.there(LOAD_BALANCER)
        assert again.uid != balancer.uid
        assert again["status"]["address"] == infra.spec.control_plane_endpoint.host
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty()


@virtual
async def test_a_clone_of_a_machines_vm_and_its_volumes_outlive_the_machine() -> None:
    """Harvester copies labels to a clone, so it carries the mark of the machine."""
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        machines = await site.running(NAME, 1, 1)
        worker = next(each for each in machines if "cluster.x-k8s.io/control-plane" not in each.metadata.labels)
        await site.infra.create(_clone(await site.infra.get(VM, Key("default", worker.metadata.name))), kind=VM)
        await site.harvester.settled()
        before = await site.infra.get(CLAIM, Key("default", "copy-boot"))
        await site.delete(Machine, worker.metadata.name)
        await site.gone(Machine, worker.metadata.name)
        after = await site.infra.get(CLAIM, Key("default", "copy-boot"))
        assert (after.uid, after.metadata.get("deletionTimestamp")) == (before.uid, None)
        names = [each.name for each in await site.there(VM)]
        assert "copy" in names
        assert worker.metadata.name not in names
        await site.delete(Cluster, NAME)
        await site.condition(KubevirtCluster, NAME, "Ready", "False", "OrphanedMachines")


@virtual
async def test_a_clone_outlives_a_machine_whose_object_was_removed_by_force() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        machines = await site.running(NAME, 1, 1)
        worker = next(each for each in machines if "cluster.x-k8s.io/control-plane" not in each.metadata.labels)
        name = worker.metadata.name
        await site.infra.create(_clone(await site.infra.get(VM, Key("default", name))), kind=VM)
        await site.harvester.settled()
        for kind in (KubevirtMachine, Machine):
            await site.patch(kind, name, {"metadata": {"finalizers": None}})
            await site.delete(kind, name)
            await site.gone(kind, name)
        await site.delete(Cluster, NAME)
        words = ("OrphanedMachines", "copy", "it seems to be a copy that a user made")
        await site.condition(KubevirtCluster, NAME, "Ready", "False", *words, timeout=600)
        await site.plane.settle(quiet=60)
        assert [each.name for each in await site.there(VM)] == ["copy"]
        await site.infra.delete(VM, Key("default", "copy"))
        await site.gone(Cluster, NAME)


def _clone(vm: Unstructured) -> dict[str, Any]:
    name = vm.name
    made = json.loads(json.dumps({"metadata": dict(vm.metadata), "spec": vm["spec"]}).replace(name, "copy"))
    meta = {each: made["metadata"][each] for each in ("name", "namespace", "labels", "annotations")}
    spec = made["spec"]
    inner = spec["template"]["spec"]
    inner["volumes"] = [each for each in inner["volumes"] if "persistentVolumeClaim" in each]
    volumes = {each["name"] for each in inner["volumes"]}
    devices = inner["domain"]["devices"]
    devices["disks"] = [each for each in devices["disks"] if each["name"] in volumes]
    for interface in devices.get("interfaces", ()):
        interface.pop("macAddress", None)
    return {"metadata": meta, "spec": {**spec, "runStrategy": "Halted"}}
