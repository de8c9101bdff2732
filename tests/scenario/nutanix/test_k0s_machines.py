"""k0s on VMs of the simulated Prism Central, from user data that was written by hand: three controllers, two workers."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from homeport.app.simulation.registry import start_registry
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from homeport.runtime.clock import LoopClock, run_virtual
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.workload.k0s.definition import CHART, ETCD_MEMBER, PLAN
from homeport.sim.machine.workload.kind import CONFIG_MAP, NODE
from homeport.sim.network import Network
from homeport.sim.prism.prism import Prism
from unit.sim.machine.k0s_kit import balancing, controller_data, controller_token, k0s_token, worker_data
from unit.sim.machine.sim_kit import PACE, Secrets, Sim
from unit.sim.machine.test_sim_k0s_autopilot import NEW, plan
from unit.sim.prism.prism_caller import VMS, Caller

ENDPOINT = "10.1.1.201"  # outside of the pool, as in the guide
CLUSTER, SUBNET, IMAGE = "PE-Cluster-01", "VM-Network", "ubuntu-22.04-k0s"
CONTROLLERS = ("cp-0", "cp-1", "cp-2")
WORKERS = ("md-0", "md-1")


@dataclass
class Site(Sim):
    call: Caller = field(kw_only=True)
    vms: dict[str, str] = field(default_factory=dict)

    async def vm(self, name: str, data: bytes) -> str:
        """Made and powered on; gives its console when it is done."""
        script = {"$objectType": "vmm.v4.ahv.config.Userdata", "value": base64.b64encode(data).decode()}
        init = {
            "$objectType": "vmm.v4.ahv.config.CloudInit",
            "datasourceType": "CONFIG_DRIVE_V2",
            "cloudInitScript": script,
            "metadata": base64.b64encode(f"hostname: {name}\n".encode()).decode(),
        }
        source = {
            "reference": {"$objectType": "vmm.v4.ahv.config.ImageReference", "imageExtId": self.call.image(IMAGE)},
        }
        disk = {
            "diskAddress": {"busType": "SCSI", "index": 0},
            "backingInfo": {
                "$objectType": "vmm.v4.ahv.config.VmDisk",
                "dataSource": source,
                "diskSizeBytes": 40 * 1024**3,
            },
        }
        self.vms[name] = await self.call.make(
            name,
            on=True,
            cluster={"extId": self.call.cluster(CLUSTER)},
            nics=[{"networkInfo": {"subnet": {"extId": self.call.subnet(SUBNET)}}}],
            disks=[disk],
            memorySizeBytes=8 * 1024**3,
            guestCustomization={"config": init},
        )
        await self.fleet.settled()
        return self.fleet.console(self.vms[name])

    async def delete(self, name: str) -> None:
        _, etag = await self.call.vm(self.vms[name])
        answer = await self.call("DELETE", f"{VMS}/{self.vms.pop(name)}", if_match=etag)
        assert answer.status == 202, answer.body

    async def off(self, name: str) -> None:
        await self.call.power(self.vms[name], "power-off")

    async def on(self, name: str) -> None:
        await self.call.power(self.vms[name], "power-on")
        await self.fleet.settled()


def config() -> dict[str, Any]:
    charts = [
        {
            "name": "nutanix-csi-storage",
            "chartname": "nutanix/nutanix-csi-storage",
            "namespace": "ntnx-system",
            "version": "3.0.0",
        },
        {
            "name": "nutanix-cloud-controller-manager",
            "chartname": "nutanix/nutanix-cloud-controller-manager",
            "namespace": "kube-system",
            "version": "0.3.0",
        },
    ]
    repositories = [{"name": "nutanix", "url": "https://nutanix.github.io/helm/"}]
    return {
        "api": {"externalAddress": ENDPOINT, "sans": [ENDPOINT]},
        "network": {"provider": "calico", "controlPlaneLoadBalancing": balancing(ENDPOINT)},
        "extensions": {"helm": {"repositories": repositories, "charts": charts}},
    }


@asynccontextmanager
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    clock, network = LoopClock(), Network()
    fleet = Fleet(network, clock, pace=PACE)
    registry = start_registry(network, tmp_path, clock)
    try:
        call = Caller(Prism(clock=clock, guests=fleet))
        yield Site(network, fleet, clock, Secrets.make(clock), call=call)
    finally:
        await fleet.close()
        await registry.close()


async def build(s: Site) -> None:
    manifest = {"path": "/var/lib/k0s/manifests/site/map.yaml", "content": MAP}
    console = await s.vm("cp-0", controller_data(s.secrets, config=config(), files=[manifest]))
    assert s.fleet.clusters(), console
    for name in CONTROLLERS[1:]:
        await add_controller(s, name)
    for name in WORKERS:
        console = await s.vm(name, worker_data(await k0s_token(s), name, "--labels pool=blue", kubelet=""))
        assert await s.node(name) is not None, console


async def add_controller(s: Site, name: str) -> None:
    token = await controller_token(s, host=ENDPOINT)
    console = await s.vm(name, controller_data(None, config=config(), token=token))
    assert name in s.cluster.etcd.members, console


MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site, namespace: default}\ndata: {a: b}\n"


async def ready(s: Site) -> set[str]:
    nodes = (await s.cluster.client().list(NODE)).items
    return {each["metadata"]["name"] for each in nodes if condition.is_true(each["status"]["conditions"], "Ready")}


def test_three_controllers_and_two_workers_become_a_cluster_that_lives(tmp_path: Path) -> None:
    async def main() -> None:
        async with site(tmp_path) as s:
            await build(s)
            assert await ready(s) == set(WORKERS)
            assert len(s.cluster.etcd.voters) == 3
            client = s.cluster.client()
            assert (await client.get(CONFIG_MAP, Key("default", "site")))["data"] == {"a": "b"}
            charts = {each["metadata"]["name"]: each["status"] for each in (await client.list(CHART)).items}
            assert {name: (each.get("error"), each["version"]) for name, each in charts.items()} == {
                "k0s-addon-chart-nutanix-csi-storage": (None, "3.0.0"),
                "k0s-addon-chart-nutanix-cloud-controller-manager": (None, "0.3.0"),
            }
            await client.create(plan([*CONTROLLERS], [*WORKERS]), kind=PLAN)
            await asyncio.sleep(60)
            assert (await client.get(PLAN, Key("", "autopilot")))["status"]["state"] == "Completed"
            versions = {each["status"]["nodeInfo"]["kubeletVersion"] for each in (await client.list(NODE)).items}
            assert versions == {f"{NEW.partition('+')[0]}+k0s"}

    run_virtual(main())


def test_controllers_are_replaced_one_by_one_without_losing_quorum(tmp_path: Path) -> None:
    async def main() -> None:
        async with site(tmp_path) as s:
            await build(s)
            client = s.cluster.client()
            for number, old in enumerate(CONTROLLERS):
                await add_controller(s, f"new-{number}")
                await client.patch(ETCD_MEMBER, Key("", old), MergePatch({"spec": {"leave": True}}))
                await asyncio.sleep(5)
                assert old not in s.cluster.etcd.members
                await s.delete(old)
                await asyncio.sleep(10)
                assert len(s.cluster.serving()) == 3
            assert set(s.cluster.etcd.members) == {"new-0", "new-1", "new-2"}
            assert await ready(s) == set(WORKERS)

    run_virtual(main())


def test_machines_that_are_switched_off_at_random_come_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with site(tmp_path) as s:
            await build(s)
            chance = random.Random(7)
            for _ in range(20):
                name = chance.choice((*CONTROLLERS, *WORKERS))
                await s.off(name)
                await asyncio.sleep(chance.uniform(1, 90))
                assert s.cluster.serving()
                await s.on(name)
                await asyncio.sleep(chance.uniform(0, 5))
                assert len(s.cluster.serving()) == 3
            await asyncio.sleep(60)
            assert await ready(s) == set(WORKERS)
            for name in CONTROLLERS[:2]:
                await s.off(name)
            await asyncio.sleep(10)
            assert not s.cluster.serving()
            for name in CONTROLLERS[:2]:
                await s.on(name)
            await asyncio.sleep(60)
            assert len(s.cluster.serving()) == 3
            assert await ready(s) == set(WORKERS)

    run_virtual(main())
