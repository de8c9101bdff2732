"""The port of konnectivity (8132), where agents of nodes keep a connection open."""

from __future__ import annotations

import asyncio
import contextlib
import socket


class TunnelPort:
    """Accepts connections and keeps them until the peer leaves: nothing is carried here. `close` it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, sock: socket.socket, source: str) -> None:
        task = asyncio.create_task(self._hold(sock), name=f"agent {source}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _hold(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            while await asyncio.get_running_loop().sock_recv(sock, 4096):
                pass

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
