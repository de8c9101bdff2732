"""`homeport sim harvester`: one simulated Harvester as a process of its own."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from homeport.apiserver.auth.file import make_private_dir
from homeport.apiserver.auth.pki import PKI, PkiError
from homeport.sim.engine.admin import Admin, Page
from homeport.sim.engine.credential import AdminCredential
from homeport.sim.engine.document import DocumentError
from homeport.sim.engine.fault import load_faults
from homeport.sim.engine.wire import Listeners, StartError, reported
from homeport.sim.harvester.fault import VOCABULARY
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.kubeconfig import Identity, render_kubeconfig, render_rke2, write_kubeconfig
from homeport.sim.harvester.pace import parse_speed
from homeport.sim.harvester.world import WorldFile, default_world, load_world
from homeport.store import StoreError

PORT = 16443  # 6443 is the plane's own
_OPEN = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (looked up, not bound)


@dataclass(frozen=True, slots=True)
class Options:
    data: Path
    host: str = "127.0.0.1"
    port: int = PORT
    admin_port: int = 0
    world: Path | None = None
    faults: Path | None = None
    state: Path | None = None  # None: in memory
    speed: str = "instant"
    seed: int = 0

    @property
    def folder(self) -> Path:
        return self.data / "sim" / "harvester"


@dataclass(frozen=True, slots=True)
class Running:
    url: str
    kubeconfig: Path
    rke2: Path
    admin_url: str
    admin_header: Path  # a file; requests to the admin endpoint need what it holds


def rke2(data: Path) -> str:
    """What /etc/rancher/rke2/rke2.yaml says on a node. Raises StartError."""
    return render_rke2(_pki(Options(data), default_world()))


async def run(options: Options, ready: Callable[[Running], None]) -> None:
    """Until it is interrupted. Raises StartError."""
    try:
        world = load_world(options.world) if options.world is not None else default_world()
        faults = load_faults(options.faults, VOCABULARY) if options.faults is not None else ()
        pace = parse_speed(options.speed)
    except (DocumentError, ValueError) as error:
        raise StartError(str(error)) from error
    credential = AdminCredential.ensure(options.data / "sim")
    pki = _pki(options, world)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        harvester = await Harvester.open(
            pki, world=world, pace=pace, faults=faults, seed=options.seed, database=options.state
        )
    except (StoreError, ValueError) as error:
        raise StartError(str(error)) from error
    listeners = Listeners()
    try:
        with reported("--listen", f"{options.host}:{options.port}"):
            url = await harvester.serve(options.host, options.port)
        with reported("--admin-port", str(options.admin_port)):
            admin = await listeners.serve_admin(_admin(harvester), credential, options.admin_port)
        kubeconfig, node = options.folder / "kubeconfig.yaml", options.folder / "rke2.yaml"
        write_kubeconfig(kubeconfig, render_kubeconfig(url, pki.ca_pem, Identity.admin(pki)))
        write_kubeconfig(node, render_rke2(pki))
        ready(Running(url, kubeconfig, node, f"http://127.0.0.1:{admin}", credential.path))
        await stop.wait()
    finally:
        await listeners.close()
        await harvester.close()


def _pki(options: Options, world: WorldFile) -> PKI:
    hosts = [world.address, _OPEN.get(options.host, options.host), *(node.address for node in world.nodes)]
    make_private_dir(options.folder)
    try:
        return PKI.ensure(options.folder / "pki", hosts)
    except PkiError as error:
        raise StartError(str(error)) from error


def _admin(harvester: Harvester) -> Admin:
    def changed(added: Sequence[str]) -> None:
        del added
        harvester.meet_faults()

    async def nothing(method: str, path: list[str], body: bytes) -> Page | None:
        del method, path, body
        return None

    return Admin(harvester.faults, harvester.journal, VOCABULARY, changed, nothing, "GET /healthz")
