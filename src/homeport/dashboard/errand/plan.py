"""What a change of one object will do, Machine by Machine, and what the provider's checks report about it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from homeport.app.discovery.dial import simulated_dial
from homeport.app.rehearsal.copy import PlaneCopy, copy_plane
from homeport.app.rehearsal.plan import Plan, make_plan
from homeport.app.rehearsal.preflight import CheckResult, preflight
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.http import HttpClient
from homeport.dashboard.errand.manifest import complete, read_manifest
from homeport.dashboard.errand.order import Order
from homeport.runtime.clock import SystemClock

MOST_OBJECTS = 5_000


class TooLarge(Exception):
    """There are too many objects for a rehearsal beside the plane."""


def plan(order: Order) -> Plan:
    """Options: `manifest`, the text of the object as it should be; `delete`, to delete it instead."""
    changed = read_manifest(str(order.options["manifest"]))
    namespace = str(changed["metadata"].get("namespace") or order.config.namespace)
    delete = bool(order.options.get("delete"))
    copy, dial = asyncio.run(_read(order, namespace))
    body = changed if delete else complete(changed, copy.objects)
    made = make_plan(copy, [body], namespace, SystemClock().now(), delete=delete)
    if delete or made.refused:
        return made
    return replace(made, preflight=asyncio.run(_check(copy, body, namespace, dial)))


async def _read(order: Order, namespace: str) -> tuple[PlaneCopy, DialOptions]:
    async with HttpClient(order.config) as client:
        copy = await copy_plane(client, {namespace})
        if len(copy.objects) > MOST_OBJECTS:
            raise TooLarge(
                f"{len(copy.objects)} objects take part, and the dashboard rehearses with at most {MOST_OBJECTS}: use "
                "'homeport plan -f FILE'"
            )
        return copy, order.dial if order.dial != DIRECT else await simulated_dial(client)


async def _check(copy: PlaneCopy, body: Mapping[str, Any], namespace: str, dial: DialOptions) -> list[CheckResult]:
    return await preflight(copy, [body], namespace, dial)
