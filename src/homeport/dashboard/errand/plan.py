"""What a change of one object will do, Machine by Machine, and what the provider's checks report about it."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from homeport.app.discovery.dial import simulated_dial
from homeport.app.rehearsal.copy import PlaneCopy, copy_plane
from homeport.app.rehearsal.plan import Plan, make_plan
from homeport.app.rehearsal.preflight import preflight
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.http import HttpClient
from homeport.dashboard.errand.manifest import complete, read_objects
from homeport.dashboard.errand.order import Order
from homeport.runtime.clock import SystemClock

MOST_OBJECTS = 5_000


class TooLarge(Exception):
    """There are too many objects for a rehearsal beside the plane."""


def plan(order: Order) -> Plan:
    """Options: `manifest` or `objects`, as they should be; `delete`, to delete them instead."""
    changed = read_objects(order.options)
    namespace = order.config.namespace
    delete = bool(order.options.get("delete"))
    spaces = {str(each["metadata"].get("namespace") or namespace) for each in changed}
    copy, dial = asyncio.run(_read(order, spaces))
    bodies = changed if delete else [complete(each, copy.objects) for each in changed]
    made = make_plan(copy, bodies, namespace, SystemClock().now(), delete=delete)
    if delete or made.refused:
        return made
    return replace(made, preflight=asyncio.run(preflight(copy, bodies, namespace, dial)))


async def _read(order: Order, namespaces: set[str]) -> tuple[PlaneCopy, DialOptions]:
    async with HttpClient(order.config) as client:
        copy = await copy_plane(client, namespaces)
        if len(copy.objects) > MOST_OBJECTS:
            raise TooLarge(
                f"{len(copy.objects)} objects take part, and the dashboard rehearses with at most {MOST_OBJECTS}: use "
                "'homeport plan -f FILE'"
            )
        return copy, order.dial if order.dial != DIRECT else await simulated_dial(client)
