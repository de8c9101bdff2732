"""What a simulator brings to the plane. Each vendor's package exports one SIMULATOR; any number run side by side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from homeport.runtime.clock import Clock
from homeport.runtime.workload.runner import Runners
from homeport.sim.engine.credential import AdminCredential
from homeport.sim.engine.download import Fetch
from homeport.sim.engine.guest import Guests
from homeport.sim.network import Network
from homeport.sim.state import Options, SimulatorState

__all__ = ["Options", "Running", "SharedServices", "Simulator", "SimulatorError", "SimulatorState"]


class SimulatorError(Exception):
    """A simulator can't start; the text names the option and says what to do."""


@dataclass(frozen=True, slots=True)
class SharedServices:
    """What a simulator shares with the others."""

    folder: Path  # its own, private: DIR/sim/NAME
    network: Network
    guests: Guests  # what its machines run
    clock: Clock
    log: Callable[[float, str], None]  # (time, line)
    credential: AdminCredential  # for admin endpoints
    save: Callable[[], Awaitable[None]]  # writes everything that has changed, machines and clusters included
    data: Path  # of the plane: what its user gets to see
    proxy: Callable[[], str]  # URL by which programs outside reach the network; known when simulators start
    fetch: Fetch | None = None  # brings files from the network; None: every URL is there
    runners: Runners = field(default_factory=Runners)  # what runs Pods of the plane: a simulator may add its own


class Running(Protocol):
    """One simulator of this process. Its constructor reads all files, so that mistakes are reported before anything
    listens."""

    async def start(self) -> None:
        """Listens and attaches to the network. Raises SimulatorError."""

    async def save(self) -> None:
        """Writes what has changed since the last call to its folder."""

    async def copy(self, target: Path) -> None:
        """Copies what it has saved to a new folder, consistently, while it runs."""

    async def close(self) -> None: ...

    def owns(self, machine: str) -> bool:
        """Whether the machine of this id exists in its world."""

    def write_console(self, machine: str, line: str) -> str:
        """Adds a line to a machine's console and returns the machine's name."""

    def describe(self) -> SimulatorState: ...

    def announce(self) -> str:
        """One line to print at the start."""

    @property
    def authority(self) -> bytes:
        """CA certificates (PEM) that clients have to trust."""


@dataclass(frozen=True, slots=True)
class Simulator:
    name: str  # of --sim
    log: str  # container of the plane's Pod that shows its requests
    make: Callable[[Options, SharedServices], Running]  # Raises SimulatorError.
