"""Deletion: in order, at every phase, and nothing is left."""

from __future__ import annotations

import asyncio

import pytest

from campaign import sample
from capikit import generic
from capikit.harness import Harness, harness
from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Query
from homeport.runtime.testing import virtual

_KINDS = (
    Cluster,
    Machine,
    MachineDeployment,
    MachineSet,
    KubeadmControlPlane,
    KubeadmConfig,
    generic.CLUSTER,
    generic.MACHINE,
)


async def nothing_left(h: Harness) -> None:
    for kind in _KINDS:
        left = [getattr(each, "metadata", None) for each in (await h.client.list(kind, Query())).items]
        assert not left, f"{kind}: {left}"
    assert not h.infra.machines
    assert not h.infra.balancers


def test_a_deleted_cluster_leaves_nothing_behind() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 3, 3)
            await h.steady("one", 3, 3, "v1.30.0")
            await h.delete(Cluster, "one")
            await h.gone(Cluster, "one")
            await h.plane.settle(quiet=30)
            await nothing_left(h)

    run()


@pytest.mark.parametrize("moment", sample([0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 90.0], 5))
def test_a_cluster_can_be_deleted_at_every_phase(moment: float) -> None:
    @virtual
    async def run() -> None:
        from homeport.sim.machine.pace import REALISTIC

        async with harness(pace=REALISTIC) as h:
            await h.create("one", 3, 2)
            await asyncio.sleep(moment)
            await h.delete(Cluster, "one")
            await h.gone(Cluster, "one", timeout=3600)
            await h.plane.settle(quiet=30)
            await nothing_left(h)

    run()
