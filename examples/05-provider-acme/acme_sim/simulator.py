"""The simulated Acme beside the plane, with machines that boot on the plane's simulated network.

It does not save its state: when the plane stops, its machines are gone.
"""

from __future__ import annotations

from pathlib import Path

from acme_sim.server import Server
from acme_sim.world import NAME, World
from homeport.sim.engine.tls import Authority
from homeport.sim.network import Loopback
from homeport.sim.simulator import Options, SharedServices, Simulator, SimulatorState

PORT = 8443


class AcmeSimulator:
    def __init__(self, options: Options, shared: SharedServices) -> None:
        self._options = options
        self._shared = shared
        self._world = World(shared.clock, guests=shared.guests)
        self._server = Server(self._world)
        self._server.journal.on_entry = lambda each: shared.log(each.time, f"{each.method} {each.path} {each.status}")
        self._authority = Authority.ensure(shared.folder, shared.clock)
        self._url = ""

    async def start(self) -> None:
        """Any host name in a manifest leads here, on Acme's port."""
        called = self._authority.called("server", ("localhost", "127.0.0.1"), self._shared.clock)
        host, port = self._options.listen or ("127.0.0.1", 0)
        port = await self._server.start(host, port, tls=called.context)
        self._url = f"https://{host}:{port}"

        def answer(dialled: str) -> Loopback:
            called.admit(dialled)
            return Loopback(host, port)

        self._shared.network.stand_in(PORT, self._shared.network.attach("acme"), answer)

    async def save(self) -> None:
        """Its machines live as long as the process."""

    async def copy(self, target: Path) -> None:
        """Nothing is saved, so there is nothing to copy."""

    async def close(self) -> None:
        await self._server.close()

    def owns(self, machine: str) -> bool:
        return machine in self._world.machines

    def write_console(self, machine: str, line: str) -> str:
        found = self._world.machines.get(machine)
        return found.name if found is not None else machine

    def describe(self) -> SimulatorState:
        return SimulatorState(
            name=NAME,
            url=self._url,
            port=PORT,
            authority=str(self._authority.path),
            user="",
            password=self._world.token,
            admin="",
            admin_header="",
            requests=self._server.journal.total,
        )

    def announce(self) -> str:
        return f"Simulated Acme is ready at {self._url} (token {self._world.token})"

    @property
    def authority(self) -> bytes:
        return self._authority.path.read_bytes()


SIMULATOR = Simulator(NAME, "sim-acme", AcmeSimulator)
