"""Clients that were replaced. Requests that are under way may end; then the client is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from homeport.client.protocol import Client

GRACE_SECONDS = 30.0

Spawn = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]


class RetiredClients:
    """Holds each client until it is closed: a task that is cancelled before its first step closes nothing."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._clients: list[Client] = []

    def add(self, client: Client, name: str) -> None:
        self._clients.append(client)
        self._spawn(self._close_later(client), name)

    async def close(self) -> None:
        """Closes those that are left, at once."""
        while self._clients:
            await self._close(self._clients[-1])

    async def _close_later(self, client: Client) -> None:
        await asyncio.sleep(GRACE_SECONDS)
        await self._close(client)

    async def _close(self, client: Client) -> None:
        await client.close()
        if client in self._clients:  # not before: closing may be cancelled as well
            self._clients.remove(client)
