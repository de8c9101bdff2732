"""The only control plane machine of a cluster is replaced: its API server is away for a moment, and is left in peace."""

from __future__ import annotations

import asyncio

import pytest

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.runtime.clock import rfc3339
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import QUICK, REALISTIC, Pace
from homeport.sim.network.book import OUTSIDE
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site
from scenario.nutanix.test_quiet import settled

ENDPOINT = "10.0.0.100"
PLANE = "one-kcp"


def attempts(site: Site) -> int:
    """How often the plane tried to connect to the API server of the cluster."""
    return site.dialled[OUTSIDE, f"{ENDPOINT}:6443"]


async def roll(site: Site) -> None:
    await site.patch(KubeadmControlPlane, PLANE, {"spec": {"rollout": {"after": rfc3339(site.clock.now())}}})
    await site.until(KubeadmControlPlane, PLANE, lambda k: settled(k, 1))
    await asyncio.sleep(60)


@pytest.mark.parametrize("pace", [QUICK, REALISTIC], ids=["quick", "realistic"])
def test_replacing_the_only_control_plane_machine_takes_few_connections(pace: Pace) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site(machine_pace=pace) as site:
            await site.have(*manifest.cluster_objects("one", 1, 0, ENDPOINT))
            await site.running("one", 1)
            await asyncio.sleep(120)
            (old,) = await site.list(Machine)
            before = attempts(site)
            await roll(site)
            (new,) = await site.list(Machine)
            assert new.metadata.name != old.metadata.name
            assert attempts(site) - before <= 22

    run()
