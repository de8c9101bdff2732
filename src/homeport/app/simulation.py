"""Simulators beside the plane: one network with a proxy, hypervisors on it, and machines that boot.

Everything runs in the plane's own process and loop, on loopback. What is simulated is kept in DIR/sim and goes on from
there at the next start, as a site does after a loss of power.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path

import structlog

from homeport.app.ccm import programs
from homeport.app.description import SimulatorState
from homeport.app.keeping import Keeping, KeepingError, Kept
from homeport.app.settings import Simulators
from homeport.client.reach import Reach
from homeport.runtime.clock import SystemClock
from homeport.runtime.stream import LogStreams
from homeport.sim.engine.credential import AdminCredential
from homeport.sim.engine.document import DocumentError
from homeport.sim.engine.fault import Fault, load_faults
from homeport.sim.engine.journal import Entry
from homeport.sim.engine.tls import Authority
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.pace import pace_of
from homeport.sim.machine.snapshot import Snapshot, SnapshotError
from homeport.sim.network import Loopback, Network, Proxy
from homeport.sim.prism.pace import Pace, parse_speed
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.serve import NAMES, StartError, credentials, reachable
from homeport.sim.prism.wire import Wire
from homeport.sim.prism.world import WorldFile, default_world, load_world
from homeport.store import StoreError

log = structlog.get_logger(__name__)

PRISM_PORT = 9440
PRISM_LOG = "sim-prism"
MACHINE_LOG = "sim-machine"
_SAVE_SECONDS = 5.0


class SimulationError(Exception):
    """The simulators can't start; the text names the option and says what to do."""


