"""What an account sees on Prism Central and may name in specs."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.infra.error import Rejected
from homeport.infra.protocol import Discoverable, Item
from homeport.providers.nutanix.connection import PrismSession


class Discovery:
    async def discover(self, session: PrismSession, what: Discoverable) -> Sequence[Item]:
        match what:
            case "clusters":
                return [Item(each.id, each.name) for each in await _elements(session)]
            case "hosts":
                return await _hosts(session)
            case "networks":
                found = await session.lookup.subnets()
                return [Item(each.id, each.name, {"type": each.kind, "cidr": each.cidr}) for each in found]
            case "images":
                return [Item(each.id, each.name, {"type": each.kind}) for each in await session.lookup.images()]
            case "storage classes":
                return await _containers(session)
            case "projects":
                return [Item(each.id, each.name) for each in await session.prism.projects()]


async def _elements(session: PrismSession) -> list[Item]:
    return [Item(each.id, each.name) for each in await session.lookup.elements()]


async def _hosts(session: PrismSession) -> list[Item]:
    return [
        Item(host.id, host.name, {"cluster": element.name, "memory": f"{host.memory_bytes >> 30}Gi"})
        for element in await _elements(session)
        for host in await session.prism.hosts(element.id)
    ]


async def _containers(session: PrismSession) -> list[Item]:
    """Storage containers. Prism Central without API v4 does not list them."""
    names = {each.id: each.name for each in await _elements(session)}
    try:
        found = await session.prism.containers()
    except Rejected:
        return []
    return [Item(each.id, each.name, {"cluster": names.get(each.cluster_id, "")}) for each in found]
