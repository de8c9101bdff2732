"""A load balancer: an address that hands each connection to one of several backends."""

from __future__ import annotations

import socket

from homeport.sim.network.book import Host, Network
from homeport.sim.network.service import Service


class Balancer:
    """Listens on a host of the network; backends are tried in turn until one answers."""

    def __init__(self, network: Network, host: Host, backends: list[tuple[str, int]]) -> None:
        self.backends = backends
        self._network = network
        self._host = host
        self._next = 0

    def behind(self) -> Service | None:
        """Some service that answers behind this balancer."""
        for host, port in self.backends:
            try:
                return self._network.find(self._host.name, host, port)[2]
            except OSError:
                continue
        return None

    async def accept(self, sock: socket.socket, source: str) -> None:
        failure: OSError = ConnectionRefusedError(f"connection refused: {self._host.name} has no backend")
        for _ in range(len(self.backends)):
            host, port = self.backends[self._next % len(self.backends)]
            self._next += 1
            try:
                await self._network.hand(sock, self._host.name, host, port)
            except OSError as error:
                failure = error
                continue
            return
        # A balancer accepts first and looks for a backend then: the client sees a connection that closes.
        raise ConnectionResetError(f"connection reset: no backend of {self._host.name} answers ({failure})")


def answering(network: Network, source: str, host: str, port: int) -> Service:
    """The service that answers `source` at host:port, also behind a balancer. Raises OSError."""
    service = network.find(source, host, port)[2]
    if not isinstance(service, Balancer):
        return service
    behind = service.behind()
    if behind is None:
        raise ConnectionResetError("EOF: no backend of the load balancer answers")
    return behind
