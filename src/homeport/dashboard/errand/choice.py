"""What the hypervisor has that a form can offer: images, networks, clusters and storage."""

from __future__ import annotations

from typing import Any

from homeport.app.discovery.dial import simulated_dial
from homeport.app.discovery.discover import discover
from homeport.app.discovery.source import NoSource, Wanted, supports
from homeport.client.dial import DIRECT
from homeport.client.http import HttpClient
from homeport.dashboard.errand.order import Order

__all__ = ["NoSource", "choices"]
MOST = 5_000  # that a browser gets; everything else can be typed
supports()  # loads the providers, which takes a moment: whoever imports this in a thread waits for them there
_SOURCES = ("provider_config", "cluster")  # objects that the plane connects with already: no address of the user


async def choices(client: HttpClient, order: Order) -> dict[str, Any]:
    """Options name whose credentials are used, as those of `homeport discover`. Raises NoSource and ProviderError."""
    given = {name: str(order.options.get(name) or "") for name in _SOURCES}
    dial = order.dial if order.dial != DIRECT else await simulated_dial(client)
    namespace = str(order.options.get("namespace") or order.config.namespace)
    origin, found = await discover(client, dial, namespace, Wanted(**given))
    entities = [
        {"kind": each.kind, "name": each.name, "place": each.place, "details": dict(each.details)}
        for each in found
        if each.usable
    ]
    return {"origin": origin, "entities": entities[:MOST], "total": len(entities)}
