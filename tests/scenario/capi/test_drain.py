"""Machines that are to go and can't yet: who holds them is said, hooks and exceptions are kept, and nothing is stuck."""

from __future__ import annotations

import asyncio

import pytest

from capikit.yard import Yard, yard
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from homeport.sim.machine.workload.kind import NODE, POD
from scenario.capi.look import drop_budget, message, run_pod, says, workers, workload
from scenario.capi.shape import shape


async def guarded_worker(y: Yard) -> Machine:
    """A worker with a Pod that must not leave."""
    await y.create("one", 1, 1)
    await y.steady("one", 1, 1, "v1.30.0")
    (worker,) = await workers(y)
    assert worker.status.node_ref is not None
    await run_pod(y, "precious", worker.status.node_ref.name, guarded=True)
    await y.plane.settle(quiet=30)
    return worker


def test_a_blocked_drain_names_the_pod_and_its_budget_and_goes_on_when_it_may() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            worker = await guarded_worker(y)
            await y.delete(Machine, worker.metadata.name)
            blocked = says("Deleting", "default/precious", "precious-budget", status="True")
            await y.until(Machine, worker.metadata.name, blocked)
            await asyncio.sleep(3600)
            assert worker.metadata.name in y.alive().values()
            deployment = await y.client.get(MachineDeployment, Key("default", "one-md-0"))
            assert worker.metadata.name in message(deployment, "ScalingDown") + message(deployment, "MachinesReady")
            cluster = await y.client.get(Cluster, Key("default", "one"))
            said = message(cluster, "Available", "False")
            assert f"machine {worker.metadata.name}: it is being deleted: " in said
            assert "Pod default/precious can't be evicted" in said
            assert "precious-budget" in said
            freed = y.clock.monotonic()
            await drop_budget(y, "precious")
            await y.gone(Machine, worker.metadata.name)
            assert y.clock.monotonic() - freed < 30.0
            await y.steady("one", 1, 1, "v1.30.0")

    run()


def test_a_drain_ends_with_its_timeout() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            worker = await guarded_worker(y)
            deletion = {"deletion": {"nodeDrainTimeoutSeconds": 1200}}
            await y.patch(MachineDeployment, "one-md-0", {"spec": {"template": {"spec": deletion}}})
            await y.until(Machine, worker.metadata.name, lambda m: m.spec.deletion.node_drain_timeout_seconds == 1200)
            began = y.clock.monotonic()
            await y.delete(Machine, worker.metadata.name)
            await y.gone(Machine, worker.metadata.name, timeout=3600)
            assert 1199 <= y.clock.monotonic() - began < 1230
            await y.steady("one", 1, 1, "v1.30.0")

    run()


def test_a_node_may_be_excluded_from_draining() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            worker = await guarded_worker(y)
            mark = {"annotations": {"machine.cluster.x-k8s.io/exclude-node-draining": ""}}
            await y.patch(Machine, worker.metadata.name, {"metadata": mark})
            await y.delete(Machine, worker.metadata.name)
            await y.gone(Machine, worker.metadata.name, timeout=60)
            await y.steady("one", 1, 1, "v1.30.0")

    run()


@pytest.mark.parametrize("restarted", [False, True], ids=["", "controllers restarted"])
def test_a_cluster_whose_drain_is_blocked_can_be_deleted(restarted: bool) -> None:
    """The Pods go with their cluster: nobody is moved away from nodes that all go."""

    @virtual
    async def run() -> None:
        async with yard() as y:
            worker = await guarded_worker(y)
            await y.delete(Machine, worker.metadata.name)
            await y.until(Machine, worker.metadata.name, says("Deleting", "precious-budget"))
            if restarted:
                await y.restart()
            await y.delete(Cluster, "one")
            await y.gone(Cluster, "one")
            await y.plane.settle(quiet=30)
            assert not shape(y)
            assert not y.infra.machines

    run()


@pytest.mark.parametrize("restarted", [False, True], ids=["", "controllers restarted"])
@pytest.mark.parametrize("moment", [1.0, 40.0, 120.0, 250.0])
def test_a_cluster_can_be_deleted_in_the_middle_of_an_upgrade(moment: float, restarted: bool) -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 3, 2)
            await y.steady("one", 3, 2, "v1.30.0")
            y.fleet.pace = REALISTIC
            await y.patch(KubeadmControlPlane, "one-cp", {"spec": {"version": "v1.31.0"}})
            await y.patch(MachineDeployment, "one-md-0", {"spec": {"template": {"spec": {"version": "v1.31.0"}}}})
            await asyncio.sleep(moment)
            await y.delete(Cluster, "one")
            if restarted:
                await y.restart()
            await y.gone(Cluster, "one", timeout=3600)
            await y.plane.settle(quiet=30)
            assert not shape(y)
            assert not y.infra.machines
            assert not y.infra.balancers

    run()


def test_hooks_hold_a_machine_before_its_drain_and_before_its_end() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 1, 2)
            await y.steady("one", 1, 2, "v1.30.0")
            worker = (await workers(y))[0]
            name = worker.metadata.name
            assert worker.status.node_ref is not None
            await run_pod(y, "some", worker.status.node_ref.name)
            drain, end = (
                "pre-drain.delete.hook.machine.cluster.x-k8s.io/a",
                "pre-terminate.delete.hook.machine.cluster.x-k8s.io/b",
            )
            await y.patch(Machine, name, {"metadata": {"annotations": {drain: "me", end: "you"}}})
            await y.delete(Machine, name)
            await y.until(Machine, name, says("Deleting", drain, "me", status="True"))
            await asyncio.sleep(600)
            assert (await workload(y).get(POD, Key("default", "some"))).name == "some"
            await y.patch(Machine, name, {"metadata": {"annotations": {drain: None}}})
            await y.until(Machine, name, says("Deleting", end, "you", status="True"))
            with pytest.raises(NotFound):
                await workload(y).get(POD, Key("default", "some"))
            await asyncio.sleep(600)
            assert name in y.alive().values()
            assert (await workload(y).get(NODE, Key("", worker.status.node_ref.name))).name
            await y.patch(Machine, name, {"metadata": {"annotations": {end: None}}})
            await y.gone(Machine, name, timeout=60)
            with pytest.raises(NotFound):
                await workload(y).get(NODE, Key("", worker.status.node_ref.name))
            await y.steady("one", 1, 2, "v1.30.0")

    run()
