"""Asks a hypervisor what it has."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.app.discovery.source import Wanted, locate
from homeport.capi.platform import Entity
from homeport.client.dial import DialOptions
from homeport.client.protocol import Client
from homeport.runtime.manager import Manager


async def discover(client: Client, dial: DialOptions, namespace: str, wanted: Wanted) -> tuple[str, Sequence[Entity]]:
    """Whose credentials were used, and what is there. Raises NoSource and ProviderError. Reads only."""
    found = await locate(client, namespace, wanted)
    access = found.support.open(Manager(client), dial)  # the manager never runs: it only hands out its parts
    try:
        return f"{found.support.title}, with the credentials of {found.origin}", await access.discover(found.source)
    finally:
        await access.close()