class Simulation:
    """Reads all files when it is made; `start` listens; `run` saves now and then; `close` saves and ends.

    Raises SimulationError for what can't work.
    """

    def __init__(self, folder: Path, settings: Simulators, streams: LogStreams) -> None:
        pace, faults, beginning = _read(settings)
        clock = self._clock = SystemClock()
        self._settings = settings
        self._streams = streams
        self._keeping = Keeping(folder)
        if settings.reset:
            self._keeping.forget()
        try:
            kept = self._kept = self._keeping.read(settings.world, beginning)
        except KeepingError as error:
            raise SimulationError(str(error)) from error
        self.network = Network()
        self.fleet = Fleet(
            self.network, clock, pace=pace_of(settings.speed), consoles=self._say, programs=programs(self._reach_from)
        )
        self.prism = Prism(kept.world, clock=clock, pace=pace, faults=faults, guests=self.fleet)
        self.prism.journal.told = self._note
        self._proxy = Proxy(self.network)
        self._wire = Wire(self.prism)
        self._authority = Authority.ensure(folder / "prism", clock)
        self._credential = AdminCredential.ensure(folder)
        self._machines = Snapshot(folder / "machine")
        self._saved: tuple[object, int] = (None, 0)  # the world that is on disk
        self._saving = asyncio.Lock()  # two at once would write the same files
        self._url = self._admin = ""

    # -- life --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        # The proxy comes first: programs on machines that go on ask for its address as soon as their Pods run.
        await self._start_proxy()
        await self._load_machines()
        called = self._authority.called("server", NAMES, self._clock)
        host, port = await self._listen(called.context)
        called.admit(host)
        self._admin = f"http://127.0.0.1:{await self._wire.start_admin(self._credential)}"
        self._url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        answering = Loopback(host, port)

        def answer(dialled: str) -> Loopback:
            called.admit(dialled)
            return answering

        self.network.stand_in(PRISM_PORT, self.network.attach("prism-central"), answer)
        await self.save()

    async def _load_machines(self) -> None:
        try:
            await self._machines.load(self.fleet)
        except (SnapshotError, StoreError) as error:
            raise SimulationError(f"{error}; --sim-reset begins anew") from error
        for ext_id in [ext_id for ext_id in self.fleet.machines if ext_id not in self.prism.world.vms]:
            self.fleet.removed(ext_id)

    async def _listen(self, tls: ssl.SSLContext) -> tuple[str, int]:
        """At the port that was asked for; the usual one gives way to a free one where somebody else has it."""
        if self._settings.listen is not None:
            host, port = self._settings.listen
            try:
                return reachable(host), await self._wire.start(host, port, tls=tls)
            except OSError as error:
                why = error.strerror or error
                raise SimulationError(
                    f"--sim-listen {host}:{port}: {why}; choose another address, or leave the option out"
                ) from error
        with contextlib.suppress(OSError):
            return "127.0.0.1", await self._wire.start("127.0.0.1", PRISM_PORT, tls=tls)
        return "127.0.0.1", await self._wire.start("127.0.0.1", 0, tls=tls)

    async def _start_proxy(self) -> None:
        before = self._keeping.proxy_port()
        try:
            await self._proxy.start(port=before)
        except OSError as error:
            await self._proxy.start()
            log.warning(
                "the proxy of the simulated network has moved: kubeconfigs that name the old port don't work",
                was=before,
                now=self._proxy.port,
                why=error.strerror,
            )
        self._keeping.keep_proxy_port(self._proxy.port)

    async def run(self) -> None:
        """Until cancelled."""
        pause = _SAVE_SECONDS
        while True:
            await asyncio.sleep(pause)
            begun = self._clock.monotonic()
            await self.save()
            # Large fleets take a while to write, and have more to do than that.
            pause = max(_SAVE_SECONDS, 50 * (self._clock.monotonic() - begun))

    async def close(self) -> None:
        await self._wire.close()
        if self._url:
            await self.save()
        await self._proxy.close()
        await self.fleet.close()

    async def copy(self, target: Path) -> None:
        """The whole site as it is now, in a new folder that is private."""
        async with self._saving:
            await self._save()
            await asyncio.to_thread(self._keeping.copy, target)

    async def save(self) -> None:
        async with self._saving:
            await self._save()

    async def _save(self) -> None:
        await self._machines.save(self.fleet)
        past = self.prism.world.past
        if self._saved != (past, past.total):
            saving = (past, past.total)
            kept = Kept(self.prism.world.snapshot(), self._kept.began)
            await asyncio.to_thread(self._keeping.write, kept)
            self._saved = saving

    # -- what others need to know ------------------------------------------------------------------------------

    @property
    def reach(self) -> Reach:
        return Reach(self._proxy.url(), self._authority.path.read_bytes())

    def _reach_from(self, host: str) -> Reach:
        """How a machine of the simulation reaches others."""
        return Reach(self._proxy.url(host), self._authority.path.read_bytes())

    @property
    def logs(self) -> tuple[str, ...]:
        """Names of the streams that the simulators write."""
        return (MACHINE_LOG, PRISM_LOG)

    def describe(self) -> list[SimulatorState]:
        user, password = credentials(self.prism)
        return [
            SimulatorState(
                name="prism",
                url=self._url,
                port=PRISM_PORT,
                authority=str(self._authority.path),
                user=user,
                password=password,
                admin=self._admin,
                admin_header=str(self._credential.path),
                proxy=self._proxy.url(),
                requests=self.prism.journal.total,
                machines=len(self.fleet.machines),
                running=sum(machine.running for machine in self.fleet.machines.values()),
                clusters=len(self.fleet.clusters()),
            )
        ]

    def told(self) -> tuple[str, ...]:
        """What to say at the start."""
        found = self.describe()[0]
        return (
            f"Prism Central is simulated at {found.url} (user {found.user}, password {found.password})",
            f"Through the proxy {found.proxy}, any host on port {found.port} reaches the simulator",
        )

    def _say(self, ext_id: str, line: str) -> None:
        self.prism.write_console(ext_id, line)
        vm = self.prism.world.vms.get(ext_id)
        self._streams.source(MACHINE_LOG).push(self._clock.now(), f"{vm.name if vm is not None else ext_id}: {line}")

    def _note(self, entry: Entry) -> None:
        query = f"?{entry.query}" if entry.query else ""
        struck = f" faults: {', '.join(entry.faults)}" if entry.faults else ""
        status = entry.status or "dropped"
        text = f"{entry.method} {entry.path}{query} {status} {entry.seconds * 1000:.1f} ms {entry.user or '-'}{struck}"
        self._streams.source(PRISM_LOG).push(entry.time, text)


def _read(settings: Simulators) -> tuple[Pace, tuple[Fault, ...], WorldFile]:
    with _naming("--speed"):
        pace = parse_speed(settings.speed)
    with _naming("--sim-faults"):
        faults = load_faults(settings.faults) if settings.faults is not None else ()
    with _naming("--sim-world"):
        world = load_world(settings.world) if settings.world is not None else default_world()
        credentials(Prism(world))
    return pace, faults, world


@contextlib.contextmanager
def _naming(option: str) -> Iterator[None]:
    try:
        yield
    except (DocumentError, StartError, ValueError) as error:
        raise SimulationError(f"{option}: {error}") from error
