"""Simulators beside the plane: one network with a proxy, simulated vendors on it, and machines that boot.

Everything runs in the plane's own process and loop, on loopback. State is kept in DIR/sim and continues
from there at the next start, as a site does after a power failure.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import structlog

from homeport.app import ccm, simulators
from homeport.app.kubernetes import standin
from homeport.app.settings import Simulators
from homeport.app.simulation.folder import SimulatorFolder
from homeport.app.simulation.registry import start_registry
from homeport.client.dial import DialOptions
from homeport.runtime.clock import SystemClock
from homeport.runtime.task import uninterrupted
from homeport.runtime.telemetry.stream import LogStreams
from homeport.runtime.workload.runner import Runners
from homeport.sim.engine.credential import AdminCredential
from homeport.sim.hosted.hosting import Hosting, HostingError
from homeport.sim.hosted.site import ServiceSite
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.pace import pace_of
from homeport.sim.machine.snapshot import Snapshot, SnapshotError
from homeport.sim.network import Network, Proxy
from homeport.sim.network.wire import Fetcher
from homeport.sim.registry.server import ChartRegistry
from homeport.sim.simulator import Running, SharedServices, Simulator, SimulatorError, SimulatorState
from homeport.sim.web.web import Web
from homeport.store import StoreError

log = structlog.get_logger(__name__)

MACHINE_LOG = "sim-machine"
_SAVE_SECONDS = 1.0


class SimulationError(Exception):
    """The simulators can't start; the text names the option and says what to do."""


