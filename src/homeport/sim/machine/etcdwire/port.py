"""A port that answers gRPC: a task for each connection that the simulated network hands to it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from abc import ABC, abstractmethod

from homeport.runtime.task import Tasks
from homeport.sim.machine.etcdwire.grpc import Call, GrpcConnection

_HANDSHAKE_SECONDS = 10.0


class GrpcPort(ABC):
    """`title`: what answers, for the names of its tasks."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._tasks = Tasks()

    @abstractmethod
    def tls(self) -> ssl.SSLContext | None:
        """None: connections are not encrypted."""

    @abstractmethod
    def calls_for(self, writer: asyncio.StreamWriter) -> dict[str, Call]:
        """What this client may call, by path."""

    async def settled(self) -> None:  # noqa: B027 - most ports have nothing to wait for
        """Returns when what a call changed may be acknowledged."""

    async def accept(self, sock: socket.socket, source: str) -> None:
        self._tasks.start(self._serve(sock), f"{self._title} for {source}")

    def end(self) -> None:
        """The program ended, and with it its connections."""
        self._tasks.end()

    async def _serve(self, sock: socket.socket) -> None:
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        loop = asyncio.get_running_loop()
        tls = self.tls()
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, sock, ssl=tls, ssl_handshake_timeout=_HANDSHAKE_SECONDS if tls is not None else None
            )
        except (OSError, ssl.SSLError):
            with contextlib.suppress(OSError):
                sock.close()
            return
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        await GrpcConnection(reader, writer, self.calls_for(writer), self.settled).run()
