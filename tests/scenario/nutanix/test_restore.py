"""A plane is restored from a backup that is older than its clusters: nothing that runs is ever removed."""

from __future__ import annotations

import asyncio

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.runtime.clock import rfc3339
from homeport.runtime.testing import virtual
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

NAME = "one"
PLANE, DEPLOYMENT = f"{NAME}-kcp", f"{NAME}-md-0"
WHILE = 3600.0  # several times as long as any patience


def vms(site: Site) -> set[str]:
    return {vm.name for vm in site.vms()}


def members(site: Site) -> set[str]:
    (workload,) = site.fleet.clusters()
    return {each.name for each in workload.etcd.members.values()}


@virtual
async def test_machines_that_are_newer_than_the_backup_live_on_and_are_reported() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.whole(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        backup = site.backup()
        await site.patch(KubeadmControlPlane, PLANE, {"spec": {"replicas": 3}})
        await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": 2}})
        await site.running(NAME, 3, 2)
        before, etcd = vms(site), members(site)
        await site.restore(backup)
        known = {each.metadata.name for each in await site.list(Machine)}
        newer = before - known
        assert len(newer) == 3
        words = (*newer, "is Node", f"homeport orphans list {NAME} -n default")
        await site.condition(NutanixCluster, NAME, "NoOrphanedMachines", "False", *words, timeout=1200)
        await site.condition(Cluster, NAME, "NoOrphanedMachines", "False", *words, timeout=60)
        await asyncio.sleep(WHILE)
        assert before <= vms(site)
        assert etcd <= members(site)
        await site.condition(KubeadmControlPlane, PLANE, "EtcdClusterHealthy", "False", "has no Machine and answers")
        await site.condition(Cluster, NAME, "Available", "True")


@virtual
async def test_machines_that_replaced_those_of_the_backup_live_on() -> None:
    """Every Machine of the backup is gone; every Node is one that the plane does not know."""
    async with nutanix_site() as site:
        await site.have(*manifest.whole(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        backup, old = site.backup(), vms(site)
        await asyncio.sleep(60)
        after = {"spec": {"rollout": {"after": rfc3339(site.clock.now())}}}
        await site.patch(KubeadmControlPlane, PLANE, after)
        await site.patch(MachineDeployment, DEPLOYMENT, after)
        await site.until(
            KubeadmControlPlane, PLANE, lambda k: k.status.replicas == 1 and not vms(site) & old, 3600, what="rolled"
        )
        await site.running(NAME, 1, 1)
        new, etcd = vms(site), members(site)
        await site.restore(backup)
        await asyncio.sleep(WHILE)
        assert new <= vms(site)
        assert etcd <= members(site)
