"""The port of konnectivity (8132), where agents of nodes keep a connection open."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from homeport.runtime.task import Tasks


class TunnelPort:
    """Accepts connections and keeps them until the peer leaves: nothing is carried here. `close` it."""

    def __init__(self) -> None:
        self._tasks = Tasks()

    async def accept(self, sock: socket.socket, source: str) -> None:
        self._tasks.start(self._hold(sock), f"agent {source}")

    async def _hold(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            while await asyncio.get_running_loop().sock_recv(sock, 4096):
                pass

    async def close(self) -> None:
        await self._tasks.close()
