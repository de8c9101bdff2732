"""Controllers break, are deleted by users, or have no Node: etcd keeps its quorum."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.k0s.v1beta2 import K0sControlPlane
from homeport.capi.name import PRE_TERMINATE_KCP_CLEANUP, REMEDIATE_MACHINE
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import LEASE
from scenario.k0s import manifest
from scenario.k0s.quorum import quorum_kept
from scenario.k0s.test_k0s_control_plane import PLANE, members, ready, says, until, workload
from scenario.nutanix.site import SECRET, Site, nutanix_site


def power_off(site: Site, name: str) -> None:
    (vm,) = [each for each in site.vms() if each.name == name]
    site.prism.power.off(vm.ext_id)


async def controllers(site: Site) -> list[str]:
    return sorted(each.metadata.name for each in await site.list(Machine))


@virtual
async def test_a_broken_controller_is_replaced() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        async with quorum_kept(site):
            broken = (await controllers(site))[0]
            power_off(site, broken)
            await site.patch(Machine, broken, {"metadata": {"annotations": {REMEDIATE_MACHINE: ""}}})
            await site.gone(Machine, broken, 1800)
            await ready(site, 3)
        assert broken not in members(site)
        assert members(site) == set(await controllers(site))


@virtual
async def test_a_controller_is_not_replaced_when_that_would_cost_the_quorum() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        first, second, _ = await controllers(site)
        power_off(site, second)
        await site.condition(Machine, second, "InfrastructureReady", "False", timeout=300)
        await site.patch(Machine, first, {"metadata": {"annotations": {REMEDIATE_MACHINE: ""}}})
        await until(site, says("Remediating", "True", "RemediationDeferred", second), "it waits")
        await asyncio.sleep(600)
        assert len(members(site)) == 3
        assert len(await controllers(site)) == 3


@virtual
async def test_a_sick_controller_goes_first_when_the_control_plane_is_scaled_down() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        _, second, _ = await controllers(site)
        power_off(site, second)
        await site.condition(Machine, second, "InfrastructureReady", "False", timeout=300)
        async with quorum_kept(site):
            await site.patch(K0sControlPlane, PLANE, {"spec": {"replicas": 1}})
            await ready(site, 1, 3600)
        assert second not in members(site)


@virtual
async def test_a_machine_that_a_user_deletes_leaves_etcd_and_is_replaced() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        async with quorum_kept(site):
            gone = (await controllers(site))[1]
            await site.delete(Machine, gone)
            await site.gone(Machine, gone, 1800)
            assert gone not in members(site)
            await ready(site, 3)
        assert members(site) == set(await controllers(site))


def health_check() -> dict[str, Any]:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "check", "namespace": "default"},
        "spec": {
            "clusterName": "one",
            "selector": {"matchLabels": {"cluster.x-k8s.io/control-plane": ""}},
            "checks": {"nodeStartupTimeoutSeconds": 60},
        },
    }


@virtual
async def test_controllers_without_a_node_are_not_replaced_for_that() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        before = await controllers(site)
        await site.have(health_check())
        for name in before:
            await site.condition(Machine, name, "HealthCheckSucceeded", "True", timeout=900)
        await asyncio.sleep(600)
        assert await controllers(site) == before
        await ready(site, 3)


@virtual
async def test_a_controller_without_a_node_counts_as_healthy_as_long_as_k0s_reports_it() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        names = await controllers(site)
        for name in names:
            await site.condition(Machine, name, "Ready", "True", timeout=300)
        await site.condition(Cluster, "one", "ControlPlaneMachinesReady", "True", timeout=300)
        machines = await site.list(Machine)
        assert {(each.status.node_ref, each.status.phase) for each in machines} == {(None, "Running")}
        spec = {"holderIdentity": names[0], "leaseDurationSeconds": 60, "renewTime": "2020-01-01T00:00:00.000000Z"}
        lease = {"metadata": {"name": f"k0s-ctrl-{names[0]}", "namespace": "kube-node-lease"}, "spec": spec}
        await workload(site).client().create(lease, kind=LEASE)
        words = ("ControllerNotHealthy", "it no longer renews its lease")
        await site.condition(Machine, names[0], "NodeHealthy", "False", *words, timeout=900)


@virtual
async def test_a_controller_with_a_node_is_as_healthy_as_its_node() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 1, config={"args": ["--enable-worker"]}))
        await ready(site, 1)
        (name,) = await controllers(site)
        await site.condition(Machine, name, "NodeHealthy", "True", "NodeHealthy", timeout=900)
        (machine,) = await site.list(Machine)
        assert condition.find(machine.status.conditions, "ControllerHealthy") is None


@virtual
async def test_labels_and_the_hook_of_machines_are_kept() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 1))
        await ready(site, 1)
        (name,) = await controllers(site)
        await site.patch(Machine, name, {"metadata": {"annotations": {PRE_TERMINATE_KCP_CLEANUP: None}}})
        template = {"machineTemplate": {"metadata": {"labels": {"tier": "control"}}}}
        await site.patch(K0sControlPlane, PLANE, {"spec": template})
        await site.until(
            Machine,
            name,
            lambda m: (
                m.metadata.labels.get("tier") == "control" and PRE_TERMINATE_KCP_CLEANUP in m.metadata.annotations
            ),
            what="label and hook",
        )


@virtual
async def test_a_kubeconfig_that_is_deleted_comes_back() -> None:
    async with nutanix_site() as site:
        spec: dict[str, Any] = {"kubeconfigSecretMetadata": {"labels": {"team": "a"}}}
        await site.have(*manifest.standalone("one", 1, **spec))
        await ready(site, 1)
        old = await site.get(SECRET, "one-kubeconfig")
        assert old.metadata["labels"]["team"] == "a"
        await site.delete(SECRET, "one-kubeconfig")
        await site.until(SECRET, "one-kubeconfig", lambda s: s.uid != old.uid, 60, what="another kubeconfig")


@virtual
async def test_a_restart_continues_where_the_controllers_were() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        for _ in range(8):
            await asyncio.sleep(7)
            await site.restart()
        await ready(site, 3)
        assert len(site.created) == 3
