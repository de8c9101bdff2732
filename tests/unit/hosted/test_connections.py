"""Connections to hosted control planes."""

from __future__ import annotations

from typing import Any, cast

from homeport.client.protocol import Client, Key
from homeport.hosted.connection import Connections
from homeport.runtime.testing import plane

KEY = Key("default", "demo")


async def test_a_changed_kubeconfig_closes_the_connection_of_the_old_one() -> None:
    async with plane() as p:
        made: list[Shut] = []

        def connect(kubeconfig: bytes, proxy: str) -> Client:
            made.append(Shut(p.client))
            return cast(Client, made[-1])

        connections = Connections(p.manager, connect=connect)
        first = await connections.get(KEY, b"first")
        assert await connections.get(KEY, b"first") is first
        assert [each.closed for each in made] == [False]
        assert await connections.get(KEY, b"second") is first  # with everything that it watches
        assert [each.closed for each in made] == [True, False]
        await connections.close()
        assert [each.closed for each in made] == [True, True]


class Shut:
    """A client that notes that it was closed."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def close(self) -> None:
        self.closed = True
