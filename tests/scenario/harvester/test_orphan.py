"""VMs on Harvester whose objects are lost, as after the restore of an older backup: found, adopted and removed."""

from __future__ import annotations

import pytest

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.app.orphan import adoption
from homeport.app.orphan import request as orphan
from homeport.client.protocol import Key
from homeport.providers.harvester.infracluster.resource import VM
from homeport.runtime.testing import virtual
from scenario.harvester import manifest
from scenario.harvester.site import Site, harvester_site

NAME = "one"
KEY = Key(manifest.NAMESPACE, NAME)


async def forget_a_worker(site: Site) -> str:
    """The name of a worker that a state of before it was created does not know."""
    await site.have(*manifest.cluster_objects(NAME, 1, 1))
    before = {each.metadata.name for each in await site.running(NAME, 1, 1)}
    await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"replicas": 2}})
    after = {each.metadata.name for each in await site.running(NAME, 1, 2)}
    (name,) = after - before
    await site.plane.stop()
    for kind in (Machine, KubevirtMachine, KubeadmConfig):
        await site.patch(kind, name, {"metadata": {"finalizers": None}})
        await site.delete(kind, name)
        await site.gone(kind, name)
    for owner in (*await site.all(MachineSet), *await site.all(MachineDeployment)):
        await site.patch(type(owner), owner.metadata.name, {"spec": {"replicas": 1}})
    await site.restart()
    await site.condition(KubevirtCluster, NAME, "NoOrphanedMachines", "False", name, timeout=900)
    return name


@virtual
async def test_an_orphan_is_listed_and_adopted() -> None:
    async with harvester_site() as site:
        name = await forget_a_worker(site)
        (found,) = await orphan.look(site.client, KEY)
        assert (found.owned.name, found.role is not None and found.role.node) == (name, name)
        lines = await adoption.adopt(site.client, KEY, adoption.AdoptionRequest(), dry_run=False)
        assert f"create KubevirtMachine {name}" in lines
        machines = await site.running(NAME, 1, 2)
        assert name in {each.metadata.name for each in machines}
        assert len(site.created) == len(set(site.created)) == 3
        await site.condition(KubevirtCluster, NAME, "NoOrphanedMachines", "True", timeout=900)
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty()


@virtual
async def test_an_orphan_is_removed_only_by_force_while_it_is_a_node() -> None:
    async with harvester_site() as site:
        name = await forget_a_worker(site)
        with pytest.raises(orphan.Refused, match="use --force"):
            await orphan.removable(site.client, KEY, [name], force=False)
        chosen = await orphan.removable(site.client, KEY, [name], force=True)
        await orphan.remove(site.client, KEY, chosen, force=True)
        await site.condition(KubevirtCluster, NAME, "NoOrphanedMachines", "True", timeout=1800)
        assert name not in {each.name for each in await site.there(VM)}
        await site.running(NAME, 1, 1)
