"""ClusterDeployments on a simulated Harvester: control planes in the plane and on VMs."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.client.protocol import Key, Query
from homeport.providers.harvester.infracluster.resource import VM
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import NODE
from scenario.harvester import manifest
from scenario.k0rdent.stage import SPACE, Stage, credential, deployments, k0rdent

Json = dict[str, Any]


def harvester(mode: str, name: str, host: str, **config: Any) -> Json:
    values = {
        "harvester": {"controlPlaneEndpoint": {"host": host, "port": 6443}},
        "machineDefaults": {"image": f"default/{manifest.IMAGE}", "networks": ["default/workloads"]},
        "workersNumber": 1,
        **config,
    }
    spec = {"template": f"harvester-k0s-{mode}", "credential": "harvester", "config": values}
    return k0rdent("ClusterDeployment", name, spec)


def account(stage: Stage) -> list[Json]:
    secret = stage.site.secret()
    return [
        {**secret, "metadata": {"name": "harvester-account", "namespace": SPACE}},
        credential("harvester", "harvester-account"),
    ]


async def is_up(stage: Stage, name: str, plane: str, machines: int) -> None:
    await stage.ready(name)
    cluster: Cluster = await stage.client.get(Cluster, Key(SPACE, name))
    assert cluster.spec.control_plane_ref is not None
    assert cluster.spec.control_plane_ref.name == plane
    assert len(await stage.machines(name)) == machines
    inside = await stage.inside(name)
    assert len((await inside.list(NODE, Query())).items) == machines


@virtual
async def test_a_hosted_cluster_on_harvester_becomes_ready_and_leaves_nothing() -> None:
    async with deployments(harvester=True) as stage:
        await stage.have(*account(stage), harvester("hcp", "one", "10.40.0.201"))
        await is_up(stage, "one", "one-hcp-cp", 1)
        await stage.delete("one")
        await stage.gone("one")
        assert (await stage.site.infra.list(VM, Query())).items == []


@virtual
async def test_a_standalone_cluster_on_harvester_becomes_ready() -> None:
    async with deployments(harvester=True) as stage:
        await stage.have(*account(stage), harvester("standalone", "two", "10.40.0.202", controlPlaneNumber=1))
        await is_up(stage, "two", "two-standalone-cp", 2)
