"""Control planes of k0s on machines: they come up one controller at a time, change and go, and etcd keeps its quorum."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.k0s.v1beta2 import K0sControlPlane
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.runtime.clock import parse_time
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import Pace
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import NODE
from scenario.k0s import manifest
from scenario.nutanix.site import Site, nutanix_site

PLANE = "one-cp"
BOOT_SECONDS = 30.0


async def ready(site: Site, replicas: int, timeout: float = 1800.0) -> K0sControlPlane:
    found: K0sControlPlane = await site.until(
        K0sControlPlane,
        PLANE,
        lambda k: (
            (k.status.ready_replicas, k.status.replicas, k.status.up_to_date_replicas) == (replicas,) * 3
            and condition.is_true(k.status.conditions, "Available")
        ),
        timeout,
        what=f"{replicas} controllers ready",
    )
    return found


async def until(site: Site, predicate: Callable[[K0sControlPlane], bool], what: str, timeout: float = 900.0) -> Any:
    return await site.until(K0sControlPlane, PLANE, predicate, timeout, what=what)


def workload(site: Site) -> WorkloadCluster:
    (found,) = site.fleet.clusters()
    return found


def members(site: Site) -> set[str]:
    return set(workload(site).etcd.members)


@virtual
async def test_one_controller_and_a_worker_make_a_cluster() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 1, 1))
        plane = await ready(site, 1)
        assert plane.status.initialization.control_plane_initialized
        assert plane.status.version == manifest.VERSION
        await site.until(MachineDeployment, "one-md-0", lambda m: m.status.ready_replicas == 1, 1800, what="a worker")
        machines = {each.metadata.name: each for each in await site.list(Machine)}
        (worker,) = [each for name, each in machines.items() if not name.startswith(PLANE)]
        node = await workload(site).client().get(NODE, Key("", worker.metadata.name))
        assert node["spec"]["providerID"] == worker.spec.provider_id
        await site.condition(Cluster, "one", "Available", "True", timeout=300)


@virtual
async def test_three_controllers_join_one_at_a_time_and_the_cluster_goes_without_a_trace() -> None:
    async with nutanix_site(machine_pace=Pace(cloud_init=BOOT_SECONDS)) as site:
        await site.have(*manifest.standalone("one", 3, 1))
        await ready(site, 3)
        machines = [each for each in await site.list(Machine) if each.metadata.name.startswith(PLANE)]
        assert members(site) == {each.metadata.name for each in machines}
        born = sorted(parse_time(each.metadata.creation_timestamp or "") for each in machines)
        assert all(later - earlier >= BOOT_SECONDS for earlier, later in pairwise(born)), born
        await site.delete(Cluster, "one")
        await site.gone(Cluster, "one", 1800)
        await site.empty("one")


@virtual
async def test_a_member_leaves_etcd_before_its_machine_goes() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        await site.patch(K0sControlPlane, PLANE, {"spec": {"replicas": 1}})
        await ready(site, 1)
        (left,) = members(site)
        assert [each.metadata.name for each in await site.list(Machine)] == [left]
        assert [vm.name for vm in site.vms()] == [left]


NEXT = "v1.34.1+k0s.0"


def says(kind: str, status: str, *words: str) -> Callable[[K0sControlPlane], bool]:
    def fits(plane: K0sControlPlane) -> bool:
        found = condition.find(plane.status.conditions, kind) or {}
        text = f"{found.get('reason')}: {found.get('message')}"
        return found.get("status") == status and all(word in text for word in words)

    return fits


async def upgraded(site: Site, version: str, replicas: int, timeout: float = 3600.0) -> None:
    await until(
        site,
        lambda k: k.status.version == version and k.status.ready_replicas == replicas == k.status.replicas,
        f"all at {version}",
        timeout,
    )


@virtual
async def test_an_upgrade_in_place_keeps_the_machines() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3))
        await ready(site, 3)
        before = sorted(vm.ext_id for vm in site.vms())
        await site.patch(K0sControlPlane, PLANE, {"spec": {"version": NEXT}})
        await until(site, says("Updating", "True", "autopilot plan", NEXT), "the plan is shown")
        await upgraded(site, NEXT, 3)
        await until(site, says("Updating", "False"), "the upgrade is over")
        assert sorted(vm.ext_id for vm in site.vms()) == before
        assert {each.spec.version for each in await site.list(Machine)} == {NEXT}


@virtual
async def test_a_plan_that_fails_is_shown_and_the_version_can_be_taken_back() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 1))
        await ready(site, 1)
        await site.patch(K0sControlPlane, PLANE, {"spec": {"version": "v1.34.99+k0s.0"}})
        await until(site, says("Updating", "True", "v1.34.99+k0s.0"), "the plan", 1800)
        await site.patch(K0sControlPlane, PLANE, {"spec": {"version": manifest.VERSION}})
        await until(site, says("Updating", "False"), "no upgrade")
        await site.patch(K0sControlPlane, PLANE, {"spec": {"version": NEXT}})
        await upgraded(site, NEXT, 1)


@virtual
async def test_an_upgrade_by_replacement_never_has_fewer_members_than_desired() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3, updateStrategy="Recreate"))
        await ready(site, 3)
        before = {vm.ext_id for vm in site.vms()}
        await site.patch(K0sControlPlane, PLANE, {"spec": {"version": NEXT}})
        await upgraded(site, NEXT, 3)
        assert not before & {vm.ext_id for vm in site.vms()}
        assert len(members(site)) == 3


@virtual
async def test_another_template_replaces_the_machines_one_at_a_time() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.standalone("one", 3, updateStrategy="RecreateDeleteFirst"))
        await ready(site, 3)
        before = {vm.ext_id for vm in site.vms()}
        await site.have(manifest.machine_template("one-cp-mt-2"))
        ref = {"machineTemplate": {"infrastructureRef": {"name": "one-cp-mt-2"}}}
        await site.patch(K0sControlPlane, PLANE, {"spec": ref})
        await until(site, lambda k: (k.status.up_to_date_replicas or 0) < 3, "the rollout begins")
        await ready(site, 3, 3600)
        assert not before & {vm.ext_id for vm in site.vms()}
        assert len(members(site)) == 3
