"""Machines one by one, with specs of their own; the test plays Cluster API's core.

async with nutanix() as n:
    await n.machine("a", project="kubernetes-project")
    await n.g.ready("a")
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from conformance.provider.nutanix import open_nutanix
from conformance.provider.provider_plane import ProviderPlane, provider_plane
from homeport.sim.prism.entity import Vm
from homeport.sim.prism.prism import Prism


class Nutanix:
    """A ProviderPlane whose machines have specs of their own."""

    def __init__(self, g: ProviderPlane) -> None:
        self.g = g
        vendor: Any = g.vendor
        self.vendor = vendor
        self.prism: Prism = vendor.prism
        self._plain = self.vendor.infra_machine

    async def machine(self, name: str = "a", /, **spec: Any) -> None:
        def special(wanted: str) -> dict[str, Any]:
            body: dict[str, Any] = self._plain(wanted)
            body["spec"] = {k: v for k, v in {**body["spec"], **spec}.items() if v is not None}
            return body

        self.vendor.infra_machine = special
        try:
            await self.g.machine(name)
        finally:
            self.vendor.infra_machine = self._plain

    def vm(self, name: str = "a") -> Vm:
        (only,) = [vm for vm in self.prism.world.vms if vm.name == name]
        return only

    def id_of(self, table: str, name: str) -> str:
        found = [each.ext_id for each in getattr(self.prism.world, table) if each.name == name]
        return str(found[0])

    def categories(self, name: str = "a") -> set[str]:
        known = {each.ext_id: f"{each.key}:{each.value}" for each in self.prism.world.categories}
        return {known[each] for each in self.vm(name).categories}


@asynccontextmanager
async def nutanix(version: str = "v4") -> AsyncIterator[Nutanix]:
    async with provider_plane(partial(open_nutanix, version=version)) as g:
        await g.cluster()
        yield Nutanix(g)
