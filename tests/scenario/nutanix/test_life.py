"""A cluster on Nutanix, from its manifest to running machines and back to nothing."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Cluster
from homeport.runtime.testing import virtual
from scenario.nutanix import manifest
from scenario.nutanix.site import nutanix_site

NAME = "my-nutanix-cluster"


@virtual
async def test_the_manifest_of_the_guide_becomes_a_running_cluster_and_goes_without_a_trace() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.whole())
        machines = await site.running(NAME, 3, 3)
        assert len(machines) == 6
        assert sorted(site.made) == sorted(each.metadata.name for each in machines)
        assert site.categories() == [NAME]
        await site.until(Cluster, NAME, lambda c: c.status.phase == "Provisioned")
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.empty(NAME)
