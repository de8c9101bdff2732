"""The Nutanix provider with no Cluster and no object in the API: from plain settings, the data of a Secret, and specs."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from homeport.api.nutanix.v1beta1 import (
    Identifier,
    NutanixCluster,
    NutanixMachine,
    NutanixMachineTemplate,
)
from homeport.infra.error import Denied, Misconfigured
from homeport.infra.preflight.check import check_machines
from homeport.infra.preflight.plan import MachinePlan
from homeport.infra.protocol import Instance, MachineScope, Provider
from homeport.providers.nutanix.connection import PrismSession
from homeport.providers.nutanix.install import install
from homeport.runtime.clock import SystemClock
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.testing import plane
from unit.providers.nutanix.prism_site import Site, prism_site

SECRET = {"NUTANIX_USER": "admin", "NUTANIX_PASSWORD": "password"}
Nutanix = Provider[NutanixCluster, NutanixMachine, PrismSession]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with prism_site(tmp_path) as made:
        yield made


@pytest.fixture
async def provider(site: Site) -> AsyncIterator[Nutanix]:
    """As a manager has it that was never started: no object is read."""
    async with plane() as p:
        made = install(Manager(p.client, clock=SystemClock()), site.dial)
        try:
            yield made
        finally:
            await made.connector.close()


def settings(site: Site) -> dict[str, Any]:
    return {"address": "127.0.0.1", "port": site.port}


def spec(**more: Any) -> Any:
    machine = NutanixMachine()
    machine.spec.vcpu_sockets, machine.spec.vcpus_per_socket = 2, 1
    machine.spec.memory_size, machine.spec.system_disk_size = "4Gi", "40Gi"
    machine.spec.image = Identifier(type="name", name="ubuntu-22.04-kube-v1.30.0")
    machine.spec.cluster = Identifier(type="name", name="nutanix-cluster-1")
    machine.spec.subnet = [Identifier(type="name", name="vm-network")]
    for name, value in more.items():
        setattr(machine.spec, name, value)
    return machine.spec


def plan(count: int = 1, **more: Any) -> MachinePlan:
    template = NutanixMachineTemplate()
    template.metadata.name = "request"
    template.spec.template.spec = spec(**more)
    return MachinePlan("MachineRequest one", count, template)


async def test_wrong_settings_are_refused_by_field_and_wrong_credentials_by_the_vendor(
    site: Site, provider: Nutanix
) -> None:
    with pytest.raises(Misconfigured, match="address"):
        await provider.connector.open({}, SECRET)
    with pytest.raises(Misconfigured, match="NUTANIX_USER"):
        await provider.connector.open(settings(site), {})
    with pytest.raises(Denied, match="rejects the credentials of Secret default/prism: correct the user name"):
        await provider.connector.open(
            {**settings(site), "origin": "Secret default/prism"}, {**SECRET, "NUTANIX_PASSWORD": "wrong"}
        )


async def test_preflight_works_on_references_alone(site: Site, provider: Nutanix) -> None:
    async def failures(found: MachinePlan, secret: dict[str, str] = SECRET) -> dict[str, str]:
        checks = await check_machines(provider, settings(site), secret, [found])
        return {check.condition: check.reason for check in checks if not check.ok}

    assert await failures(plan()) == {}
    wrong = Identifier(type="name", name="no-such-image")
    assert await failures(plan(image=wrong)) == {"ReferencesResolved": "NotFound"}
    assert await failures(plan(4, memory_size="2Ti")) == {"CapacitySufficient": "InsufficientCapacity"}
    denied = {**SECRET, "NUTANIX_PASSWORD": "wrong"}
    assert await failures(plan(), denied) == {"PrismClientInit": "AccessDenied"}


async def test_a_machine_is_made_and_removed_for_no_cluster(site: Site, provider: Nutanix) -> None:
    machine = NutanixMachine()
    machine.metadata.name, machine.metadata.uid = "jumphost", str(uuid.uuid4())
    machine.spec = spec()
    driver, woken = provider.machine_driver, asyncio.Event()

    async def scope() -> MachineScope[NutanixCluster, NutanixMachine, PrismSession]:
        session = await provider.connector.open(settings(site), SECRET)
        return MachineScope(machine, session, user_data=b"#cloud-config\n", format="cloud-config", wake=woken.set)

    async def rest(wait: Wait | None) -> None:
        """As a controller does: until the driver wakes it, or the time is up."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(woken.wait(), wait.after if wait is not None and wait.after is not None else 1.0)
        woken.clear()

    async def until_it_is_up() -> Instance:
        while True:
            made = await scope()
            instance = await driver.observe(made)
            wait = await driver.converge(made, instance)
            if wait is None and instance is not None and instance.serving:
                return instance
            await rest(wait)

    async def until_it_is_gone() -> None:
        while True:
            made = await scope()
            wait = await driver.release(made, await driver.observe(made))
            if wait is None:
                return
            await rest(wait)

    async with asyncio.timeout(30):
        instance = await until_it_is_up()
    (vm,) = [each for each in site.prism.world.vms if each.name == "jumphost"]
    assert instance.id == vm.ext_id
    assert not vm.categories, "it belongs to no cluster"
    machine.status.vm_uuid = ""  # found again by its mark alone
    machine.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    async with asyncio.timeout(30):
        await until_it_is_gone()
    assert not [each for each in site.prism.world.vms if each.name == "jumphost"]
