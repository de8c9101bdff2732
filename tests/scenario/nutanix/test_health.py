"""VMs that somebody switched off or removed in Prism Central: health checks have them replaced."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.runtime.testing import virtual
from homeport.sim.prism.entity import Vm
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

NAME = "one"


def health_check(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """As guides write it."""
    waits = [{"type": "Ready", "status": status, "timeout": "5m0s"} for status in ("False", "Unknown")]
    spec = {
        "clusterName": NAME,
        "maxUnhealthy": "40%",
        "nodeStartupTimeout": "10m0s",
        "selector": {"matchLabels": labels},
        "unhealthyConditions": waits,
    }
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": manifest.CAPI, "kind": "MachineHealthCheck", "metadata": meta, "spec": spec}


def vm_of(site: Site, part: str) -> Vm:
    return min((vm for vm in site.vms() if part in vm.name), key=lambda vm: vm.name)


@virtual
async def test_a_worker_that_is_off_and_a_control_plane_that_is_gone_are_replaced() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 3, 3))
        await site.have(
            health_check("workers", {"cluster.x-k8s.io/deployment-name": f"{NAME}-md-0"}),
            health_check("planes", {"cluster.x-k8s.io/control-plane": ""}),
        )
        await site.running(NAME, 3, 3)
        worker, plane = vm_of(site, "-md-"), vm_of(site, "-kcp-")
        site.prism.power.off(worker.ext_id)
        site.prism.machines.delete(plane, "admin")
        for each in (worker, plane):
            await site.gone(Machine, each.name, timeout=3600)
        machines = await site.running(NAME, 3, 3)
        await site.plane.settle(quiet=60)
        assert sorted(vm.name for vm in site.vms()) == sorted(each.metadata.name for each in machines)
        assert len(site.created) == 8
        (workload,) = site.fleet.clusters()
        assert len(workload.etcd.members) == 3
