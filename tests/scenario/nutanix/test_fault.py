"""Every kind of fault at every step of a machine's life: nothing doubled, leaked or stuck, and the message says why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from conformance.provider.nutanix import open_nutanix
from conformance.provider.provider_plane import ProviderPlane, provider_plane
from homeport.providers.nutanix.install import MACHINE_FINALIZER
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import (
    Delay,
    Drop,
    Effect,
    Fault,
    Match,
    SessionExpiry,
    Stale,
    Status,
    TaskFailure,
    TaskHang,
    Throttle,
)

VMS = "/api/vmm/*/ahv/config/vms"
V3 = "/api/nutanix/v3"


@dataclass(frozen=True)
class Step:
    """A request of a machine's life. `deleting`: of its end."""

    version: str
    method: str
    route: str
    deleting: bool = False

    @property
    def quiet(self) -> bool:
        """Tasks are asked for by somebody else, categories rarely: what the machine waits for is all that it can say."""
        return self.route.endswith(("tasks/*", "categories"))

    @property
    def looking(self) -> bool:
        """For a machine that may have been made already."""
        return (self.method, self.route) in (("GET", VMS), ("POST", f"{V3}/vms/list"))

    def __str__(self) -> str:
        return f"{self.version} {'end' if self.deleting else 'begin'} {self.method} {self.route}"


STEPS = (
    Step("v4", "GET", "/api/clustermgmt/*/config/clusters"),
    Step("v4", "GET", "/api/networking/*/config/subnets"),
    Step("v4", "GET", "/api/vmm/*/content/images"),
    Step("v4", "GET", "/api/prism/*/config/categories"),
    Step("v4", "GET", VMS),
    Step("v4", "POST", VMS),
    Step("v4", "GET", "/api/prism/*/config/tasks/*"),
    Step("v4", "GET", f"{VMS}/*"),
    Step("v4", "POST", f"{VMS}/*/$actions/power-on"),
    Step("v4", "GET", f"{VMS}/*", deleting=True),
    Step("v4", "DELETE", f"{VMS}/*", deleting=True),
    Step("v4", "GET", "/api/prism/*/config/tasks/*", deleting=True),
    Step("v3", "POST", f"{V3}/vms"),
    Step("v3", "GET", f"{V3}/tasks/*"),
    Step("v3", "GET", f"{V3}/vms/*"),
    Step("v3", "POST", f"{V3}/vms/list"),
    Step("v3", "GET", f"{V3}/vms/*", deleting=True),
    Step("v3", "DELETE", f"{V3}/vms/*", deleting=True),
)

# What is done, and a word of what has to be said while it lasts; '' where it is got over without a word.
LASTING: tuple[tuple[str, Effect, str], ...] = (
    ("500", Status(500, message="kernel panic in uhura"), "kernel panic in uhura"),
    ("503", Status(503), "unavailable"),
    ("429", Throttle(3), "throttling"),
    ("401", Status(401), "rejects the credentials of Secret default/credentials"),
    ("403", Status(403, message="no such role"), "no such role"),
    ("dropped", Drop("before"), "can't be reached"),
    ("answer dropped", Drop("after"), "can't be reached"),
    ("no answer", Delay(1000), "did not answer"),
)
PASSING: tuple[tuple[str, Effect], ...] = (
    ("409", Status(409)),
    ("412", Status(412)),
    ("session expiry", SessionExpiry()),
    ("stale", Stale(20)),
    ("slow", Delay(20)),
    ("lost answer", Drop("after")),
    ("lost request", Drop("before")),
)


class Campaign:
    def __init__(self, g: ProviderPlane, step: Step) -> None:
        self.g = g
        self.step = step
        self.vendor: Any = g.vendor
        self.number = 0

    async def fresh(self) -> str:
        """A machine at the step before the fault strikes; what was looked up is forgotten."""
        self.number += 1
        name = f"m{self.number}"
        if self.step.deleting:
            await self.g.machine(name)
            await self.g.ready(name)
        else:
            await self.g.pass_time(400)
        return name

    def strike(self, effect: Effect, times: int | None) -> None:
        match = Match(method=self.step.method, route=self.step.route)
        self.vendor.prism.faults.add(Fault(effect, match, times=times))
        self.vendor.prism.core.on_change()

    async def go(self, name: str) -> None:
        if self.step.deleting:
            await self.g.delete(name)
        else:
            # One that nobody began with is not looked for.
            await self.g.machine(name, finalizers=[MACHINE_FINALIZER] if self.step.looking else ())

    async def end(self, name: str) -> None:
        if not self.step.deleting:
            await self.g.ready(name, timeout=900)
            await self.g.delete(name)
        await self.g.deleted(name, timeout=900)
        assert self.vendor.created.count(name) == 1, f"{name} was made {self.vendor.created.count(name)} times"
        assert self.vendor.machines() == []


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_faults_that_last_are_reported_and_got_over(step: Step) -> None:
    @virtual
    async def run() -> None:
        async with provider_plane(partial(open_nutanix, version=step.version)) as g:
            await g.cluster()
            campaign = Campaign(g, step)
            for _kind, effect, words in LASTING:
                name = await campaign.fresh()
                campaign.strike(effect, None)
                await campaign.go(name)
                if step.quiet:
                    await g.pass_time(100)
                else:
                    await g.machine_says(name, words)
                campaign.vendor.clear_faults()
                await campaign.end(name)

    run()


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_faults_that_pass_are_got_over(step: Step) -> None:
    @virtual
    async def run() -> None:
        async with provider_plane(partial(open_nutanix, version=step.version)) as g:
            await g.cluster()
            campaign = Campaign(g, step)
            for _kind, effect in PASSING:
                name = await campaign.fresh()
                campaign.strike(effect, 2)
                await campaign.go(name)
                await campaign.end(name)
                campaign.vendor.clear_faults()

    run()


@pytest.mark.parametrize("operation", ["kVmCreate", "kVmPowerOn", "kVmDelete"])
@pytest.mark.parametrize("effect", [TaskFailure(message="out of luck"), TaskHang(300), TaskFailure(code="VMM-34418")])
def test_tasks_that_fail_or_hang_are_got_over(operation: str, effect: Effect) -> None:
    @virtual
    async def run() -> None:
        async with provider_plane(partial(open_nutanix, version="v4")) as g:
            await g.cluster()
            vendor: Any = g.vendor
            vendor.prism.faults.add(Fault(effect, Match(operation=operation), times=2))
            await g.machine("a")
            await g.machine("b")
            await g.ready("a", "b")
            await g.delete("a")
            await g.delete("b")
            await g.deleted("a", "b")
            assert sorted(vendor.created) == ["a", "b"]
            assert vendor.machines() == []

    run()
