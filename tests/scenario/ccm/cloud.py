"""Nodes of a site's workload cluster, and somebody at Prism Central's console."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, Query
from homeport.providers.nutanix.connection import Connector
from homeport.providers.nutanix.prism.record import Prism
from homeport.runtime.clock import Clock
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import NODE
from scenario.nutanix.site import Site


class Workload(Protocol):
    """A site of any provider."""

    @property
    def fleet(self) -> Fleet: ...

    @property
    def clock(self) -> Clock: ...


def workload(site: Workload) -> WorkloadCluster:
    (found,) = site.fleet.clusters()
    return found


async def nodes(site: Workload) -> dict[str, Any]:
    found = await workload(site).client().list(NODE, Query())
    return {each.name: each for each in found.items}


async def until_node(
    site: Workload, name: str, predicate: Callable[[Any], bool], timeout: float = 300.0, what: str = ""
) -> Any:
    """The Node (None: it is gone) once the predicate is true of it."""
    deadline = site.clock.monotonic() + timeout
    while True:
        try:
            found = await workload(site).client().get(NODE, Key("", name))
        except NotFound:
            found = None
        if predicate(found):
            return found
        assert site.clock.monotonic() < deadline, (
            f"Node {name}: {what or 'as expected'} not within {timeout} s: {found}"
        )
        await asyncio.sleep(1.0)


@asynccontextmanager
async def administrator(site: Site, cluster: str) -> AsyncIterator[Prism]:
    """Somebody at Prism Central's console."""
    connector = Connector(site.client, site.clock, site.dial)
    try:
        yield (await connector.connect(await site.get(NutanixCluster, cluster))).prism
    finally:
        await connector.close()
