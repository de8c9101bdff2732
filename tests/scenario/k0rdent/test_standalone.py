"""The guide's standalone cluster on simulated Nutanix: control plane and workers on VMs."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.nutanix.v1beta1 import NutanixMachineTemplate
from homeport.client.protocol import Key, Query
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import NODE
from scenario.k0rdent.stage import SPACE, credential, deployments, hosted, secret, standalone

NAME = "nutanix-standalone-demo"


@virtual
async def test_the_guides_standalone_cluster_becomes_ready_beside_the_hosted_one_and_leaves_nothing() -> None:
    async with deployments() as stage:
        await stage.have(secret(), credential(), standalone(), hosted(workersNumber=1))
        await stage.ready(NAME)
        cluster: Cluster = await stage.client.get(Cluster, Key(SPACE, NAME))
        assert cluster.spec.control_plane_ref is not None
        assert cluster.spec.control_plane_ref.name == f"{NAME}-standalone-cp"
        assert cluster.spec.control_plane_endpoint.host == "10.1.1.201"
        machines = await stage.machines(NAME)
        assert len(machines) == 5
        assert all(condition.is_true(each.status.conditions, "UpToDate") for each in machines)
        templates = (await stage.client.list(NutanixMachineTemplate, Query(namespace=SPACE))).items
        names = [each.metadata.name for each in templates]
        assert [name for name in names if name.startswith(f"{NAME}-standalone-worker-mt-")]
        assert [name for name in names if name.startswith(f"{NAME}-standalone-cp-mt-")]
        inside = await stage.inside(NAME)
        assert len((await inside.list(NODE, Query())).items) == 5
        await stage.ready("nutanix-hcp-demo")
        for name in (NAME, "nutanix-hcp-demo"):
            await stage.delete(name)
            await stage.gone(name)
        assert stage.vms() == []
