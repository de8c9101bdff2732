"""Machines with volumes: these are let go before the VM goes, and nothing of what is on them is lost."""

from __future__ import annotations

import asyncio

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.runtime.testing import virtual
from scenario.nutanix import manifest
from scenario.nutanix.site import nutanix_site
from scenario.nutanix.storage import storage

NAME = "one"


@virtual
async def test_a_cluster_whose_claims_are_still_bound_goes_and_their_volume_groups_stay() -> None:
    async with nutanix_site() as site, storage(site) as volumes:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        machines = await site.running(NAME, 1, 1)
        (node,) = [each.metadata.name for each in machines if "-md-" in each.metadata.name]
        names = [f"pvc-{number}" for number in range(5)]
        await volumes.use("database", node, *names)
        await asyncio.sleep(10)
        assert volumes.attached() == dict.fromkeys(names, node)
        begun, asked = site.clock.monotonic(), site.prism.journal.total
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        assert site.clock.monotonic() - begun < 60  # together, not one after the other
        assert sum(count for call, count in site.calls(asked).items() if "detach-vm" in call) == len(names)
        await site.empty(NAME)
        assert sorted(volumes.groups()) == names
        assert volumes.attached() == {}


@virtual
async def test_a_worker_that_goes_is_drained_and_waits_until_its_volumes_are_detached() -> None:
    async with nutanix_site() as site, storage(site) as volumes:
        await site.have(*manifest.cluster_objects(NAME, 1, 2))
        machines = await site.running(NAME, 1, 2)
        node, other = sorted(each.metadata.name for each in machines if "-md-" in each.metadata.name)
        await volumes.use("database", node, "data", "log")
        await volumes.use("cache", other, "scratch")
        await asyncio.sleep(10)
        calls = site.prism.journal.total
        mark = {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}}
        await site.patch(Machine, node, mark)
        await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"replicas": 1}})
        await site.gone(Machine, node)
        # The driver detached them, after the drain: nobody pulled them out from under a Pod.
        assert not [call for call in site.calls(calls) if "detach" in call]
        assert volumes.attached() == {"scratch": other}
        assert sorted(volumes.groups()) == ["data", "log", "scratch"]
