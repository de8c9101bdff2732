"""Harvester as a simulator beside the plane."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import shutil
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import structlog

from homeport.apiserver.auth.file import make_private_dir
from homeport.apiserver.auth.pki import PKI, PkiError
from homeport.apiserver.http.exchange import Exchange
from homeport.apiserver.http.server import Answer, Dispatch
from homeport.runtime.task import Tasks
from homeport.sim.engine.admin import Admin, Page
from homeport.sim.engine.bench import Table
from homeport.sim.engine.document import DocumentError
from homeport.sim.engine.fault import load_faults
from homeport.sim.engine.injector import Injector
from homeport.sim.engine.journal import Entry, Journal
from homeport.sim.engine.progress import parse_progress, real_share
from homeport.sim.engine.wire import Listeners, listen_problem
from homeport.sim.harvester.fault import VOCABULARY
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.kind import VM, VMI
from homeport.sim.harvester.kubeconfig import PORT, Identity, render_kubeconfig, write_kubeconfig
from homeport.sim.harvester.pace import INSTANT, Pace, parse_speed
from homeport.sim.harvester.world import WorldFile, default_world, load_world
from homeport.sim.saved import WorldStore
from homeport.sim.simulator import Options, SharedServices, Simulator, SimulatorError, SimulatorState
from homeport.store import StoreError

log = structlog.get_logger(__name__)

NAME = "harvester"
LOG = "sim-harvester"
KUBECONFIG = "harvester-kubeconfig.yaml"
DATABASE = "world.db"
# Besides its address: what people call it in examples.
NAMES = ("harvester", "harvester.example.com")


class HarvesterSimulator:
    """Its API server is opened with the first connection, or at once if it kept machines from an earlier start: a
    plane whose user does not need Harvester pays nothing for it."""

    def __init__(self, options: Options, shared: SharedServices) -> None:
        with _naming("--speed"):
            self._pace = _pace(options.speed)
        with _naming("--sim-faults"):
            faults = load_faults(options.faults, VOCABULARY) if options.faults is not None else ()
        with _naming("--sim-world"):
            world = load_world(options.world) if options.world is not None else default_world()
        self._options = options
        self._shared = shared
        self._worlds = WorldStore(shared.folder, WorldFile)
        if options.reset:
            self._discard()
        self._saved = self._worlds.read(options.world, world)
        self._pki = self._ensure_pki()
        self._faults = Injector(shared.clock, faults)
        self._journal = Journal()
        self._journal.on_entry = self._note
        self._listeners = Listeners()
        self._opening = asyncio.Lock()
        self._harvester: Harvester | None = None
        self._admin = ""
        self._closed = False

    @property
    def _database(self) -> Path:
        return self._shared.folder / DATABASE

    @property
    def _world(self) -> WorldFile:
        return self._saved.world

    def _discard(self) -> None:
        self._worlds.discard()
        for path in self._shared.folder.glob(f"{DATABASE}*"):
            path.unlink()

    def _ensure_pki(self) -> PKI:
        world = self._world
        hosts = [world.address, *NAMES, *(node.address for node in world.nodes)]
        try:
            return PKI.ensure(self._shared.folder / "pki", hosts, data_exists=self._database.exists())
        except PkiError as error:
            raise SimulatorError(str(error)) from error

    # -- life --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._worlds.write(self._saved)
        self._admin = f"http://127.0.0.1:{await self._listeners.serve_admin(self._pages(), self._shared.credential)}"
        network, world = self._shared.network, self._world
        addresses = [world.address, *(node.address for node in world.nodes)]
        network.attach(NAME, addresses).listen(PORT, _Api(self))
        for name in NAMES:
            network.publish_name(name, world.address)
        self._write_kubeconfig()
        if self._database.exists() or self._options.listen is not None:
            await self.opened()

    def _pages(self) -> Admin:
        return Admin(self._faults, self._journal, VOCABULARY, self._faults_changed, self._page, "GET /console/VM")

    def _write_kubeconfig(self) -> None:
        proxy = self._shared.proxy()
        text = render_kubeconfig(self.url, self._pki.ca_pem, Identity.admin(self._pki), proxy=proxy)
        write_kubeconfig(self._shared.data / KUBECONFIG, text)

    async def opened(self) -> Harvester:
        """Raises SimulatorError."""
        async with self._opening:
            if self._harvester is None:
                self._harvester = await self._open()
        return self._harvester

    async def _open(self) -> Harvester:
        shared = self._shared
        try:
            harvester = await Harvester.open(
                self._pki,
                world=self._world,
                clock=shared.clock,
                pace=self._pace,
                faults=self._faults,
                journal=self._journal,
                guests=shared.guests,
                database=self._database,
                network=shared.network,
                fetch=shared.fetch,
            )
        except (StoreError, ValueError) as error:
            raise SimulatorError(f"{self._database}: {error}; --sim-reset starts a new world") from error
        try:
            await harvester.serve(*(self._options.listen or ("127.0.0.1", 0)))
            _save_first(harvester, shared.save)
        except OSError as error:
            await harvester.close()
            shown = ":".join(str(each) for each in self._options.listen or ())
            raise SimulatorError(
                f"--sim-listen {NAME}={shown}: {listen_problem(error)}; choose another address, or leave the option out"
            ) from error
        return harvester

    async def save(self) -> None:
        """The database is always up to date; the rest never changes."""

    async def copy(self, target: Path) -> None:
        make_private_dir(target)
        skipped = shutil.ignore_patterns(f"{DATABASE}*")
        await asyncio.to_thread(shutil.copytree, self._shared.folder, target, ignore=skipped, dirs_exist_ok=True)
        if self._harvester is not None:
            await self._harvester.server.store.backup(target / DATABASE)

    async def close(self) -> None:
        self._closed = True
        await self._listeners.close()
        if self._harvester is not None:
            await self._harvester.close()

    # -- what others ask ---------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"https://{self._world.address}:{PORT}"

    @property
    def closed(self) -> bool:
        return self._closed

    def owns(self, machine: str) -> bool:
        return self._named(machine) is not None

    def _named(self, machine: str) -> str | None:
        """Machines are called after the UID of their VM, or of their instance if that has no lasting disk."""
        if self._harvester is None:
            return None
        mirror = self._harvester.core.mirror
        for obj in (*mirror.all(VM), *mirror.all(VMI)):
            if obj["metadata"]["uid"] == machine:
                return str(obj["metadata"]["name"])
        return None

    def write_console(self, machine: str, line: str) -> str:
        if self._harvester is not None:
            self._harvester.consoles.write(machine, line)
        return self._named(machine) or machine

    def describe(self) -> SimulatorState:
        return SimulatorState(
            name=NAME,
            url=self.url,
            port=0,
            authority=str(self._pki.directory / "ca.crt"),
            user="",
            password="",
            admin=self._admin,
            admin_header=str(self._shared.credential.path),
            kubeconfig=str(self._shared.data / KUBECONFIG),
            requests=self._journal.total,
        )

    @property
    def admin(self) -> Admin:
        return self._pages()

    def tables(self) -> list[Table]:
        world = self._world
        networks = [(each.name, each.namespace, str(each.vlan), each.cluster_network) for each in world.networks]
        images = [(each.display_name or each.name, each.namespace) for each in world.images]
        return [
            Table("Hosts", ("Name", "Address", "Zone"), [(n.name, n.address, n.zone) for n in world.nodes]),
            Table("Networks", ("Name", "Namespace", "VLAN", "Cluster network"), networks),
            Table("Images", ("Name", "Namespace"), images),
        ]

    def announce(self) -> str:
        return f"Simulated Harvester is ready at {self.url} (kubeconfig {self._shared.data / KUBECONFIG})"

    @property
    def authority(self) -> bytes:
        """None to trust: the kubeconfig names it, as that of a real Harvester does."""
        return b""

    def _note(self, entry: Entry) -> None:
        self._shared.log(entry.time, entry.text)

    def _faults_changed(self, added: Sequence[str]) -> None:
        del added
        if self._harvester is not None:
            self._harvester.meet_faults()

    async def _page(self, method: str, path: list[str], body: bytes) -> Page | None:
        del body
        match method, path:
            case "GET", ["console", name]:
                if self._harvester is None:
                    return Page("")
                lines = self._harvester.consoles.read(lambda machine: name in (machine, self._named(machine)))
                return Page("".join(f"{line}\n" for line in lines))
        return None


class _Api:
    """What answers at port 6443 of Harvester's addresses."""

    def __init__(self, simulator: HarvesterSimulator) -> None:
        self._simulator = simulator
        self._tasks = Tasks()

    async def accept(self, sock: socket.socket, source: str) -> None:
        if self._simulator.closed:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused: the simulator has ended")
        try:
            harvester = await self._simulator.opened()
        except SimulatorError as error:
            log.error("the simulated Harvester can't start", why=str(error))
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"connection refused: {error}") from error
        http = harvester.server.http
        assert http is not None
        self._tasks.start(http.take(sock), f"connection of {source}")


def _save_first(harvester: Harvester, save: Callable[[], Awaitable[None]]) -> None:
    """A VM is kept as soon as it is created, and so must be what it relies on: the token in a cluster by which it
    joins, for example."""
    http = harvester.server.http
    assert http is not None
    behind = http.gate
    assert behind is not None

    async def gate(exchange: Exchange, dispatch: Dispatch) -> Answer:
        if (exchange.info.verb, exchange.info.resource) == ("create", VM.plural):
            await save()
        return await behind(exchange, dispatch)

    http.gate = gate


def _pace(text: str) -> Pace:
    """Speeds of tasks that are read have no meaning here: then nothing takes time."""
    if real_share(text) is not None:
        return parse_speed(text)
    try:
        parse_progress(text)
    except ValueError:
        return parse_speed(text)  # which says what is expected
    return INSTANT


@contextlib.contextmanager
def _naming(option: str) -> Iterator[None]:
    try:
        yield
    except (DocumentError, ValueError) as error:
        raise SimulatorError(f"{option}: {error}") from error


SIMULATOR = Simulator(NAME, LOG, HarvesterSimulator)
