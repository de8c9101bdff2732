"""The guide's advanced configuration: UUIDs, two subnets, project, categories, labels and taints."""

from __future__ import annotations

from homeport.client.protocol import Query
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import NODE
from scenario.k0rdent.stage import credential, deployments, hosted, secret

NAME = "nutanix-hcp-demo"


@virtual
async def test_entities_by_uuid_two_subnets_project_categories_labels_and_taints_reach_the_machines() -> None:
    async with deployments() as stage:
        world = stage.site.prism.world
        image = next(each for each in world.images if each.name == "ubuntu-22.04-k0s")
        pe = next(each for each in world.clusters if each.name == "PE-Cluster-01")
        body = hosted(workersNumber=1)
        config = body["spec"]["config"]
        config["machineDefaults"] |= {
            "image": {"type": "uuid", "uuid": image.ext_id},
            "cluster": {"type": "uuid", "uuid": pe.ext_id},
            "subnets": [{"type": "name", "name": "Primary-Network"}, {"type": "name", "name": "Storage-Network"}],
            "project": "k0s-production",
            "additionalCategories": ["environment:production", "workload:k0s", "managed-by:k0rdent"],
        }
        config["k0s"]["worker"] = {
            "labels": {"node-role.kubernetes.io/worker": "", "nutanix.com/cluster": "pe-cluster-01"},
            "taints": [{"key": "workload", "value": "batch", "effect": "NoSchedule"}],
        }
        config["csi"] = {"enabled": False}
        await stage.have(secret(), credential(), body)
        await stage.ready(NAME)
        (vm,) = stage.site.vms()
        assert len(vm.nics) == 2
        inside = await stage.inside(NAME)
        (node,) = (await inside.list(NODE, Query())).items
        labels = node.metadata["labels"]
        assert labels["nutanix.com/cluster"] == "pe-cluster-01"
        assert "node-role.kubernetes.io/worker" in labels
        assert {"key": "workload", "value": "batch", "effect": "NoSchedule"} in node["spec"]["taints"]
