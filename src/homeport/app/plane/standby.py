"""Keeps the controllers of a plane off while it has stepped back for another one."""

from __future__ import annotations

import asyncio

from homeport.client.protocol import Client, Query
from homeport.move.side import CONFIG_MAP
from homeport.move.standby import STANDBY, explain


class Standby:
    """A Gate. It is closed until it is known whether the plane has stepped back."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._opened = asyncio.Event()
        self._closed = asyncio.Event()
        self.why = ""  # '': the plane works

    async def opened(self) -> None:
        await self._opened.wait()

    async def closed(self) -> None:
        await self._closed.wait()

    async def run(self) -> None:
        """Until cancelled, or until the watch ends."""
        query = Query(namespace=STANDBY.namespace, fields=f"metadata.name={STANDBY.name}")
        while True:
            found, complete = "", False
            async with self._client.watch(CONFIG_MAP, query, initial_events=True) as events:
                async for event in events:
                    if event.type != "BOOKMARK":
                        found = "" if event.type == "DELETED" else explain(event.object)
                    complete = complete or event.initial_events_end
                    if complete:
                        self._set(found)

    def _set(self, why: str) -> None:
        self.why = why
        now, before = (self._closed, self._opened) if why else (self._opened, self._closed)
        before.clear()
        now.set()
