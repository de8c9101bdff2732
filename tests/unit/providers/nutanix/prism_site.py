"""A simulated Prism Central over TLS on loopback, and our client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from homeport.client.dial import DialOptions
from homeport.infra.vendor.endpoint import Endpoint
from homeport.providers.nutanix.client import Client, Credentials
from homeport.providers.nutanix.prism.record import Prism as Verbs
from homeport.providers.nutanix.prism.v3 import PrismV3
from homeport.providers.nutanix.prism.v4 import probe_v4
from homeport.runtime.clock import SystemClock
from homeport.sim.engine.fault import Fault
from homeport.sim.engine.tls import Authority
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.wire import Wire
from homeport.sim.prism.world import default_world

ADMIN = Credentials("admin", "password", origin="Secret default/nutanix-credentials")


@dataclass
class Site:
    prism: Prism
    port: int
    dial: DialOptions
    clients: list[Client]

    def client(self, credentials: Credentials = ADMIN, dial: DialOptions | None = None) -> Client:
        endpoint = Endpoint("Prism Central", SystemClock())
        made = Client("127.0.0.1", self.port, credentials, endpoint, dial=dial or self.dial)
        self.clients.append(made)
        return made

    async def verbs(self, version: str) -> Verbs:
        if version == "v3":
            return PrismV3(self.client())
        found = await probe_v4(self.client())
        assert found is not None
        return found


@asynccontextmanager
async def prism_site(folder: Path, faults: Sequence[Fault] = ()) -> AsyncIterator[Site]:
    clock = SystemClock()
    prism = Prism(default_world(), clock=clock, faults=faults)
    wire = Wire(prism)
    authority = Authority.ensure(folder, clock)
    called = authority.called("server", ("localhost", "127.0.0.1"), clock)
    port = await wire.start(tls=called.context)
    site = Site(prism, port, DialOptions(ca_pem=authority.path.read_bytes()), [])
    try:
        yield site
    finally:
        for client in site.clients:
            await client.close()
        await wire.close()
