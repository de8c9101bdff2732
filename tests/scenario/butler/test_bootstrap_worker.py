"""A worker of a management cluster is replaced: the Node of the old VM goes first, and only if the VM is surely gone."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.butler.v1alpha1 import ClusterBootstrap, MachineRequest
from homeport.capi.name import PAUSED
from homeport.capi.remote.workload import NODE
from homeport.client.protocol import Key, MergePatch
from homeport.platforms.butler.bootstrap.state import node_ready
from homeport.platforms.butler.name import NODE_FINALIZER, SYSTEM_NAMESPACE
from homeport.runtime.testing import virtual
from scenario.butler.management import MGMT, SMALL, bootstrap, bootstrapped, inside
from scenario.butler.stage import Stage, butler, tenants
from scenario.butler.test_bootstrap_trouble import OFF, gone, waits

WORKER = Key(SYSTEM_NAMESPACE, "mgmt-worker-0")


async def replaced(stage: Stage, old: str) -> MachineRequest:
    """The MachineRequest of the worker, once it is another one that runs."""

    def fits(found: MachineRequest) -> bool:
        return found.metadata.uid != old and found.status.phase == "Running"

    made: MachineRequest = await stage.plane.until(MachineRequest, WORKER, fits, 1800, what="a new worker")
    return made


async def joined(stage: Stage) -> None:
    def fits(found: ClusterBootstrap) -> bool:
        return all(each.ready for each in found.status.machines)

    await stage.plane.until(ClusterBootstrap, MGMT, fits, 1800, what="Nodes that are ready")


async def node_of(stage: Stage) -> Any:
    async with inside(stage) as there:
        return await there.get(NODE, Key("", WORKER.name))


@pytest.mark.parametrize("provider", ["harvester", "nutanix"])
@pytest.mark.timeout(300)
def test_a_worker_that_is_requested_again_joins_with_a_node_of_its_own(provider: str) -> None:
    @virtual
    async def run() -> None:
        async with tenants(provider) as stage:
            await stage.have(bootstrap(stage, single=True, workers=1, addons=OFF))
            await bootstrapped(stage)
            old, before = await stage.client.get(MachineRequest, WORKER), await node_of(stage)
            assert NODE_FINALIZER in old.metadata.finalizers
            await stage.client.delete(MachineRequest, WORKER)
            await waits(stage, "WaitingForNodeToStop", WORKER.name)
            await stage.restart()  # who continues has the same proof
            made = await replaced(stage, old.metadata.uid)
            await joined(stage)
            after = await node_of(stage)
            assert after.uid != before.uid
            assert node_ready(after)
            assert made.status.provider_id != old.status.provider_id
            assert await stage.vms() == ["mgmt-cp-0", "mgmt-worker-0"]
            await gone(stage)
            assert await stage.vms() == []

    run()


@pytest.mark.timeout(300)
@virtual
async def test_the_node_stays_if_the_finalizer_was_removed_before_the_vm_was_gone() -> None:
    async with tenants("harvester") as stage:
        await stage.have(bootstrap(stage, single=True, workers=1, addons=OFF))
        await bootstrapped(stage)
        before = await node_of(stage)
        paused = {"metadata": {"annotations": {PAUSED: ""}}}  # so that the provider is not asked
        await stage.client.patch(MachineRequest, WORKER, MergePatch(paused))
        await stage.client.delete(MachineRequest, WORKER)
        await stage.client.patch(MachineRequest, WORKER, MergePatch({"metadata": {"finalizers": [NODE_FINALIZER]}}))
        await waits(stage, "NodeRemains", WORKER.name, "kubectl delete node")
        assert (await node_of(stage)).uid == before.uid
        assert "mgmt-worker-0" in await stage.vms()


@virtual
async def test_a_machine_that_came_without_its_bootstrap_does_not_wait_for_a_node() -> None:
    async with tenants("harvester") as stage:
        spec = {"providerRef": {"name": "site"}, "machineName": "lone", "role": "worker", "userData": "#!", **SMALL}
        request = butler("MachineRequest", "lone", SYSTEM_NAMESPACE, spec)
        request["metadata"]["finalizers"] = [NODE_FINALIZER]
        await stage.have(request)
        lone = Key(SYSTEM_NAMESPACE, "lone")
        await stage.plane.until(MachineRequest, lone, lambda found: found.status.phase == "Running", 1800)
        assert await stage.vms() == ["lone"]
        await stage.client.delete(MachineRequest, lone)
        await stage.plane.gone(MachineRequest, lone, 600)
        assert await stage.vms() == []
