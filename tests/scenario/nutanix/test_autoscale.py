"""From nothing and back, by the requests that an autoscaler makes: it finds groups by annotations, learns from the
template what a machine would have, and scales by the subresource. `make upstream` does the same with the real one."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery.quantity import parse_quantity
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import NODE, POD
from scenario.nutanix import manifest
from scenario.nutanix.site import NAMESPACE, Site, nutanix_site

GROUP = Resource("cluster.x-k8s.io", "v1beta1", "MachineDeployment", "machinedeployments")
TEMPLATE = Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "NutanixMachineTemplate", "nutanixmachinetemplates")
NAME = "one"
_SIZE = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
_DELETE = "cluster.x-k8s.io/delete-machine"


def cluster_objects() -> list[dict[str, Any]]:
    objects = manifest.cluster_objects(NAME, 1, 1)
    (group,) = (each for each in objects if each["kind"] == "MachineDeployment")
    del group["spec"]["replicas"]  # filled in from the annotations
    group["metadata"]["annotations"] = {f"{_SIZE}-min-size": "0", f"{_SIZE}-max-size": "2"}
    return objects


def pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


class Scaler:
    """What it asks, and nothing that it could not know."""

    def __init__(self, site: Site) -> None:
        self.site = site
        (workload,) = site.fleet.clusters()
        self.workload = workload.client()

    async def group(self) -> Any:
        found = (await self.site.client.list(GROUP, Query(namespace=NAMESPACE))).items
        (group,) = (each for each in found if f"{_SIZE}-max-size" in (each.metadata.get("annotations") or {}))
        return group

    async def capacity(self) -> dict[str, str]:
        ref = (await self.group())["spec"]["template"]["spec"]["infrastructureRef"]
        assert (ref["apiVersion"], ref["kind"]) == (TEMPLATE.api_version, TEMPLATE.kind)
        found = await self.site.client.get(TEMPLATE, Key(NAMESPACE, ref["name"]))
        return dict(found["status"]["capacity"])

    async def replicas(self) -> int:
        scale = await self.site.client.get(GROUP, Key(NAMESPACE, f"{NAME}-md-0"), subresource="scale")
        return int((scale.get("spec") or {}).get("replicas") or 0)

    async def resize(self, replicas: int) -> None:
        body = MergePatch({"spec": {"replicas": replicas}})
        await self.site.client.patch(GROUP, Key(NAMESPACE, f"{NAME}-md-0"), body, subresource="scale")

    async def waiting(self) -> dict[str, str]:
        """Pods that fit nowhere, and what they ask for."""
        found = {}
        for each in (await self.workload.list(POD, Query(namespace="default"))).items:
            for condition in (each.get("status") or {}).get("conditions") or ():
                if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
                    found[each.name] = each["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        return found

    async def step(self) -> None:
        """One machine more if that would help anybody."""
        room = parse_quantity((await self.capacity())["cpu"])
        helped = [name for name, cpu in (await self.waiting()).items() if parse_quantity(cpu) < room]
        if helped:
            await self.resize(await self.replicas() + 1)

    async def remove(self, node: str) -> None:
        found = await self.workload.get(NODE, Key("", node))
        machine = found.metadata["annotations"]["cluster.x-k8s.io/machine"]
        await self.site.patch(Machine, machine, {"metadata": {"annotations": {_DELETE: "now"}}})
        await self.resize(await self.replicas() - 1)


async def until(check: Any, what: str) -> Any:
    for _ in range(600):
        found = await check()
        if found:
            return found
        await asyncio.sleep(1.0)
    raise AssertionError(f"{what} did not come true")


@virtual
async def test_an_autoscaler_finds_what_it_asks_for_and_workers_come_and_go() -> None:
    async with nutanix_site() as site:
        await site.have(*cluster_objects())
        await site.running(NAME, 1)
        scaler = Scaler(site)
        assert await scaler.replicas() == 0
        assert await scaler.capacity() == {"cpu": "4", "memory": "16Gi"}
        await scaler.workload.create(pod("small", "3"), kind=POD)
        await scaler.workload.create(pod("giant", "64"), kind=POD)
        assert await until(scaler.waiting, "a Pod that waits")

        async def on_a_worker(name: str) -> str:
            found = await scaler.workload.get(POD, Key("default", name))
            running = (found.get("status") or {}).get("phase") == "Running"
            return str(found["spec"].get("nodeName", "")) if running else ""

        await scaler.step()
        await site.running(NAME, 1, 1)
        first = await until(lambda: on_a_worker("small"), "the Pod on its Node")
        assert list(await scaler.waiting()) == ["giant"]
        await scaler.step()
        assert await scaler.replicas() == 1  # no machine that there could be would take the other one

        await scaler.workload.create(pod("second", "3"), kind=POD)
        await until(lambda: _in(scaler, "second"), "the second Pod waiting")
        await scaler.step()
        await site.running(NAME, 1, 2)
        second = await until(lambda: on_a_worker("second"), "the second Pod on its Node")
        assert first != second

        await scaler.workload.delete(POD, Key("default", "small"))
        await scaler.remove(first)  # the older of the two, and the only one it may be
        await site.running(NAME, 1, 1)
        assert {each.name for each in (await scaler.workload.list(NODE)).items} >= {second}
        assert await on_a_worker("second") == second

        await scaler.workload.delete(POD, Key("default", "second"))
        await scaler.remove(second)
        await until(lambda: _gone(site), "the last worker gone")
        assert [each.name for each in (await scaler.workload.list(NODE)).items if "md-0" in each.name] == []
        assert len(site.vms()) == 1


async def _in(scaler: Scaler, name: str) -> bool:
    return name in await scaler.waiting()


async def _gone(site: Site) -> bool:
    return len(await site.list(Machine)) == 1
