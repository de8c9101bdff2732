"""The two requests that are alike for most kinds of entities: list all of a table, and get one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from homeport.sim.engine.call import Answer, Call
from homeport.sim.engine.world import Table
from homeport.sim.prism.entity import Entity
from homeport.sim.prism.site import Site
from homeport.sim.prism.v4 import envelope
from homeport.sim.prism.v4.envelope import Dialect, Json, Listing
from homeport.sim.prism.world import World

E = TypeVar("E", bound=Entity)
Handler = Callable[[Site, Call], Answer]


def readers(
    table: Callable[[World], Table[E]], listing: Listing, view: Callable[[Site, Dialect, E], Json]
) -> tuple[Handler, Handler]:
    """What answers the requests to list the entities of a table and to get one of them."""
    namespace, _, name = listing.item_type.rpartition(".")

    def list_all(site: Site, call: Call) -> Answer:
        d = envelope.dialect_of(call)
        return envelope.listed(call, listing, tuple(table(site.world)), lambda entity: view(site, d, entity))

    def get(site: Site, call: Call) -> Answer:
        entity = site.find(table(site.world), call.params["extId"])
        shown = view(site, envelope.dialect_of(call), entity)
        return envelope.single(call, f"{namespace}.Get{name}ApiResponse", shown, version=entity)

    return list_all, get
