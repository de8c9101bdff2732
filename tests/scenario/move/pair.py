"""Two planes with all controllers, and one simulated Prism Central behind both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from homeport.app.object.inventory import publish_inventory
from homeport.app.platform import chosen
from homeport.capi.environment import Environment
from homeport.client.errors import Unavailable
from homeport.client.protocol import Client
from homeport.move.directory import Directory
from homeport.move.discovery import discover, discover_kinds
from homeport.move.mover import Mover, Options
from homeport.move.node import Node
from homeport.runtime.definition import establish
from homeport.runtime.testing import plane
from homeport.runtime.webhook.embedded import install as install_hooks
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site


class Killed(Exception):
    """The process of the move is gone; whatever it sent was committed."""


@dataclass
class Mortal:
    """A side on which the process dies after its nth write."""

    inner: Client | Directory
    left: list[int]  # shared by both sides of a move
    outage: int = 0  # after so many requests of any kind this side is unreachable; 0: never
    verbs: frozenset[str] = frozenset({"create", "replace", "patch", "delete"})
    requests: int = 0

    def __getattr__(self, name: str) -> Any:
        method: Callable[..., Awaitable[Any]] = getattr(self.inner, name)

        async def call(*args: Any, **options: Any) -> Any:
            self.requests += 1
            if self.outage and self.requests > self.outage:
                raise Unavailable("no connection to the plane")
            answer = await method(*args, **options)
            if name not in self.verbs:
                return answer
            self.left[0] -= 1
            if self.left[0] == 0:
                raise Killed(name)
            return answer

        return call


@dataclass
class Pair:
    source: Site
    target: Site

    def mover(self, writes: int = 0, namespace: str = "", *, back: bool = False, outage: int = 0) -> Mover:
        """`writes`: after so many the process is killed. `outage`: after so many requests the target is gone."""
        here, there = (self.target, self.source) if back else (self.source, self.target)
        left = [writes]
        ends = (Mortal(here.client, left), Mortal(there.client, left, outage))
        return Mover(*ends, Options(namespace, "there"), lambda text: None, here.clock)

    async def nodes(self, site: Site) -> dict[str, Node]:
        """What would move from here."""
        kinds = await discover_kinds(site.client, None)
        selection = (await discover(site.client, kinds)).selection()
        return {str(node): node for node in selection.nodes}

    async def check(self) -> None:
        """No Cluster is worked on by both planes, and nothing is lost."""
        here, there = await self.nodes(self.source), await self.nodes(self.target)
        for name, node in here.items():
            if node.kind.is_cluster and name in there:
                assert node.paused or there[name].paused, f"{name} is active on both planes"

    def world(self) -> dict[str, Any]:
        return {vm.name: vm for vm in self.source.vms()}


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    async with nutanix_site() as source, plane() as p:
        target = Site(p, source.network, source.fleet, source.prism, source.dial)
        install_hooks(chosen().register(Environment(p.client, target.dial, p.server)), p.server)
        await establish(p.client, *chosen().definitions())
        for site in (source, target):
            await publish_inventory(site.client, chosen().inventory())
        await target.begin()
        try:
            yield Pair(source, target)
        finally:
            await p.stop()


async def have_cluster(site: Site, name: str = "one", control_planes: int = 1, workers: int = 1) -> None:
    await site.have(*manifest.cluster_objects(name, control_planes, workers))
    await site.running(name, control_planes, workers)
