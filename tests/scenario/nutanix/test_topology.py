"""Clusters on Nutanix made from the class of examples/04-clusterclass: made, changed, scaled, upgraded, and large."""

from __future__ import annotations

import base64
import copy
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from campaign import CAMPAIGN
from homeport.api.cluster.v1beta2 import Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.nutanix.v1beta1 import NutanixMachineTemplate
from homeport.client.errors import Invalid
from homeport.machinery import condition, yaml
from homeport.runtime.testing import virtual
from homeport.sim.engine.call import Call
from scenario.nutanix.site import Site, nutanix_site

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "04-clusterclass"
NAME = "pilot"
DEPLOYMENT_LABEL = "topology.cluster.x-k8s.io/deployment-name"

Json = dict[str, Any]


def example(file: str, *swaps: tuple[str, str]) -> list[Json]:
    text = (EXAMPLE / file).read_text()
    for old, new in swaps:
        assert old in text
        text = text.replace(old, new)
    return [each for each in yaml.load_all(text) if each]


class Pilot:
    """The Cluster of the example, in the hands of a user."""

    def __init__(self, site: Site) -> None:
        self.site = site

    async def make(self, control_planes: int, workers: int, version: str = "v1.29.0") -> None:
        await self.site.have(*example("class.yaml"))
        swaps = (("replicas: 3", f"replicas: {control_planes}"), ("replicas: 2", f"replicas: {workers}"))
        await self.site.have(*example("cluster.yaml", *swaps, ("v1.29.0", version)))
        await self.running(control_planes, {"crew": workers}, version)

    async def topology(self, **parts: Any) -> None:
        await self.site.patch(Cluster, NAME, {"spec": {"topology": parts}})

    async def variable(self, name: str, value: Any) -> None:
        """As somebody with an editor: the others stay."""
        cluster = await self.site.get(Cluster, NAME)
        held = {each.name: each.value for each in cluster.spec.topology.variables} | {name: value}
        await self.topology(variables=[{"name": key, "value": value} for key, value in held.items()])

    async def running(
        self, control_planes: int, workers: Mapping[str, int], version: str = "v1.29.0", timeout: float = 7200.0
    ) -> None:
        """The topology is as it should be, and all Nodes are Ready."""
        cluster = await self.site.until(Cluster, NAME, _reconciled, timeout, what="its topology being reconciled")
        await self.site.until(
            KubeadmControlPlane,
            cluster.spec.control_plane_ref.name,
            lambda k: _settled(k, control_planes) and [v.version for v in k.status.versions] == [version],
            timeout,
            what=f"{control_planes} control planes at {version}",
        )
        found = await self.deployments()
        assert sorted(found) == sorted(workers)
        for called, count in workers.items():
            await self.site.until(
                MachineDeployment,
                found[called].metadata.name,
                lambda m, count=count: _settled(m, count),  # type: ignore[misc]
                timeout,
                what=f"{count} workers",
            )
        machines = await self.site.list(Machine)
        assert {each.status.phase for each in machines} == {"Running"}
        assert {each.spec.version for each in machines} == {version}
        assert all(condition.is_true(each.status.conditions, "NodeReady") for each in machines)
        assert len(self.site.vms()) == len(machines) == control_planes + sum(workers.values())

    async def deployments(self) -> dict[str, MachineDeployment]:
        return {each.metadata.labels[DEPLOYMENT_LABEL]: each for each in await self.site.list(MachineDeployment)}

    async def machines(self, deployment: str = "") -> list[str]:
        """Names of the Machines of a deployment, or of the control plane."""
        found = await self.site.list(Machine)
        return sorted(m.metadata.name for m in found if m.metadata.labels.get(DEPLOYMENT_LABEL, "") == deployment)

    async def sizes(self, deployment: str = "") -> set[tuple[int, int, int]]:
        """Sockets, cores of each, and MiB of the VMs, as API v3 shows them."""
        token = base64.b64encode(b"admin:password").decode()
        headers = {"authorization": f"Basic {token}"}
        body = {"kind": "vm", "length": 500}
        call = Call(
            method="POST", path="/api/nutanix/v3/vms/list", query={}, raw_query="", headers=headers, cookies={},
            body=body, host="localhost:9440",
        )  # fmt: skip
        answer: Any = (await self.site.prism.respond(call)).body
        names = set(await self.machines(deployment))
        shown = [each["status"] for each in answer["entities"] if each["status"]["name"] in names]
        assert len(shown) == len(names)
        held = [each["resources"] for each in shown]
        return {(r["num_sockets"], r["num_vcpus_per_socket"], r["memory_size_mib"]) for r in held}


