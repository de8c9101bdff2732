"""MachineDeployments on a real API, with Machines that take ten seconds to come and to go."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import MachineDeployment
from homeport.runtime.testing import versions, virtual
from reconcile.core.machineset.worker_kit import MD, cluster, machine_deployment, said, workers


@virtual
async def test_a_new_machinedeployment_gets_a_set_and_its_machines() -> None:
    async with workers(cluster(), machine_deployment(3)) as w:
        await w.p.until(MachineDeployment, MD, lambda d: d.status.available_replicas == 3, 120)
        [found] = await w.sets()
        assert found.metadata.annotations["machinedeployment.clusters.x-k8s.io/revision"] == "1"
        machines = await w.machines()
        assert len(machines) == 3
        deployment = await w.deployment()
        assert said(deployment, "Available")[0] == "True"
        assert deployment.status.phase == "Running"
        before = versions(w.p)
        await w.p.settle(quiet=600)
        assert versions(w.p) == before
