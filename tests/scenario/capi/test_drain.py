"""Machines that are to go and can't yet: who holds them is said, hooks and exceptions are kept, and nothing is stuck."""

from __future__ import annotations

import asyncio

import pytest

from campaign import sample
from capikit.harness import Harness, harness
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from homeport.sim.machine.workload.kind import NODE, POD
from scenario.capi.look import drop_budget, message, run_pod, says, workers, workload
from scenario.capi.shape import shape


async def guarded_worker(h: Harness) -> Machine:
    """A worker with a Pod that must not leave."""
    await h.create("one", 1, 1)
    await h.steady("one", 1, 1, "v1.30.0")
    (worker,) = await workers(h)
    assert worker.status.node_ref is not None
    await run_pod(h, "precious", worker.status.node_ref.name, guarded=True)
    await h.plane.settle(quiet=30)
    return worker


def test_a_blocked_drain_names_the_pod_and_its_budget_and_goes_on_when_it_may() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            worker = await guarded_worker(h)
            await h.delete(Machine, worker.metadata.name)
            blocked = says("Deleting", "default/precious", "precious-budget", status="True")
            await h.until(Machine, worker.metadata.name, blocked)
            await asyncio.sleep(3600)
            assert worker.metadata.name in h.alive().values()
            deployment = await h.client.get(MachineDeployment, Key("default", "one-md-0"))
            assert worker.metadata.name in message(deployment, "ScalingDown") + message(deployment, "MachinesReady")
            cluster = await h.client.get(Cluster, Key("default", "one"))
            said = message(cluster, "Available", "False")
            assert f"machine {worker.metadata.name}: it is being deleted: " in said
            assert "Pod default/precious can't be evicted" in said
            assert "precious-budget" in said
            freed = h.clock.monotonic()
            await drop_budget(h, "precious")
            await h.gone(Machine, worker.metadata.name)
            assert h.clock.monotonic() - freed < 30.0
            await h.steady("one", 1, 1, "v1.30.0")

    run()


def test_a_drain_ends_with_its_timeout() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            worker = await guarded_worker(h)
            deletion = {"deletion": {"nodeDrainTimeoutSeconds": 1200}}
            await h.patch(MachineDeployment, "one-md-0", {"spec": {"template": {"spec": deletion}}})
            await h.until(Machine, worker.metadata.name, lambda m: m.spec.deletion.node_drain_timeout_seconds == 1200)
            began = h.clock.monotonic()
            await h.delete(Machine, worker.metadata.name)
            await h.gone(Machine, worker.metadata.name, timeout=3600)
            assert 1199 <= h.clock.monotonic() - began < 1230
            await h.steady("one", 1, 1, "v1.30.0")

    run()


def test_a_node_may_be_excluded_from_draining() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            worker = await guarded_worker(h)
            mark = {"annotations": {"machine.cluster.x-k8s.io/exclude-node-draining": ""}}
            await h.patch(Machine, worker.metadata.name, {"metadata": mark})
            await h.delete(Machine, worker.metadata.name)
            await h.gone(Machine, worker.metadata.name, timeout=60)
            await h.steady("one", 1, 1, "v1.30.0")

    run()


@pytest.mark.parametrize("restarted", [False, True], ids=["", "controllers restarted"])
def test_a_cluster_whose_drain_is_blocked_can_be_deleted(restarted: bool) -> None:
    """The Pods go with their cluster: nobody is moved away from nodes that all go."""

    @virtual
    async def run() -> None:
        async with harness() as h:
            worker = await guarded_worker(h)
            await h.delete(Machine, worker.metadata.name)
            await h.until(Machine, worker.metadata.name, says("Deleting", "precious-budget"))
            if restarted:
                await h.restart()
            await h.delete(Cluster, "one")
            await h.gone(Cluster, "one")
            await h.plane.settle(quiet=30)
            assert not shape(h)
            assert not h.infra.machines

    run()


@pytest.mark.parametrize("restarted", [False, True], ids=["", "controllers restarted"])
@pytest.mark.parametrize("moment", sample([1.0, 40.0, 120.0, 250.0], 2))
def test_a_cluster_can_be_deleted_in_the_middle_of_an_upgrade(moment: float, restarted: bool) -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 3, 2)
            await h.steady("one", 3, 2, "v1.30.0")
            h.fleet.pace = REALISTIC
            await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"version": "v1.31.0"}})
            await h.patch(MachineDeployment, "one-md-0", {"spec": {"template": {"spec": {"version": "v1.31.0"}}}})
            await asyncio.sleep(moment)
            await h.delete(Cluster, "one")
            if restarted:
                await h.restart()
            await h.gone(Cluster, "one", timeout=3600)
            await h.plane.settle(quiet=30)
            assert not shape(h)
            assert not h.infra.machines
            assert not h.infra.balancers

    run()


def test_hooks_hold_a_machine_before_its_drain_and_before_its_end() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 2)
            await h.steady("one", 1, 2, "v1.30.0")
            worker = (await workers(h))[0]
            name = worker.metadata.name
            assert worker.status.node_ref is not None
            await run_pod(h, "some", worker.status.node_ref.name)
            drain, end = (
                "pre-drain.delete.hook.machine.cluster.x-k8s.io/a",
                "pre-terminate.delete.hook.machine.cluster.x-k8s.io/b",
            )
            await h.patch(Machine, name, {"metadata": {"annotations": {drain: "me", end: "you"}}})
            await h.delete(Machine, name)
            await h.until(Machine, name, says("Deleting", drain, "me", status="True"))
            await asyncio.sleep(600)
            assert (await workload(h).get(POD, Key("default", "some"))).name == "some"
            await h.patch(Machine, name, {"metadata": {"annotations": {drain: None}}})
            await h.until(Machine, name, says("Deleting", end, "you", status="True"))
            with pytest.raises(NotFound):
                await workload(h).get(POD, Key("default", "some"))
            await asyncio.sleep(600)
            assert name in h.alive().values()
            assert (await workload(h).get(NODE, Key("", worker.status.node_ref.name))).name
            await h.patch(Machine, name, {"metadata": {"annotations": {end: None}}})
            await h.gone(Machine, name, timeout=60)
            with pytest.raises(NotFound):
                await workload(h).get(NODE, Key("", worker.status.node_ref.name))
            await h.steady("one", 1, 2, "v1.30.0")

    run()
