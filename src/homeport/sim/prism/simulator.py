"""Prism Central as a simulator beside the plane."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

from homeport.sim.engine.admin import Admin
from homeport.sim.engine.bench import Table
from homeport.sim.engine.document import DocumentError
from homeport.sim.engine.fault import load_faults
from homeport.sim.engine.journal import Entry
from homeport.sim.engine.tls import Authority
from homeport.sim.engine.wire import StartError, listen_problem
from homeport.sim.network import Loopback
from homeport.sim.prism.pace import parse_speed
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.serve import NAMES, credentials, reachable
from homeport.sim.prism.table import tables
from homeport.sim.prism.wire import Wire
from homeport.sim.prism.world import WorldFile, default_world, load_world
from homeport.sim.saved import SavedWorld, WorldStore
from homeport.sim.simulator import Options, SharedServices, Simulator, SimulatorError, SimulatorState

NAME = "prism"
LOG = "sim-prism"
PORT = 9440
# By this name Prism Central shows a certificate that no client trusts, as a new installation does.
SELF_SIGNED = "self-signed.example.com"
_MOST_VMS = 200  # of a world that is saved before each answer: writing a larger one takes too long for that


class PrismSimulator:
    def __init__(self, options: Options, shared: SharedServices) -> None:
        with _naming("--speed"):
            pace = parse_speed(options.speed)
        with _naming("--sim-faults"):
            faults = load_faults(options.faults) if options.faults is not None else ()
        with _naming("--sim-world"):
            world = load_world(options.world) if options.world is not None else default_world()
            credentials(Prism(world))
        self._options = options
        self._shared = shared
        self._store = WorldStore(shared.folder, WorldFile)
        if options.reset:
            self._store.discard()
        self._saved_world = self._store.read(options.world, world)
        self.prism = Prism(
            self._saved_world.world,
            clock=shared.clock,
            pace=pace,
            faults=faults,
            guests=shared.guests,
            fetch=shared.fetch,
        )
        self.prism.journal.on_entry = self._note
        self._wire = Wire(self.prism, self._save_before_answer)
        self._authority = Authority.ensure(shared.folder, shared.clock)
        self._written: tuple[object, int] = (None, 0)  # the world that is on disk
        self._url = self._admin = ""

    async def start(self) -> None:
        called = self._authority.called("server", NAMES, self._shared.clock)
        host, port = await self._listen(called.context)
        called.admit(host)
        self._admin = f"http://127.0.0.1:{await self._wire.start_admin(self._shared.credential)}"
        self._url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        answering = Loopback(host, port)

        def answer(dialled: str) -> Loopback:
            called.admit(dialled)
            return answering

        network = self._shared.network
        central = network.attach("prism-central")
        network.stand_in(PORT, central, answer)
        untrusted = await self._listen_untrusted()
        network.stand_in(PORT, central, lambda dialled: untrusted, [SELF_SIGNED])

    async def _listen_untrusted(self) -> Loopback:
        clock = self._shared.clock
        authority = Authority.ensure(self._shared.folder / "self-signed", clock)
        tls = authority.context("server", (SELF_SIGNED,), clock)
        return Loopback("127.0.0.1", await self._wire.start("127.0.0.1", 0, tls=tls))

    async def _listen(self, tls: ssl.SSLContext) -> tuple[str, int]:
        """On the port that was asked for; by default the usual one, or a free one if that is taken."""
        if self._options.listen is not None:
            host, port = self._options.listen
            try:
                return reachable(host), await self._wire.start(host, port, tls=tls)
            except OSError as error:
                why = listen_problem(error)
                raise SimulatorError(
                    f"--sim-listen {host}:{port}: {why}; choose another address, or leave the option out"
                ) from error
        with contextlib.suppress(OSError):
            return "127.0.0.1", await self._wire.start("127.0.0.1", PORT, tls=tls)
        return "127.0.0.1", await self._wire.start("127.0.0.1", 0, tls=tls)

    async def save(self) -> None:
        writing = self._version()
        if self._written == writing:
            return
        saved = SavedWorld(self.prism.world.snapshot(), self._saved_world.began)
        await asyncio.to_thread(self._store.write, saved)
        self._written = writing

    async def _save_before_answer(self) -> None:
        """With everything that the change relies on, such as the token in a cluster by which a new VM joins."""
        if self._written != self._version() and len(self.prism.world.vms) <= _MOST_VMS:
            await self._shared.save()

    def _version(self) -> tuple[object, int]:
        past = self.prism.world.past
        return past, past.total

    async def copy(self, target: Path) -> None:
        await asyncio.to_thread(shutil.copytree, self._shared.folder, target, dirs_exist_ok=True)

    async def close(self) -> None:
        await self._wire.close()

    def owns(self, machine: str) -> bool:
        return machine in self.prism.world.vms

    def write_console(self, machine: str, line: str) -> str:
        self.prism.write_console(machine, line)
        vm = self.prism.world.vms.get(machine)
        return vm.name if vm is not None else machine

    def describe(self) -> SimulatorState:
        user, password = credentials(self.prism)
        return SimulatorState(
            name=NAME,
            url=self._url,
            port=PORT,
            authority=str(self._authority.path),
            user=user,
            password=password,
            admin=self._admin,
            admin_header=str(self._shared.credential.path),
            requests=self.prism.journal.total,
        )

    @property
    def admin(self) -> Admin:
        return self._wire.admin

    def tables(self) -> list[Table]:
        return tables(self.prism)

    def announce(self) -> str:
        user, password = credentials(self.prism)
        return f"Simulated Prism Central is ready at {self._url} (user {user}, password {password})"

    @property
    def authority(self) -> bytes:
        return self._authority.path.read_bytes()

    def _note(self, entry: Entry) -> None:
        self._shared.log(entry.time, entry.text)


@contextlib.contextmanager
def _naming(option: str) -> Iterator[None]:
    try:
        yield
    except (DocumentError, StartError, ValueError) as error:
        raise SimulatorError(f"{option}: {error}") from error


SIMULATOR = Simulator(NAME, LOG, PrismSimulator)
