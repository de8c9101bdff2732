"""The web sites' place on the simulated network: their names lead to one server on loopback."""

from __future__ import annotations

from pathlib import Path

from homeport.runtime.clock import Clock
from homeport.sim.engine.tls import Authority
from homeport.sim.engine.wire import Listeners
from homeport.sim.network import Loopback, Network
from homeport.sim.web.content import SITES
from homeport.sim.web.wire import respond

_HTTPS, _HTTP = 443, 80


class Web:
    """`start` it, `close` it. `authority`: CA certificate (PEM) that those who fetch from it have to trust."""

    def __init__(self, network: Network, folder: Path, clock: Clock) -> None:
        self._network = network
        self._clock = clock
        self._authority = Authority.ensure(folder, clock)
        self._listeners = Listeners()

    @property
    def authority(self) -> bytes:
        return self._authority.path.read_bytes()

    async def start(self) -> None:
        tls = self._authority.context("server", tuple(SITES), self._clock)
        host = self._network.attach("internet")
        for port, context in ((_HTTPS, tls), (_HTTP, None)):
            answering = Loopback("127.0.0.1", await self._listeners.serve(respond, "127.0.0.1", 0, context))
            self._network.stand_in(port, host, lambda dialled, found=answering: found, SITES)  # type: ignore[misc]

    async def close(self) -> None:
        await self._listeners.close()
