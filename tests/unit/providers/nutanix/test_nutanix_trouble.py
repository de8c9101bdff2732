"""What Prism Central records about machines that do not come up, in both versions of its API."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from homeport.infra.vendor.endpoint import Endpoint
from homeport.infra.vendor.task import Poller
from homeport.infra.vendor.trouble import Trouble
from homeport.providers.nutanix.connection import VENDOR, PrismSession
from homeport.providers.nutanix.inventory import Inventory
from homeport.providers.nutanix.lookup import Lookup
from homeport.providers.nutanix.trouble import troubles
from homeport.providers.nutanix.watch import Watch
from homeport.runtime.clock import SystemClock
from homeport.sim.engine.fault import parse_faults
from unit.providers.nutanix.prism_site import Site, prism_site
from unit.providers.nutanix.test_prism_verbs import new_vm, over

BOTH = pytest.mark.parametrize("version", ["v4", "v3"])
FAILS = 'faults: [{match: {operation: kVmCreate}, effect: {kind: task-failure, message: "the disk is gone"}}]'
HANGS = "faults: [{match: {operation: kVmCreate}, effect: {kind: task-hang}}]"


class Later(SystemClock):
    """An hour less a minute from now."""

    def now(self) -> float:
        return super().now() + 3540


async def session_of(site: Site, version: str, clock: SystemClock) -> PrismSession:
    prism = await site.verbs(version)
    lookup, poller = Lookup(prism, clock), Poller(prism.tasks, clock, VENDOR)
    endpoint, inventory = Endpoint("Prism Central", clock), Inventory(prism, clock)
    return PrismSession(prism, lookup, poller, Watch(prism, clock), clock, inventory, endpoint)


async def seen(folder: Path, version: str, faults: str, clock: SystemClock, *machines: str) -> list[Trouble]:
    async with prism_site(folder, parse_faults(faults, "test")) as site:
        session = await session_of(site, version, clock)
        task = await session.prism.create_vm(await new_vm(session.prism, "one"), "00000000-0000-4000-8000-000000000001")
        if faults == FAILS:
            await over(session.prism, task)
        return await troubles(session, machines, ())


@BOTH
async def test_a_task_that_failed_is_quoted_with_its_operation(tmp_path: Path, version: str) -> None:
    [found] = await seen(tmp_path, version, FAILS, SystemClock(), "one")
    assert (found.reason, found.about) == ("TaskFailed", "one")
    assert "of VM one failed: the disk is gone" in found.message


@BOTH
async def test_a_task_that_hangs_is_overdue(tmp_path: Path, version: str) -> None:
    [found] = await seen(tmp_path, version, HANGS, Later(), "one")
    assert (found.reason, found.about) == ("TaskOverdue", "one")
    assert "has run for 59 minutes" in found.message


@BOTH
async def test_tasks_of_other_machines_and_young_ones_are_left_out(tmp_path: Path, version: str) -> None:
    assert await seen(tmp_path, version, FAILS, SystemClock(), "two") == []
    assert await seen(tmp_path, version, HANGS, SystemClock(), "one") == []


@BOTH
async def test_a_project_without_free_quota_is_named(tmp_path: Path, version: str) -> None:
    async with prism_site(tmp_path) as site:
        named = next(each for each in site.prism.world.projects if each.name == "kubernetes-project")
        project = site.prism.world.projects.put(msgspec.structs.replace(named, vcpu_limit=1))
        site.prism.core.usage.project_vcpus[project.ext_id] = 1
        session = await session_of(site, version, SystemClock())
        found = await troubles(session, (), [project.name])
        assert [each.reason for each in found] == ["QuotaUsedUp"]
        assert f"project {project.name}: 1 of 1 vcpus are used: raise the limits" in found[0].message
        assert await troubles(session, (), ["another"]) == []
