"""`homeport sim prism`: one simulated Prism Central as a process of its own."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from homeport.apiserver.auth.file import write_private
from homeport.runtime.clock import SystemClock
from homeport.sim.engine.credential import AdminCredential
from homeport.sim.engine.document import DocumentError
from homeport.sim.engine.fault import load_faults
from homeport.sim.engine.tls import Authority
from homeport.sim.engine.wire import StartError, reported
from homeport.sim.prism.pace import parse_speed
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.wire import Wire
from homeport.sim.prism.world import default_world, load_world

# The names and addresses that guides call a Prism Central by, so that their certificates verify.
NAMES = ("localhost", "127.0.0.1", "::1", "prism-central.example.com", "10.1.1.100")
_OPEN = ("0.0.0.0", "::")  # noqa: S104  (recognised, never a default)


@dataclass(frozen=True, slots=True)
class Options:
    data: Path
    host: str = "127.0.0.1"
    port: int = 9440
    admin_port: int = 0
    world: Path | None = None
    faults: Path | None = None
    save: Path | None = None
    speed: str = "instant"
    seed: int = 0
    session_seconds: float = 900.0
    newest_minor: int | None = 4  # None: only API v3


@dataclass(frozen=True, slots=True)
class Running:
    url: str
    admin_url: str
    admin_header: Path  # a file; requests to the admin endpoint need what it holds
    authority: Path
    user: str
    password: str

    @property
    def next_step(self) -> str:
        return (
            f"curl --cacert {self.authority} -u {self.user}:{self.password} {self.url}/api/nutanix/v3/clusters/list "
            "-H 'Content-Type: application/json' -d '{\"length\": 10}'"
        )


def make_prism(options: Options) -> Prism:
    try:
        world = load_world(options.world) if options.world is not None else default_world()
        faults = load_faults(options.faults) if options.faults is not None else ()
        pace = parse_speed(options.speed)
    except (DocumentError, ValueError) as error:
        raise StartError(str(error)) from error
    return Prism(
        world,
        pace=pace,
        faults=faults,
        seed=options.seed,
        session_seconds=options.session_seconds,
        newest_minor=options.newest_minor,
    )


async def run(options: Options, ready: Callable[[Running], None]) -> None:
    """Until it is interrupted. Then the world is saved, where somebody asked for that."""
    prism = make_prism(options)
    clock = SystemClock()
    credential = AdminCredential.ensure(options.data / "sim")
    authority = Authority.ensure(options.data / "sim" / "prism", clock)
    hosts = NAMES if options.host in (*NAMES, *_OPEN) else (*NAMES, options.host)
    called = authority.called("server", hosts, clock)
    wire = Wire(prism)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        with reported("--listen", f"{options.host}:{options.port}"):
            port = await wire.start(options.host, options.port, tls=called.context)
        with reported("--admin-port", str(options.admin_port)):
            admin = await wire.start_admin(credential, options.admin_port)
        host = reachable(options.host)
        host = f"[{host}]" if ":" in host else host
        user, password = credentials(prism)
        url, admin_url = f"https://{host}:{port}", f"http://127.0.0.1:{admin}"
        ready(Running(url, admin_url, credential.path, authority.path, user, password))
        await stop.wait()
    finally:
        await wire.close()
    if options.save is not None:
        write_private(options.save, prism.world.save().encode())


def reachable(host: str) -> str:
    """An address of this machine at which a listener on `host` answers."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (looked up, not bound)


def credentials(prism: Prism) -> tuple[str, str]:
    """Name and password of the first user who has one."""
    for user in prism.world.users:
        if user.passwords:
            return user.name, user.passwords[0]
    raise StartError("the world has no user with a password: add one")