class Simulation:
    """Reads all files when it is created; `start` listens; `run` saves each second; `close` saves and ends.

    Raises SimulationError for what can't work.
    """

    def __init__(self, folder: Path, settings: Simulators, streams: LogStreams) -> None:
        self._clock = SystemClock()
        self._streams = streams
        self._folder = SimulatorFolder(folder)
        self._credential = AdminCredential.ensure(folder)
        if settings.reset:
            self._folder.forget()
        self.network = Network()
        self._proxy = Proxy(self.network)
        self._web = Web(self.network, folder / "web", self._clock)
        self._fetch = Fetcher(self._proxy.url, lambda: self._web.authority)
        self.runners = Runners()  # of Pods that stand in for programs
        self.site = ServiceSite(self.network)
        self._machines = Snapshot(folder / "machine")
        self._saving = asyncio.Lock()  # two at once would write the same files
        self._started = False
        self._root = folder
        self._registry: ChartRegistry | None = None
        self._registry_authority = b""
        try:
            self.fleet = Fleet(
                self.network,
                self._clock,
                pace=pace_of(settings.speed),
                consoles=self._say,
                programs=standin.first_of(ccm.programs(self._dial_from), standin.programs(self._dial_from)),
                databases=folder / "hosted",
            )
            self.hosting = Hosting(self.fleet, self._clock, folder / "hosted", self.save)
            self.hosting.register(self.runners)
            self._simulators = simulators.load(settings.names)
            self.running: dict[str, Running] = {
                each.name: each.make(settings.options(given), self._shared(folder, each))
                for given, each in zip(settings.names, self._simulators, strict=True)
            }
        except (SimulatorError, ValueError) as error:
            raise SimulationError(str(error)) from error

    def _shared(self, folder: Path, simulator: Simulator) -> SharedServices:
        push = self._streams.source(simulator.log).push
        return SharedServices(
            folder / simulator.name,
            self.network,
            self.fleet,
            self._clock,
            push,
            self._credential,
            self.save,
            folder.parent,
            self._proxy.url,
            self._fetch,
            self.runners,
        )

    # -- life --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        # The proxy comes first: programs on machines that continue ask for its address as soon as their Pods run.
        await self._start_proxy()
        await self._web.start()
        # Programs such as helm trust the authority of the simulated Prism Central (`homeport env`).
        authority = self._root / ("prism" if "prism" in self.running else "registry")
        self._registry = start_registry(self.network, authority, self._clock)
        self._registry_authority = b"" if "prism" in self.running else (authority / "ca.crt").read_bytes()
        await self._load_machines()
        try:
            for simulator in self.running.values():
                await simulator.start()
        except SimulatorError as error:
            raise SimulationError(str(error)) from error
        self._drop_lost()
        self._started = True
        await self.save()

    async def _load_machines(self) -> None:
        try:
            await self._machines.load(self.fleet)
            await self.hosting.load()
        except (SnapshotError, HostingError, StoreError) as error:
            raise SimulationError(f"{error}; --sim-reset discards the saved state") from error

    def _drop_lost(self) -> None:
        """Machines that their simulator does not know. Those of simulators that don't run this time stay off, and are
        kept for when they do."""
        for machine in list(self.fleet.machines.values()):
            owner = self.running.get(machine.simulator)
            if owner is not None and not owner.owns(machine.id):
                self.fleet.removed(machine.id)

    async def _start_proxy(self) -> None:
        before = self._folder.proxy_port()
        try:
            await self._proxy.start(port=before)
        except OSError as error:
            await self._proxy.start()
            log.warning(
                "the proxy of the simulated network has a new port: kubeconfigs with the old port no longer work",
                was=before,
                now=self._proxy.port,
                why=error.strerror,
            )
        self._folder.keep_proxy_port(self._proxy.port)

    async def run(self) -> None:
        """Until cancelled."""
        pause = _SAVE_SECONDS
        while True:
            await asyncio.sleep(pause)
            begun = self._clock.monotonic()
            await self.save()
            # Large fleets take a while to write, and have more to do than that.
            pause = max(_SAVE_SECONDS, 10 * (self._clock.monotonic() - begun))

    async def close(self) -> None:
        for simulator in self.running.values():
            await simulator.close()
        if self._started:
            await self.save()
        await self._web.close()
        await self._proxy.close()
        await self.hosting.close()
        await self.fleet.close()
        if self._registry is not None:
            await self._registry.close()

    async def copy(self, target: Path) -> None:
        """The whole site as it is now, in a new private folder."""
        async with self._saving:
            await uninterrupted(self._save())
            await asyncio.to_thread(self._folder.copy, target, (*self.running, "hosted"))
            await self.hosting.copy(target / "hosted")
            for name, simulator in self.running.items():
                await simulator.copy(target / name)

    async def save(self) -> None:
        async with self._saving:
            await uninterrupted(self._save())

    async def _save(self) -> None:
        await self._machines.save(self.fleet)
        await self.hosting.save()
        for simulator in self.running.values():
            await simulator.save()

    # -- what others need to know ------------------------------------------------------------------------------

    @property
    def dial(self) -> DialOptions:
        return DialOptions(self._proxy.url(), self._authorities())

    def _dial_from(self, host: str) -> DialOptions:
        """How a machine of the simulation reaches others."""
        return DialOptions(self._proxy.url(host), self._authorities())

    def _authorities(self) -> bytes:
        simulators = b"".join(simulator.authority for simulator in self.running.values())
        return self._web.authority + self._registry_authority + simulators

    @property
    def logs(self) -> tuple[str, ...]:
        """Names of the streams that the simulators write."""
        return (MACHINE_LOG, *(each.log for each in self._simulators))

    def describe(self) -> list[SimulatorState]:
        return [self._describe(name, simulator.describe()) for name, simulator in self.running.items()]

    def _describe(self, name: str, state: SimulatorState) -> SimulatorState:
        machines = [each for each in self.fleet.machines.values() if each.simulator == name]
        clusters = {id(each.cluster) for each in machines if each.cluster is not None and not each.cluster.closed}
        return msgspec.structs.replace(
            state,
            proxy=self._proxy.url(),
            machines=len(machines),
            running=sum(machine.running for machine in machines),
            clusters=len(clusters),
        )

    def told(self) -> tuple[str, ...]:
        """What to print at the start."""
        lines = [simulator.announce() for simulator in self.running.values()]
        found = [state for state in self.describe() if state.port]
        if not found:
            return tuple(lines)
        ports = ", ".join(str(state.port) for state in found)
        return (*lines, f"Through the proxy {self._proxy.url()}, any host on port {ports} reaches the simulator")

    def _say(self, machine: str, line: str) -> None:
        found = self.fleet.machines.get(machine)
        owner = self.running.get(found.simulator) if found is not None else None
        name = owner.write_console(machine, line) if owner is not None else machine
        self._streams.source(MACHINE_LOG).push(self._clock.now(), f"{name}: {line}")
