"""One simulated machine: its parts, its power and what it has become."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from homeport.runtime.clock import Clock
from homeport.sim.machine.console import Console
from homeport.sim.machine.disk import Disk
from homeport.sim.machine.image import Image
from homeport.sim.machine.inventory import inventory
from homeport.sim.machine.pace import Pace
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kubelet import Kubelet
from homeport.sim.network import Host, Network

State = Literal["off", "booting", "running"]
GIB = 1024**3


@dataclass(slots=True, eq=False, repr=False)
class Machine:
    """`state` is the machine's power state; `kubelet` and `cluster` are set by what its user data runs."""

    id: str
    name: str
    image: Image
    host: Host
    network: Network
    clock: Clock
    pace: Pace
    user_data: bytes = b""
    meta_data: bytes = b""
    cpus: int = 2
    memory_bytes: int = 4 * GIB
    uefi: bool = False
    platform: str = "nutanix"
    simulator: str = "prism"  # whose machine it is
    state: State = "off"
    hostname: str = ""
    provisioned: bool = False  # its user data was carried out: that happens once in its life
    installed: str = ""  # the version of kubeadm and kubelet on it now
    k0s: str = ""
    programs: set[str] = field(init=False)  # besides those that are simulated
    disk: Disk = field(default_factory=Disk)
    console: Console = field(init=False)
    cluster: WorkloadCluster | None = None
    kubelet: Kubelet | None = None
    task: asyncio.Task[None] | None = None
    sink: Callable[[str], None] | None = None  # gets every line of the console

    def __post_init__(self) -> None:
        self.console = Console(self.clock, self.sink)
        self.hostname = self.hostname or self.name
        self.installed = self.image.kubernetes
        self.k0s = self.image.k0s
        self.programs = inventory(self.image)

    @property
    def running(self) -> bool:
        return self.state == "running"

    @property
    def address(self) -> str:
        return self.host.addresses[0] if self.host.addresses else ""

    @property
    def cni(self) -> bool:
        return self.image.cni

    @property
    def os_image(self) -> str:
        return self.image.name
