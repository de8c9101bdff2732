"""What a simulator is asked for, and what it reports about itself. Light: planes without simulators import it, too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec


class SimulatorState(msgspec.Struct, frozen=True, rename="camel"):
    """A running simulator, and how to reach it."""

    name: str
    url: str
    port: int  # through the proxy, any host on this port reaches it; 0: only its own addresses do
    authority: str  # file with the CA certificate that clients have to trust
    user: str  # '': the password is an API token
    password: str
    admin: str
    admin_header: str  # file with the header that requests to `admin` need
    kubeconfig: str = ""  # in place of a user and a password
    proxy: str = ""
    requests: int = 0
    machines: int = 0
    running: int = 0
    clusters: int = 0


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked of one simulator."""

    speed: str = "instant"
    world: Path | None = None  # None: the built-in world
    faults: Path | None = None
    listen: tuple[str, int] | None = None  # None: the usual port, or a free one if that is taken
    reset: bool = False  # discard the saved state
