"""Scaling, upgrades and rollouts."""

from __future__ import annotations

import pytest

from capikit import manifest
from capikit.harness import Harness, harness
from homeport.api.cluster.v1beta2 import MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.runtime.testing import virtual


async def versions_of(h: Harness) -> set[str]:
    from homeport.sim.machine.workload.kind import NODE

    (workload,) = h.fleet.clusters()
    return {n["status"]["nodeInfo"]["kubeletVersion"] for n in (await workload.client().list(NODE)).items}


def test_workers_and_control_planes_scale_up_and_down() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 1)
            await h.steady("one", 1, 1, "v1.30.0")
            await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 3}})
            await h.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 5}})
            await h.steady("one", 3, 5, "v1.30.0")
            assert len(h.infra.machines) == 8
            await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 1}})
            await h.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 2}})
            await h.steady("one", 1, 2, "v1.30.0")
            await h.plane.settle(quiet=30)
            assert len(h.infra.machines) == 3
            (workload,) = h.fleet.clusters()
            assert len(workload.etcd.members) == 1

    run()


def test_a_cluster_is_upgraded_twice_with_its_workers_following() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 3, 3, "v1.28.0")
            await h.steady("one", 3, 3, "v1.28.0")
            for version in ("v1.29.0", "v1.30.0"):
                await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"version": version}})
                await h.steady("one", 3, 3, version)
                await h.patch(MachineDeployment, "one-md-0", {"spec": {"template": {"spec": {"version": version}}}})
                await h.steady("one", 3, 3, version)
                await h.plane.settle(quiet=30)
                assert await versions_of(h) == {version}
                assert len(h.infra.machines) == 6
            assert len(h.infra.created) == 18

    run()


@pytest.mark.parametrize(
    ("surge", "unavailable"),
    [(1, 0), (0, 1), ("50%", "25%"), (3, 0)],
    ids=["surge", "in place", "share", "all at once"],
)
def test_a_changed_template_rolls_out_within_its_bounds(surge: int | str, unavailable: int | str) -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 4)
            await h.steady("one", 1, 4, "v1.30.0")
            old = set(h.alive())
            await h.plane.have(manifest.template("one-md-1"))
            strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
            ref = {"template": {"spec": {"infrastructureRef": {"name": "one-md-1"}}}, "rollout": {"strategy": strategy}}
            await h.patch(MachineDeployment, "one-md-0", {"spec": ref})
            await h.steady("one", 1, 4, "v1.30.0")
            await h.plane.settle(quiet=30)
            assert len(set(h.alive()) & old) == 1  # the control plane
            assert len(h.infra.machines) == 5

    run()