def _reconciled(cluster: Cluster) -> bool:
    found = condition.find(cluster.status.conditions, "TopologyReconciled")
    return (
        found is not None and found["status"] == "True" and found["observedGeneration"] == cluster.metadata.generation
    )


def _settled(obj: Any, replicas: int) -> bool:
    s = obj.status
    counted = [each or 0 for each in (s.replicas, s.ready_replicas, s.available_replicas, s.up_to_date_replicas)]
    return bool(counted == [replicas] * 4 and (s.observed_generation or 0) >= obj.metadata.generation)


@virtual
async def test_the_class_of_the_example_becomes_a_cluster_that_goes_without_a_trace() -> None:
    async with nutanix_site() as site:
        pilot = Pilot(site)
        await pilot.make(1, 2)
        await site.until(Cluster, NAME, lambda c: condition.is_true(c.status.conditions, "Available"))
        (category,) = [each.ext_id for each in site.prism.world.categories if each.value == NAME]
        assert [vm.categories for vm in site.vms()] == [(category,)] * 3
        assert {image_of(site, vm) for vm in site.vms()} == {"ubuntu-22.04-kube-v1.29.0"}
        cluster = await site.get(Cluster, NAME)
        assert cluster.spec.control_plane_endpoint.host == "10.0.0.104"
        checks = await site.list(MachineHealthCheck)
        assert sorted(each.status.current_healthy for each in checks) == [1, 2]
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty(NAME)
        assert sorted(each.metadata.name for each in await site.list(NutanixMachineTemplate)) == [
            "quay-control-plane",
            "quay-worker",
        ]
        await site.delete(ClusterClass, "quay")
        await site.gone(ClusterClass, "quay")


def image_of(site: Site, vm: Any) -> str:
    names = {each.ext_id: each.name for each in site.prism.world.images}
    return next(names[disk.image] for disk in vm.disks if disk.image)


@virtual
async def test_what_variables_say_is_on_the_machines_and_what_they_may_not_say_is_refused() -> None:
    async with nutanix_site() as site:
        pilot = Pilot(site)
        await site.have(*example("class.yaml"))
        (secret, cluster) = example("cluster.yaml", ("replicas: 3", "replicas: 1"))
        topology = cluster["spec"]["topology"]
        wrong = copy.deepcopy(cluster)
        wrong["spec"]["topology"]["variables"] += [{"name": "workerMachine", "value": {"memorySize": "4G"}}]
        with pytest.raises(Invalid, match=r"variables\[workerMachine\]\.value\.memorySize"):
            await site.have(wrong)
        wrong["spec"]["topology"]["variables"] = topology["variables"][1:]
        with pytest.raises(Invalid, match="controlPlaneEndpoint"):
            await site.have(wrong)
        topology["variables"] += [
            {"name": "categories", "value": [{"key": "Environment", "value": "Dev"}]},
            {"name": "project", "value": "kubernetes-project"},
            {"name": "subnets", "value": ["vm-network", "vm-network-1"]},
            {"name": "sshKey", "value": "ssh-ed25519 AAAAC3Nza pilot@harbour"},
        ]
        topology["workers"]["machineDeployments"] = [
            {"class": "worker", "name": "crew", "replicas": 1},
            {
                "class": "worker",
                "name": "divers",
                "replicas": 1,
                "variables": {"overrides": [{"name": "workerMachine", "value": {"vcpuSockets": 8}}]},
            },
        ]
        await site.have(secret, cluster)
        await pilot.running(1, {"crew": 1, "divers": 1})
        assert await pilot.sizes("crew") == {(2, 1, 4096)}
        assert await pilot.sizes("divers") == {(8, 1, 4096)}
        (project,) = [each.ext_id for each in site.prism.world.projects if each.name == "kubernetes-project"]
        for vm in site.vms():
            assert vm.project == project
            assert len(vm.nics) == 2
            assert len(vm.categories) == 2
            assert b"pilot@harbour" in base64.b64decode(vm.user_data)


