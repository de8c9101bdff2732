"""k0s on one machine, as the rest of its cluster sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from homeport.sim.machine.disk import Disk
from homeport.sim.machine.workload.guest import Guest
from homeport.sim.machine.workload.kind import Json


class Host(Protocol):
    """What k0s may do to the machine that it runs on."""

    @property
    def guest(self) -> Guest: ...

    @property
    def disk(self) -> Disk: ...

    def version(self) -> str:
        """v1.31.5+k0s.0"""

    def fetch(self, url: str) -> bytes:
        """Downloads a binary. Raises OSError."""

    def reach(self, url: str) -> None:
        """Whether a host outside of the simulated network answers. Raises OSError."""

    async def upgrade(self, content: bytes) -> None:
        """Replaces the binary and restarts the service."""

    def log(self, level: str, message: str, component: str) -> None: ...


@dataclass(slots=True)
class Agent:
    """`name`: of its ControlNode, or of its Node where it is a worker alone."""

    name: str
    host: Host
    controller: bool
    member: str = ""  # of etcd, and the key of its control plane
    address: str = ""
    config: Json | None = None  # the ClusterConfig in its file
    dynamic: bool = False  # reads its configuration from the API
    disabled: frozenset[str] = frozenset()
    node: str = ""  # of its kubelet, where it has one
