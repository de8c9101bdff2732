"""What machines cost Prism Central: counted in requests, which stay the same on a busy computer."""

from __future__ import annotations

import asyncio
import uuid
from functools import partial

import pytest

from conformance.provider.nutanix import open_nutanix
from conformance.provider.provider_plane import key, provider_plane
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.capi.name import PAUSED
from homeport.runtime.testing import virtual
from homeport.sim.prism.entity import Category
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

# Of a connection and a cluster: versions, lists of what may be named, preflight, category; and the same for its Nodes.
# With v3, it is not known whether the category is new, so all VMs are read.
FIXED = {"v4": 18, "v3": 19}
# Of a machine: create, its task, its ETag, power on, the VM that is on; or create, its task, the VM that is on.
_VMS = "GET /api/vmm/{v}/ahv/config/vms"
_KEY = "KubernetesClusterName"
EACH = {"v4": 5, "v3": 3}


@pytest.mark.parametrize("version", ["v4", "v3"])
def test_a_machine_costs_a_handful_of_requests_until_it_runs(version: str) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site(v4=version == "v4") as site:
            await site.have(*manifest.cluster_objects("one", 3, 3))
            await site.running("one", 3, 3)
            calls = site.calls()
            assert calls.total() <= FIXED[version] + 6 * EACH[version], calls.most_common()

    run()


@virtual
async def test_only_a_cluster_whose_category_existed_reads_all_vms_before_its_first_one() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects("one", 1, 0))
        await site.running("one", 1, 0)
        first = site.calls()[_VMS]
        await site.have(*manifest.cluster_objects("two", 1, 0, "10.0.0.101", with_secret=False))
        await site.running("two", 1, 0)
        second = site.calls()[_VMS] - first
        site.prism.core.put(site.prism.world.categories, Category(ext_id=str(uuid.uuid4()), key=_KEY, value="three"))
        await site.have(*manifest.cluster_objects("three", 1, 0, "10.0.0.102", with_secret=False))
        await site.running("three", 1, 0)
        assert site.calls()[_VMS] - first - second == second + 1


@virtual
async def test_a_cluster_whose_category_is_new_no_more_reads_all_vms_before_its_first_one() -> None:
    """Somebody else may have begun it meanwhile, on a state that a restore took away."""

    async def reads(site: Site, name: str, address: str, pause: float) -> int:
        objects = manifest.cluster_objects(name, 1, 0, address, with_secret=name == "one")
        for each in objects:
            if each["kind"] == "KubeadmControlPlane":
                each["metadata"]["annotations"] = {PAUSED: ""}
        await site.have(*objects)
        await site.until(NutanixCluster, name, lambda _: name in site.categories(), what="has its category")
        await asyncio.sleep(pause)
        before = site.calls()[_VMS]
        await site.patch(KubeadmControlPlane, f"{name}-kcp", {"metadata": {"annotations": {PAUSED: None}}})
        await site.running(name, 1, 0)
        return site.calls()[_VMS] - before

    async with nutanix_site() as site:
        soon = await reads(site, "one", "10.0.0.100", 0.0)
        assert await reads(site, "two", "10.0.0.101", 900.0) == soon + 1


@pytest.mark.parametrize("version", ["v4", "v3"])
def test_the_more_machines_come_at_once_the_less_each_of_them_costs(version: str) -> None:
    @virtual
    async def run() -> None:
        async with provider_plane(partial(open_nutanix, version=version)) as g:
            await g.cluster()
            before = g.vendor.requests()
            names = [f"m{number:02}" for number in range(40)]
            for name in names:
                await g.machine(name)
            await g.ready(*names)
            # Create, ETag and power on, or create, task and the machine; what else is asked is asked for all at once.
            assert g.vendor.requests() - before <= 40 * 4

    run()


@pytest.mark.parametrize("version", ["v4", "v3"])
def test_a_hundred_machines_that_run_cost_a_few_requests_a_minute(version: str) -> None:
    @virtual
    async def run() -> None:
        async with provider_plane(partial(open_nutanix, version=version)) as g:
            await g.cluster()
            names = [f"m{number:03}" for number in range(100)]
            for name in names:
                await g.machine(name)
            await g.ready(*names)
            await g.pass_time(60)
            before = g.vendor.requests()
            await g.pass_time(1800)
            # Two lists a minute, and what is looked up when orphans are looked for.
            assert g.vendor.requests() - before <= 30 * 3
            # They are looked at nevertheless.
            await g.vendor.power_off("m042")
            await g.machine_says("m042", "PoweredOff", timeout=61)

    run()


@virtual
async def test_after_a_restart_machines_are_looked_at_together() -> None:
    async with provider_plane(partial(open_nutanix, version="v4")) as g:
        await g.cluster()
        names = [f"m{number:02}" for number in range(60)]
        for name in names:
            await g.machine(name)
        await g.ready(*names)
        await g.stop()
        before = g.vendor.requests()
        await g.start()
        await g.pass_time(50)
        assert g.vendor.requests() - before <= 16


@virtual
async def test_what_is_not_there_any_more_is_noticed_within_two_minutes() -> None:
    async with provider_plane(partial(open_nutanix, version="v4")) as g:
        await g.cluster()
        names = [f"m{number}" for number in range(10)]
        for name in names:
            await g.machine(name)
        await g.ready(*names)
        await g.pass_time(60)
        await g.vendor.delete_machine("m3")
        await g.machine_says("m3", "InstanceGone", timeout=120)
        machines = await asyncio.gather(*(g.client.get(NutanixMachine, key(name)) for name in names))
        assert [each.metadata.name for each in machines if each.status.failure_reason] == ["m3"]
