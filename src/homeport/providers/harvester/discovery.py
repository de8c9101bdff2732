"""What an account sees in an infrastructure cluster and may name in specs."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.infra.protocol import Discoverable, Item
from homeport.providers.harvester.connection import HarvesterSession
from homeport.providers.harvester.image import display_name
from homeport.providers.harvester.resource import IMAGE, NETWORK, NODE, STORAGE_CLASS


class Discovery:
    async def discover(self, session: HarvesterSession, what: Discoverable) -> Sequence[Item]:
        match what:
            case "hosts":
                return [Item(each.uid, each.name) for each in await session.list(NODE)]
            case "networks":
                return [Item(each.uid, f"{each.namespace}/{each.name}") for each in await session.list(NETWORK)]
            case "images":
                return [
                    Item(each.uid, f"{each.namespace}/{each.name}", {"displayName": display_name(each)})
                    for each in await session.list(IMAGE)
                ]
            case "storage classes":
                return [Item(each.uid, each.name) for each in await session.list(STORAGE_CLASS)]
            case _:
                return []
