"""A plane with Butler's controllers of infrastructure, and one simulated vendor behind it.

async with infrastructure(open_vendor) as i:
    await i.provider()
    await i.ready()
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from conformance.provider.vendor import Json, Open, Vendor
from homeport.api.butler.v1alpha1 import GROUP, VERSION, MachineRequest, ProviderConfig
from homeport.api.meta import Resource
from homeport.builtin.install import install as install_builtin
from homeport.capi.component import Component, Setup
from homeport.capi.environment import Environment
from homeport.client.dial import DialOptions
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Client, Key, MergePatch
from homeport.machinery import condition
from homeport.platforms.butler import infrastructure as butler_infrastructure
from homeport.platforms.butler.definition import definitions
from homeport.providers.harvester.component import COMPONENT as HARVESTER
from homeport.providers.nutanix.component import COMPONENT as NUTANIX
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, plane

SECRET = Resource("", "v1", "Secret", "secrets")
NAMESPACE = "butler-system"
SYSTEM = Key(NAMESPACE, "main")
COMPONENTS: tuple[Component, ...] = (NUTANIX, HARVESTER)


class Infrastructure:
    def __init__(self, p: Plane, vendor: Vendor, dial: DialOptions | None) -> None:
        self.plane = p
        self.client = p.client
        self.vendor = vendor
        self.dial = dial or vendor.dial
        self.images: Path | None = None  # folder of files that may be uploaded
        self.wrap: Callable[[Client], Any] = lambda client: client  # the client that controllers get
        support = vendor.component.platform
        assert support is not None
        self.type = support.type

    def manager(self) -> Manager:
        made = Manager(self.wrap(self.plane.server.client()), clock=self.plane.clock)
        install_builtin(self.plane.server, made)
        environment = Environment(made.client, self.dial, images=self.images)
        butler_infrastructure.install(Setup(made, environment, COMPONENTS))
        return made

    async def start(self) -> None:
        self.plane.manager = self.manager()
        await self.plane.start()

    async def restart(self) -> None:
        await self.plane.stop()
        await self.start()

    # -- what a user writes ------------------------------------------------------------------------------------

    async def secret(self, password: str = "", **more: str) -> None:
        body = self.vendor.credentials(password)
        body["metadata"] = {"name": "credentials", "namespace": NAMESPACE}
        body["stringData"] |= more
        try:
            await self.plane.have(body)
        except AlreadyExists:
            patch = MergePatch({"stringData": body["stringData"]})
            await self.client.patch(SECRET, Key(NAMESPACE, "credentials"), patch)

    async def provider(self, spec: Json | None = None, **part: Any) -> None:
        """The ProviderConfig `main`, and its Secret."""
        await self.secret()
        await self.config(spec, **part)

    async def config(self, spec: Json | None = None, **part: Any) -> None:
        own = {**self.vendor.platform_part(), "credentialsRef": {"name": "credentials"}, **part}
        body = butler("ProviderConfig", "main", spec or {"type": self.type, self.type: own})
        await self.plane.have(body)

    async def change(self, **part: Any) -> None:
        """Fields of the provider's part."""
        body = {"spec": {self.type: part}}
        await self.client.patch(ProviderConfig, SYSTEM, MergePatch(body))

    async def machine(self, name: str = "one", **more: Any) -> None:
        spec = {
            "providerRef": {"name": "main"},
            "machineName": name,
            "role": "worker",
            "cpu": 2,
            "memoryMB": 4096,
            "diskGB": 40,
            "userData": "#cloud-config\n",
            **more,
        }
        await self.plane.have(butler("MachineRequest", name, spec))

    # -- looking -----------------------------------------------------------------------------------------------

    async def ready(self, timeout: float = 600.0) -> ProviderConfig:
        found: ProviderConfig = await self.plane.until(ProviderConfig, SYSTEM, _is_ready, timeout)
        return found

    async def says(self, type_: str, status: str, *words: str, timeout: float = 600.0) -> ProviderConfig:
        """The ProviderConfig, once a condition has this status and all of these words."""

        def fits(config: ProviderConfig) -> bool:
            found = condition.find(config.status.conditions, type_) or {}
            text = f"{found.get('reason')}: {found.get('message')}"
            return found.get("status") == status and all(word in text for word in words)

        found: ProviderConfig = await self.plane.until(
            ProviderConfig, SYSTEM, fits, timeout, what=f"{type_} {status} with {words}"
        )
        return found

    async def deleted(self, name: str = "one", timeout: float = 1800.0) -> None:
        await self.client.delete(MachineRequest, Key(NAMESPACE, name))
        await self.plane.gone(MachineRequest, Key(NAMESPACE, name), timeout)

    async def running(self, name: str = "one", timeout: float = 1800.0) -> MachineRequest:
        return await self.phase(name, "Running", timeout=timeout)

    async def phase(self, name: str, *phases: str, words: str = "", timeout: float = 1800.0) -> MachineRequest:
        def fits(request: MachineRequest) -> bool:
            found = condition.find(request.status.conditions, "Ready") or {}
            return request.status.phase in phases and words in f"{found.get('reason')}: {found.get('message')}"

        found: MachineRequest = await self.plane.until(
            MachineRequest, Key(NAMESPACE, name), fits, timeout, what=f"{phases} {words}"
        )
        return found

    async def shows(self, kind: Any, key: Key) -> str:
        """The whole object as its users can read it."""
        return json.dumps(dict(await self.client.get(kind.__resource__, key)))

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _is_ready(obj: Any) -> bool:
    return condition.is_true(obj.status.conditions, "Ready")


def butler(kind: str, name: str, spec: Json) -> Json:
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": meta, "spec": spec}


@asynccontextmanager
async def infrastructure(
    open_vendor: Open,
    *,
    dial: DialOptions | None = None,
    wrap: Callable[[Client], Any] | None = None,
    images: Path | None = None,
) -> AsyncIterator[Infrastructure]:
    async with plane(crds=definitions()) as p, open_vendor(p.clock) as vendor:
        await p.have({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        made = Infrastructure(p, vendor, dial)
        made.wrap = wrap or made.wrap
        made.images = images
        await made.start()
        try:
            yield made
        finally:
            await p.stop()