@virtual
async def test_another_class_replaces_what_it_changes() -> None:
    """C26."""
    async with nutanix_site() as site:
        pilot = Pilot(site)
        await pilot.make(1, 1)
        planes, crew = await pilot.machines(), await pilot.machines("crew")
        objects = example("class.yaml", ("quay", "pier"))
        worker = next(each for each in objects if each["metadata"]["name"] == "pier-worker")
        worker["spec"]["template"]["spec"]["systemDiskSize"] = "80Gi"
        await site.have(*objects)
        await pilot.topology(classRef={"name": "pier"})
        await pilot.running(1, {"crew": 1})
        assert await pilot.machines() == planes
        assert not {*crew} & {*await pilot.machines("crew")}
        assert Counter(vm.disks[0].size_bytes >> 30 for vm in site.vms()) == {40: 1, 80: 1}
        # And the class itself.
        template = next(each for each in objects if each["metadata"]["name"] == "pier-control-plane")
        template["metadata"]["name"] = "pier-control-plane-2"
        template["spec"]["template"]["spec"]["systemDiskSize"] = "60Gi"
        await site.have(template)
        reference = {
            **objects[0]["spec"]["controlPlane"]["machineInfrastructure"]["templateRef"],
            "name": "pier-control-plane-2",
        }
        body = {"spec": {"controlPlane": {"machineInfrastructure": {"templateRef": reference}}}}
        await site.patch(ClusterClass, "pier", body)
        await site.until(
            Cluster, NAME, lambda c: not condition.is_true(c.status.conditions, "ControlPlaneMachinesUpToDate")
        )
        await pilot.running(1, {"crew": 1})
        assert Counter(vm.disks[0].size_bytes >> 30 for vm in site.vms()) == {60: 1, 80: 1}


@virtual
async def test_machines_become_more_fewer_larger_and_smaller() -> None:
    """C27."""
    async with nutanix_site() as site:
        pilot = Pilot(site)
        await pilot.make(1, 1)
        before = {*await pilot.machines(), *await pilot.machines("crew")}
        worker = {"class": "worker", "name": "crew"}
        await pilot.topology(controlPlane={"replicas": 3}, workers={"machineDeployments": [{**worker, "replicas": 2}]})
        await pilot.running(3, {"crew": 2})
        assert before <= {*await pilot.machines(), *await pilot.machines("crew")}
        await pilot.topology(controlPlane={"replicas": 1}, workers={"machineDeployments": [{**worker, "replicas": 1}]})
        await pilot.running(1, {"crew": 1})
        planes = await pilot.machines()
        for value, size in SIZES:
            await pilot.variable("workerMachine", value)
            await pilot.running(1, {"crew": 1})
            assert await pilot.sizes("crew") == {size}
        assert await pilot.machines() == planes
        assert await pilot.sizes() == {(2, 1, 4096)}
        await pilot.variable("controlPlaneMachine", {"memorySize": "8Gi", "vcpusPerSocket": 2})
        await pilot.running(1, {"crew": 1})
        assert await pilot.sizes() == {(2, 2, 8192)}


# Up and down: all at once, and one thing at a time with HOMEPORT_CAMPAIGN.
SIZES: list[tuple[Json, tuple[int, int, int]]] = [
    ({"memorySize": "8Gi", "vcpuSockets": 4, "vcpusPerSocket": 2}, (4, 2, 8192)),
    ({"memorySize": "3Gi", "vcpuSockets": 1, "vcpusPerSocket": 1}, (1, 1, 3072)),
]
if CAMPAIGN:
    SIZES += [
        ({"memorySize": "8Gi"}, (2, 1, 8192)),
        ({"memorySize": "3Gi"}, (2, 1, 3072)),
        ({"vcpuSockets": 4}, (4, 1, 4096)),
        ({"vcpuSockets": 1}, (1, 1, 4096)),
        ({"vcpusPerSocket": 4}, (2, 4, 4096)),
        ({"vcpusPerSocket": 1}, (2, 1, 4096)),
    ]


@virtual
async def test_kubernetes_is_upgraded_by_one_field_and_images_come_along() -> None:
    """C28, over two minor versions."""
    planes = 3 if CAMPAIGN else 1
    async with nutanix_site() as site:
        pilot = Pilot(site)
        await pilot.make(planes, 1, "v1.28.0")
        made = len(site.created)
        await pilot.topology(version="v1.30.0")
        await pilot.running(planes, {"crew": 1}, "v1.30.0")
        assert {image_of(site, vm) for vm in site.vms()} == {"ubuntu-22.04-kube-v1.30.0"}
        # Control planes go through v1.29; workers don't have to.
        assert len(site.created) - made == planes + planes + 1
        nodes = await site.list(Machine)
        assert {each.status.node_info.kubelet_version for each in nodes} == {"v1.30.0"}


@virtual
async def test_a_large_cluster_comes_up() -> None:
    """C29: 7 control planes and 100 workers; less of the same without HOMEPORT_CAMPAIGN."""
    planes, workers = (7, 100) if CAMPAIGN else (3, 20)
    async with nutanix_site() as site:
        await Pilot(site).make(planes, workers)
        await site.until(Cluster, NAME, lambda c: condition.is_true(c.status.conditions, "Available"))
        assert len(site.created) == planes + workers
        await site.until(
            Cluster,
            NAME,
            lambda c: (c.status.control_plane.ready_replicas, c.status.workers.ready_replicas) == (planes, workers),
        )
