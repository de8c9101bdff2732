"""Machines fail, controllers die, somebody pauses: the end is the same."""

from __future__ import annotations

import asyncio

import pytest

from capikit import generic, manifest
from capikit.harness import Harness, harness
from homeport.api.cluster.v1beta2 import Cluster
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC


def health_check(name: str, *, control_plane: bool) -> dict[str, object]:
    match = (
        {"matchExpressions": [{"key": "cluster.x-k8s.io/control-plane", "operator": "Exists"}]}
        if control_plane
        else {"matchLabels": {"cluster.x-k8s.io/deployment-name": f"{name}-md-0"}}
    )
    waits = [{"type": "Ready", "status": each, "timeoutSeconds": 300} for each in ("Unknown", "False")]
    return {
        "apiVersion": manifest.CLUSTER_API,
        "kind": "MachineHealthCheck",
        "metadata": {"name": f"{name}-{'cp' if control_plane else 'md'}", "namespace": "default"},
        "spec": {"clusterName": name, "selector": match, "checks": {"unhealthyNodeConditions": waits}},
    }


def crash(h: Harness, *, control_plane: bool) -> str:
    made = next(m for m in h.infra.machines.values() if m.control_plane == control_plane)
    h.fleet.powered_off(made.uid, crashed=True)
    return made.name


@pytest.mark.parametrize("control_plane", [False, True], ids=["worker", "control plane"])
def test_a_machine_that_died_is_replaced(control_plane: bool) -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 3, 2)
            await h.plane.have(health_check("one", control_plane=control_plane))
            await h.steady("one", 3, 2, "v1.30.0")
            lost = crash(h, control_plane=control_plane)
            await h.gone(generic.MACHINE, lost, timeout=7200)
            await h.steady("one", 3, 2, "v1.30.0")
            await h.plane.settle(quiet=60)
            assert len(h.infra.machines) == 5
            (workload,) = h.fleet.clusters()
            assert len(workload.etcd.members) == 3

    run()


def test_without_quorum_nothing_is_deleted() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 3, 1)
            await h.plane.have(health_check("one", control_plane=True))
            await h.steady("one", 3, 1, "v1.30.0")
            planes = [uid for uid, m in h.infra.machines.items() if m.control_plane]
            for uid in planes[:2]:
                h.fleet.powered_off(uid, crashed=True)
            await asyncio.sleep(7200)
            assert set(planes) <= set(h.infra.machines), "a control plane machine was deleted without quorum"
            assert len(h.infra.created) == 4

    run()


@pytest.mark.parametrize("moment", [0.0, 0.05, 5.0, 20.0, 45.0, 70.0])
def test_a_paused_cluster_stands_still_and_goes_on(moment: float) -> None:
    @virtual
    async def run() -> None:
        async with harness(pace=REALISTIC) as h:
            await h.create("one", 1, 1)
            await asyncio.sleep(moment)
            await h.patch(Cluster, "one", {"spec": {"paused": True}})
            await h.plane.settle(quiet=120)
            made = len(h.infra.created)
            await asyncio.sleep(600)
            assert len(h.infra.created) == made
            await h.patch(Cluster, "one", {"spec": {"paused": None}})
            await h.steady("one", 1, 1, "v1.30.0")
            assert len(h.infra.created) == 2

    run()
