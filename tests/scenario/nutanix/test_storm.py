"""A cluster lives through a Prism Central that errs all the time: nothing is doubled, left behind or given up."""

from __future__ import annotations

import asyncio

import pytest

from campaign import CAMPAIGN
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.runtime.clock import rfc3339
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Drop, Fault, Match, SessionExpiry, Stale, Status, TaskFailure, TaskHang, Throttle
from homeport.sim.prism.pace import REAL
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

NAME = "one"
# One of each version and seed takes seconds: the others are for campaigns.
CASES = [(v4, seed) for v4 in (True, False) for seed in range(10)] if CAMPAIGN else [(True, 0)]
STORM = (
    Fault(Status(503), Match(share=0.04), name="unavailable"),
    Fault(Status(500), Match(share=0.02), name="broken"),
    Fault(Throttle(2), Match(share=0.04), name="throttled"),
    Fault(Status(412), Match(method="POST", share=0.04), name="changed"),
    Fault(Status(412), Match(method="DELETE", share=0.1), name="changed before the end"),
    Fault(SessionExpiry(), Match(share=0.04), name="expired"),
    Fault(Drop("before"), Match(share=0.02), name="lost"),
    Fault(Drop("after"), Match(share=0.04), name="answer lost"),
    Fault(Stale(5), Match(share=0.04), name="stale"),
    Fault(TaskFailure(message="out of luck"), Match(share=0.05), name="failed"),
    Fault(TaskHang(60), Match(share=0.05), name="slow"),
)


@pytest.mark.parametrize(("v4", "seed"), CASES)
def test_a_cluster_lives_through_a_storm_and_restarts_of_its_controllers(v4: bool, seed: int) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site(v4=v4, pace=REAL, faults=STORM, seed=seed) as site:
            await site.have(*manifest.cluster_objects(NAME, 1, 1))
            await interrupted(site, 15)
            await site.running(NAME, 1, 1, timeout=7200)
            await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"replicas": 3}})
            await interrupted(site, 5)
            await site.running(NAME, 1, 3, timeout=7200)
            (old,) = [vm.name for vm in site.vms() if "-kcp-" in vm.name]
            after = rfc3339(site.clock.now())
            await site.patch(KubeadmControlPlane, f"{NAME}-kcp", {"spec": {"rollout": {"after": after}}})
            await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"replicas": 1}})
            await interrupted(site, 10)
            await site.until(
                KubeadmControlPlane,
                f"{NAME}-kcp",
                lambda k: k.status.observed_generation == k.metadata.generation and k.status.up_to_date_replicas == 1,
                7200,
            )
            machines = await site.running(NAME, 1, 1, timeout=7200)
            assert old not in [each.metadata.name for each in machines]
            await site.delete(Cluster, NAME)
            await interrupted(site, 5)
            await site.gone(Cluster, NAME, timeout=7200)
            assert len(site.created) == len(set(site.created)) == 5, site.created
            await site.empty(NAME)

    run()


async def interrupted(site: Site, seconds: float) -> None:
    """The controllers die in the middle of what they do, and begin anew."""
    await asyncio.sleep(seconds)
    await site.restart()
