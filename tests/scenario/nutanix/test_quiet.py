"""A whole life without trouble says nothing that sounds like trouble."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import QUICK, REALISTIC
from homeport.sim.machine.pace import Pace as MachinePace
from homeport.sim.prism.pace import INSTANT, REAL, Pace
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

NAME = "my-nutanix-cluster"
NEW = "v1.29.0"


async def upgrade(site: Site, control_planes: int, workers: int) -> None:
    spec = manifest.machine_spec(image={"type": "name", "name": f"ubuntu-22.04-kube-{NEW}"})
    await site.have(manifest.template("new-cp", spec), manifest.template("new-worker", spec))
    template = {"spec": {"infrastructureRef": {"name": "new-cp"}}}
    await site.patch(KubeadmControlPlane, f"{NAME}-kcp", {"spec": {"version": NEW, "machineTemplate": template}})
    await site.until(KubeadmControlPlane, f"{NAME}-kcp", lambda k: settled(k, control_planes), 3600)
    machine = {"version": NEW, "infrastructureRef": {"name": "new-worker"}}
    await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"template": {"spec": machine}}})
    await site.until(MachineDeployment, f"{NAME}-md-0", lambda m: settled(m, workers), 3600)


def settled(obj: Any, replicas: int) -> bool:
    s = obj.status
    counted = (s.replicas, s.ready_replicas, s.available_replicas, s.up_to_date_replicas)
    return bool(counted == (replicas,) * 4 and (s.observed_generation or 0) >= obj.metadata.generation)


@pytest.mark.parametrize(("pace", "machine_pace"), [(INSTANT, QUICK), (REAL, REALISTIC)], ids=["quick", "real"])
def test_create_scale_upgrade_and_delete_emit_no_warning(pace: Pace, machine_pace: MachinePace) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site(pace=pace, machine_pace=machine_pace) as site:
            await site.have(manifest.secret(), *manifest.whole(NAME, 3, 2, with_secret=False))
            await site.running(NAME, 3, 2, timeout=3600)
            for replicas in (4, 2):
                await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"replicas": replicas}})
                await site.running(NAME, 3, replicas, timeout=3600)
            for replicas in (5, 3):
                await site.patch(KubeadmControlPlane, f"{NAME}-kcp", {"spec": {"replicas": replicas}})
                await site.until(KubeadmControlPlane, f"{NAME}-kcp", lambda k, n=replicas: settled(k, n), 3600)
            await upgrade(site, 3, 2)
            await site.delete(Cluster, NAME)
            await site.gone(Cluster, NAME, timeout=3600)
            found = [each for each in await site.events() if each.get("type") != "Normal"]
            assert [f"{each.get('reason')}: {each.get('note')}" for each in found] == []

    run()
